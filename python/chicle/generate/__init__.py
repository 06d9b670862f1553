"""From measurements to records. Everything here is post-processing: it cannot reach the private data."""

from chicle.generate.descent import Descent, descend
from chicle.generate.gum import Gum, gum
from chicle.generate.independent import independent
from chicle.generate.mcf import mcf

__all__ = ["Descent", "Gum", "descend", "gum", "independent", "mcf"]
