"""Declared analyses: regressions with intervals that count both sampling and noise."""

from chicle.analyses.coefficients import Coefficients
from chicle.analyses.declared import Analysis, Linear, Logit, Poisson, analysis_of

__all__ = ["Analysis", "Coefficients", "Linear", "Logit", "Poisson", "analysis_of"]
