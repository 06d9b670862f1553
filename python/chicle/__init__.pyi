"""What users import, and where each name is from: `__init__.py` reads this file and imports a name at its first use."""

from . import columns, datasets, models, privacy, sources
from ._core import __version__
from .analyses import Linear, Logit, Poisson
from .comparison import compare
from .counting.counter import Counter
from .counting.records import Records, count
from .denoising.consistency import project
from .discovery import Discovery
from .domain import Clique, Domain, pairs
from .errors import (
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
from .evaluation import evaluate
from .measurements.desk import Desk
from .measurements.measurement import Measurement
from .mechanisms import (
    AIM,
    FEM,
    GEM,
    MST,
    MWEM,
    PEP,
    RAP,
    DPSyn,
    DualQuery,
    Gaussian,
    Independent,
    Mechanism,
    PMWPub,
    Prism,
    PrismOptions,
    PrivBayes,
    PrivMRF,
    PrivSyn,
    Residual,
)
from .models.base import Model
from .models.descent import descend
from .models.gum import gum
from .partition import Partition
from .privacy import Budget, Ledger
from .public import PublicData
from .query import Query
from .releases.draws import pool
from .releases.release import Release, load
from .reports import report
from .schema import Schema
from .sources.draft import draft_schema
from .synthesis import synthesize
from .workload import Workload

__all__ = [
    "AIM",
    "FEM",
    "GEM",
    "MST",
    "MWEM",
    "PEP",
    "RAP",
    "ArtefactError",
    "Budget",
    "BudgetExceeded",
    "ChicleError",
    "Clique",
    "Counter",
    "DPSyn",
    "Desk",
    "Discovery",
    "Domain",
    "DomainError",
    "DualQuery",
    "Gaussian",
    "Independent",
    "InfeasibleError",
    "Ledger",
    "Linear",
    "Logit",
    "Measurement",
    "Mechanism",
    "Model",
    "NotFittedError",
    "PMWPub",
    "ParameterError",
    "Partition",
    "Poisson",
    "Prism",
    "PrismOptions",
    "PrivBayes",
    "PrivMRF",
    "PrivSyn",
    "PrivacyError",
    "PublicData",
    "Query",
    "Records",
    "Release",
    "Residual",
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
    "pool",
    "privacy",
    "project",
    "report",
    "sources",
    "synthesize",
]
