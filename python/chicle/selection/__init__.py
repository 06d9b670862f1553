"""Which marginals to measure: scores of cliques (private), then a choice among them (free), or a private choice."""

from chicle.selection.combine import budget_shares, combine, given_cliques
from chicle.selection.dense_marg import dense_marg
from chicle.selection.indif import Scores, exact_indif, indif
from chicle.selection.worst import choose_worst, distances

__all__ = [
    "Scores",
    "budget_shares",
    "choose_worst",
    "combine",
    "dense_marg",
    "distances",
    "exact_indif",
    "given_cliques",
    "indif",
]
