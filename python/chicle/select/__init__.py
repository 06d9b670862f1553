"""Which marginals to measure: scores of pairs (private), then a choice among them (free)."""

from chicle.select.combine import budget_shares, combine, given_cliques
from chicle.select.dense_marg import dense_marg
from chicle.select.indif import Scores, exact_indif, indif

__all__ = ["Scores", "budget_shares", "combine", "dense_marg", "exact_indif", "given_cliques", "indif"]
