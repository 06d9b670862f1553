"""From measurements to records. Everything here is post-processing: it cannot reach the private data."""

from chicle.generate.independent import independent

__all__ = ["independent"]
