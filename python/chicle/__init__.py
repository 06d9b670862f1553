"""Differentially private synthetic tables at census scale."""

from chicle import columns, datasets, privacy, selection
from chicle._core import __version__
from chicle.comparison import Comparison, compare
from chicle.counting.counter import Counter, count
from chicle.counting.records import Records
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
from chicle.evaluation import Evaluation, evaluate
from chicle.measurements.measurement import Measurement, measure
from chicle.measurements.merges import Compression, compress
from chicle.mechanisms import AIM, MST, MWEM, Gaussian, Independent, Prism, PrismOptions, PrivBayes, PrivSyn
from chicle.models import Descent, Gum, Pgm, descend, gum, independent, jt_size, mcf, pgm
from chicle.privacy import Budget, Ledger
from chicle.releases.bounds import ErrorBound
from chicle.releases.release import Release, load
from chicle.reports import report
from chicle.schema import Schema
from chicle.schema.draft import draft_schema
from chicle.synthesize import synthesize
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
    "Comparison",
    "Compression",
    "Counter",
    "Descent",
    "Discovery",
    "Domain",
    "DomainError",
    "ErrorBound",
    "Evaluation",
    "Gaussian",
    "Gum",
    "Independent",
    "InfeasibleError",
    "Ledger",
    "Measurement",
    "NotFittedError",
    "ParameterError",
    "Pgm",
    "Prism",
    "PrismOptions",
    "PrivBayes",
    "PrivSyn",
    "PrivacyError",
    "Records",
    "Release",
    "Schema",
    "SchemaError",
    "Workload",
    "__version__",
    "columns",
    "compare",
    "compress",
    "count",
    "datasets",
    "descend",
    "draft_schema",
    "evaluate",
    "gum",
    "independent",
    "jt_size",
    "load",
    "mcf",
    "measure",
    "pairs",
    "pgm",
    "privacy",
    "project",
    "report",
    "selection",
    "synthesize",
]
