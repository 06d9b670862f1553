"""Differentially private synthetic tables at census scale."""

from chicle import datasets, privacy
from chicle._core import __version__
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
from chicle.generate import Descent, descend, independent
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
    "Counter",
    "Descent",
    "Domain",
    "DomainError",
    "InfeasibleError",
    "Ledger",
    "Measurement",
    "ParameterError",
    "PrivacyError",
    "Records",
    "__version__",
    "count",
    "datasets",
    "descend",
    "independent",
    "measure",
    "pairs",
    "privacy",
]
