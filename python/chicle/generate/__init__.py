"""From measurements to records. Everything here is post-processing: it cannot reach the private data."""

from chicle.generate.descent import Descent, descend
from chicle.generate.gum import Gum, gum
from chicle.generate.independent import independent
from chicle.generate.mcf import mcf
from chicle.generate.pgm import Pgm, jt_size, pgm

__all__ = ["Descent", "Gum", "Pgm", "descend", "gum", "independent", "jt_size", "mcf", "pgm"]
