"""How good a synthetic table is, measured against the real one: NOT PRIVATE, and said in the first line of it all."""

from chicle.evaluation.result import Association, AttributeErrors, CliqueErrors, Evaluation, Score
from chicle.evaluation.run import evaluate
from chicle.evaluation.tables import read_both

__all__ = ["Association", "AttributeErrors", "CliqueErrors", "Evaluation", "Score", "evaluate", "read_both"]
