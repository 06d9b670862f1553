"""From measurements to records. Everything here is post-processing: it cannot reach the private data."""

from chicle.generate.descent import Descent, descend
from chicle.generate.independent import independent

__all__ = ["Descent", "descend", "independent"]
