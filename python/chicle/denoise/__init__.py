"""What noisy tables tell each other, before records are made from them. Free: nothing here sees private data."""

from chicle.denoise.absorb import absorb
from chicle.denoise.low_rank import low_rank
from chicle.denoise.shrink import shrink
from chicle.denoise.tables import denoise

__all__ = ["absorb", "denoise", "low_rank", "shrink"]
