"""Mechanisms against each other on one table: NOT PRIVATE, for experiments and benchmarks."""

from chicle.comparison.comparison import Comparison
from chicle.comparison.contenders import Contender, contender_names
from chicle.comparison.plot import check_plot, plot
from chicle.comparison.run import compare

__all__ = ["Comparison", "Contender", "check_plot", "compare", "contender_names", "plot"]
