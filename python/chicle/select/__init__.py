"""Which marginals to measure: scores of cliques (private), then a choice among them (free), or a private choice."""

from chicle.select.combine import budget_shares, combine, given_cliques
from chicle.select.dense_marg import dense_marg
from chicle.select.indif import Scores, exact_indif, indif
from chicle.select.worst import choose_worst, distances

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
