"""Compare a synthetic table with the real one. NOT PRIVATE: every result says so in its first line."""

from chicle.evaluation.result import Association, AttributeErrors, CliqueErrors, Evaluation, Score
from chicle.evaluation.run import evaluate
from chicle.evaluation.sdnist import export_sdnist
from chicle.evaluation.tables import read_both

__all__ = [
    "Association",
    "AttributeErrors",
    "CliqueErrors",
    "Evaluation",
    "Score",
    "evaluate",
    "export_sdnist",
    "read_both",
]
