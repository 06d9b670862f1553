"""One file for each mechanism: how selection, measuring and generation are put together, and nothing else."""

from chicle.mechanisms import elsewhere
from chicle.mechanisms.independent import Independent
from chicle.mechanisms.prism import Prism, PrismOptions
from chicle.mechanisms.privsyn import PrivSyn

__all__ = ["Independent", "Prism", "PrismOptions", "PrivSyn", "elsewhere"]
