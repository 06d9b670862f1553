"""The experiments of the papers, rerun: NOT PRIVATE. One file a paper, which declares tables, systems and measures."""

from chicle.papers.paper import Paper, Published, Ratio, System, Table
from chicle.papers.run import BY_NAME, Outcome, run_paper
from chicle.papers.study import Case, Study

__all__ = ["BY_NAME", "Case", "Outcome", "Paper", "Published", "Ratio", "Study", "System", "Table", "run_paper"]
