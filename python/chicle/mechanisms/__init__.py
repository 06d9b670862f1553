"""Mechanisms: each is a rule for choosing what to measure, and a model."""

from chicle.mechanisms.aim import AIM
from chicle.mechanisms.base import BY_NAME, Mechanism, register_mechanism
from chicle.mechanisms.best_response import FEM, DualQuery
from chicle.mechanisms.dpsyn import DPSyn
from chicle.mechanisms.gaussian import Gaussian
from chicle.mechanisms.gem import GEM, RAP
from chicle.mechanisms.independent import Independent
from chicle.mechanisms.mst import MST
from chicle.mechanisms.mwem import MWEM
from chicle.mechanisms.pep import PEP
from chicle.mechanisms.pmw_pub import PMWPub
from chicle.mechanisms.prism import Prism, PrismOptions
from chicle.mechanisms.privbayes import PrivBayes
from chicle.mechanisms.privmrf import PrivMRF
from chicle.mechanisms.privsyn import PrivSyn
from chicle.mechanisms.residual import Residual

__all__ = [
    "AIM",
    "BY_NAME",
    "FEM",
    "GEM",
    "MST",
    "MWEM",
    "PEP",
    "RAP",
    "DPSyn",
    "DualQuery",
    "Gaussian",
    "Independent",
    "Mechanism",
    "PMWPub",
    "Prism",
    "PrismOptions",
    "PrivBayes",
    "PrivMRF",
    "PrivSyn",
    "Residual",
    "register_mechanism",
]
