"""From measurements to records. Everything here is post-processing: it cannot reach the private data."""

from chicle.generate.gum import Gum, gum
from chicle.generate.independent import independent
from chicle.generate.mcf import mcf

__all__ = ["Gum", "gum", "independent", "mcf"]
