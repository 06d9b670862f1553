"""Differentially private synthetic tables at census scale."""

from chicle import columns, datasets, models, privacy, sources
from chicle._core import __version__
from chicle.comparison import compare
from chicle.counting.counter import Counter
from chicle.counting.records import Records, count
from chicle.denoising.consistency import project
from chicle.discovery import Discovery
from chicle.domain import Clique, Domain, pairs
from chicle.errors import (
    ArtefactError,
    BudgetExceeded,
    ChicleError,
    DomainError,
    InfeasibleError,
    NotFittedError,
    ParameterError,
    PrivacyError,
    SchemaError,
)
from chicle.evaluation import evaluate
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.mechanisms import AIM, MST, MWEM, Gaussian, Independent, Mechanism, Prism, PrismOptions, PrivBayes, PrivSyn
from chicle.models.base import Model
from chicle.models.descent import descend
from chicle.models.gum import gum
from chicle.privacy import Budget, Ledger
from chicle.query import Query
from chicle.releases.release import Release, load
from chicle.reports import report
from chicle.schema import Schema
from chicle.sources.draft import draft_schema
from chicle.synthesis import synthesize
from chicle.workload import Workload

__all__ = [
    "AIM",
    "MST",
    "MWEM",
    "ArtefactError",
    "Budget",
    "BudgetExceeded",
    "ChicleError",
    "Clique",
    "Counter",
    "Desk",
    "Discovery",
    "Domain",
    "DomainError",
    "Gaussian",
    "Independent",
    "InfeasibleError",
    "Ledger",
    "Measurement",
    "Mechanism",
    "Model",
    "NotFittedError",
    "ParameterError",
    "Prism",
    "PrismOptions",
    "PrivBayes",
    "PrivSyn",
    "PrivacyError",
    "Query",
    "Records",
    "Release",
    "Schema",
    "SchemaError",
    "Workload",
    "__version__",
    "columns",
    "compare",
    "count",
    "datasets",
    "descend",
    "draft_schema",
    "evaluate",
    "gum",
    "load",
    "models",
    "pairs",
    "privacy",
    "project",
    "report",
    "sources",
    "synthesize",
]
