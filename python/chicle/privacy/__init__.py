"""Budgets, the ledger, exact noise, and the primitives that release private integers."""

from chicle.privacy.budget import Accounting, Budget, calibrate, calibrate_choice
from chicle.privacy.claim import Claim
from chicle.privacy.events import (
    DiscoveryEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)
from chicle.privacy.guarantee import Guarantee
from chicle.privacy.ledger import Ledger
from chicle.privacy.noise import TestNoise, discrete_laplace, rounded_gaussian
from chicle.privacy.primitives import exponential, gaussian, laplace

__all__ = [
    "Accounting",
    "Budget",
    "Claim",
    "DiscoveryEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "Guarantee",
    "LaplaceEvent",
    "Ledger",
    "ParallelEvent",
    "PureEvent",
    "TestNoise",
    "calibrate",
    "calibrate_choice",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "laplace",
    "rounded_gaussian",
]
