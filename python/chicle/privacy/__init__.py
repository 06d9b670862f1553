"""Budgets, the ledger, exact noise and private releases of integers."""

from chicle.privacy.budget import Accounting, Budget, calibrate, calibrate_choice
from chicle.privacy.ledger import DiscoveryEvent, Event, ExponentialEvent, GaussianEvent, LaplaceEvent, Ledger
from chicle.privacy.mechanisms import exponential, gaussian, laplace
from chicle.privacy.noise import TestNoise, discrete_laplace, rounded_gaussian
from chicle.privacy.stated import StatedLedger

__all__ = [
    "Accounting",
    "Budget",
    "DiscoveryEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "Ledger",
    "StatedLedger",
    "TestNoise",
    "calibrate",
    "calibrate_choice",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "laplace",
    "rounded_gaussian",
]
