"""Differentially private synthetic tables at census scale."""

from chicle import columns, datasets, privacy, select
from chicle._core import __version__
from chicle.bounds import ErrorBound
from chicle.compare import Comparison, compare
from chicle.compress import Compression, compress
from chicle.consistency import project
from chicle.discover import Discovery
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
from chicle.evaluate import Evaluation, evaluate
from chicle.generate import Descent, Gum, Pgm, descend, gum, independent, jt_size, mcf, pgm
from chicle.marginals import Counter, count
from chicle.measure import Measurement, measure
from chicle.mechanisms import AIM, MST, MWEM, Gaussian, Independent, Prism, PrismOptions, PrivBayes, PrivSyn
from chicle.privacy import Budget, Ledger
from chicle.records import Records
from chicle.release import Release, load
from chicle.report import report
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
    "select",
    "synthesize",
]
