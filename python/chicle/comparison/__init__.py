"""Comparisons of mechanisms on one table: NOT PRIVATE, for experiments and benchmarks."""

from chicle.comparison.comparison import Comparison
from chicle.comparison.contenders import Contender
from chicle.comparison.plots import check_plot, plot
from chicle.comparison.run import compare

__all__ = ["Comparison", "Contender", "check_plot", "compare", "plot"]
