"""Differentially private synthetic tables at census scale."""

from chicle import datasets, privacy, select
from chicle._core import __version__
from chicle.compress import Compression, compress
from chicle.consistency import project
from chicle.domain import Clique, Domain, pairs
from chicle.errors import (
    ArtefactError,
    BudgetExceeded,
    ChicleError,
    DomainError,
    InfeasibleError,
    ParameterError,
    PrivacyError,
)
from chicle.generate import Gum, gum, independent, mcf
from chicle.marginals import Counter, count
from chicle.measure import Measurement, measure
from chicle.privacy import Budget, Ledger
from chicle.records import Records

__all__ = [
    "ArtefactError",
    "Budget",
    "BudgetExceeded",
    "ChicleError",
    "Clique",
    "Compression",
    "Counter",
    "Domain",
    "DomainError",
    "Gum",
    "InfeasibleError",
    "Ledger",
    "Measurement",
    "ParameterError",
    "PrivacyError",
    "Records",
    "__version__",
    "compress",
    "count",
    "datasets",
    "gum",
    "independent",
    "mcf",
    "measure",
    "pairs",
    "privacy",
    "select",
    "project",
]
