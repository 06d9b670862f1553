"""One file for each mechanism: how selection, measuring and generation are put together, and nothing else."""

from chicle.mechanisms import elsewhere
from chicle.mechanisms.aim import AIM
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.gaussian import Gaussian
from chicle.mechanisms.independent import Independent
from chicle.mechanisms.mst import MST
from chicle.mechanisms.mwem import MWEM
from chicle.mechanisms.prism import Prism, PrismOptions
from chicle.mechanisms.privbayes import PrivBayes
from chicle.mechanisms.privsyn import PrivSyn

__all__ = [
    "AIM",
    "MST",
    "MWEM",
    "Gaussian",
    "Independent",
    "Prism",
    "PrismOptions",
    "PrivBayes",
    "PrivSyn",
    "elsewhere",
]

BY_NAME: dict[str, type[Mechanism]] = {
    name.lower(): made for name in __all__ if isinstance(made := globals()[name], type) and issubclass(made, Mechanism)
}
"""Every mechanism, by the name that the command line has for it."""
