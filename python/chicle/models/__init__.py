"""From measurements to records. Everything here is post-processing: it cannot reach the private data."""

from chicle.models.descent import Descent, descend
from chicle.models.gum import Gum, gum
from chicle.models.independent import independent
from chicle.models.mcf import mcf
from chicle.models.pgm import Pgm, jt_size, pgm

__all__ = ["Descent", "Gum", "Pgm", "descend", "gum", "independent", "jt_size", "mcf", "pgm"]
