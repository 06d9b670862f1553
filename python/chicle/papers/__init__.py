"""The experiments of the papers, rerun: NOT PRIVATE. One file a paper, which declares tables, systems and measures."""

from chicle.papers.paper import Paper, Published, Ratio, System, Table
from chicle.papers.run import BY_NAME, Outcome, run_paper

__all__ = ["BY_NAME", "Outcome", "Paper", "Published", "Ratio", "System", "Table", "run_paper"]
