"""Mechanisms against each other on one table: NOT PRIVATE, for experiments and benchmarks."""

from chicle.compare.comparison import Comparison
from chicle.compare.contenders import Contender, contender_names
from chicle.compare.plot import check_plot, plot
from chicle.compare.run import compare

__all__ = ["Comparison", "Contender", "check_plot", "compare", "contender_names", "plot"]
