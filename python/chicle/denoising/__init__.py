"""What noisy tables tell each other, before records are made from them. Free: nothing here sees private data."""

from chicle.denoising.absorb import absorb
from chicle.denoising.low_rank import low_rank
from chicle.denoising.shrink import shrink
from chicle.denoising.tables import denoise

__all__ = ["absorb", "denoise", "low_rank", "shrink"]
