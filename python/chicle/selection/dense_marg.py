"""DenseMarg: the pairs whose measurement lowers the error most ([P] Algorithm 1 with equation 1).

The error of a choice X is the noise of the chosen pairs plus the dependency error, the InDif score, of the others. A
pair of c_i cells at budget rho_i has an expected L1 noise of ``s c_i / sqrt(pi rho_i)`` (s the L2 sensitivity of a
marginal, 1 in the paper). Equation 1 gives each chosen pair ``rho_i = rho t_i / T`` with ``t_i = c_i^(2/3)`` and
``T = sum of t_i over X``, and then

    sum c_i s sqrt(T / (pi rho t_i))  =  s sqrt(T / (pi rho)) sum t_i  =  s T^(3/2) / sqrt(pi rho),

since ``c_i / sqrt(t_i) = t_i``. The noise depends on X through T alone: adding pair i changes the error by
``s ((T + t_i)^(3/2) - T^(3/2)) / sqrt(pi rho) - score_i``, which is O(1) work. Among pairs with equally many cells only
the one of largest score can be the best, so a step looks at one candidate for each distinct number of cells.
Cost: O(m log m + steps * distinct sizes). Oracle: the literal algorithm, in `tests/unit/test_select.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from chicle.domain import Clique, Domain
from chicle.errors import DomainError, PrivacyError
from chicle.measurements.scores import Scores

__all__ = ["dense_marg"]


def dense_marg(
    scores: Scores,
    domain: Mapping[str, int],
    *,
    rho: float,
    l2_sensitivity: float = 1,
    allow_unprotected: bool = False,
) -> list[Clique]:
    """Choose pairs to measure: greedily add the one that lowers the overall error most, until none does.

    It uses released scores only, so it costs nothing.

    Parameters
    ----------
    scores
        From `Desk.score` or `Desk.dependence`. A pair of negative score is never chosen.
    domain
        The attributes and their cardinalities.
    rho
        The budget of all chosen marginals; nothing is spent here.
    l2_sensitivity
        The L2 sensitivity of a marginal: how many records one person may have.
    allow_unprotected
        Accept scores that are not private, for experiments; the result is then not private either.

    Returns
    -------
    The pairs in the order in which they were chosen; among equally good ones, the first in `scores`.

    Examples
    --------
    >>> import numpy as np
    >>> scores = Scores((("a", "b"), ("a", "c"), ("b", "c")), np.array([900.0, 20.0, 300.0]), 10.0, protected=True)
    >>> dense_marg(scores, {"a": 2, "b": 3, "c": 4}, rho=0.1)
    [('a', 'b'), ('b', 'c')]
    """
    if not scores.protected and not allow_unprotected:
        raise PrivacyError(
            "these scores are not protected by noise, so neither is what they select; release scores with "
            "Desk.score, or give allow_unprotected=True in an experiment"
        )
    if not 0 < rho < math.inf:
        raise PrivacyError(f"rho must be finite and above 0, not {rho!r}")
    if not 0 < l2_sensitivity < math.inf:
        raise PrivacyError(f"l2_sensitivity must be finite and above 0, not {l2_sensitivity!r}")
    if not np.isfinite(scores.values).all():
        bad = scores.cliques[int(np.flatnonzero(~np.isfinite(scores.values))[0])]
        raise DomainError(f"the score of {bad!r} is not finite; leave the pair out")
    domain = Domain.of(domain)
    return [scores.cliques[i] for i in _greedy(scores, domain, l2_sensitivity / math.sqrt(math.pi * rho))]


def _greedy(scores: Scores, domain: Domain, noise: float) -> list[int]:
    """Return positions of pairs; a choice with T = sum of cells^(2/3) has a noise error of ``noise * T^(3/2)``."""
    if not scores.cliques:
        return []
    cells = np.array([domain.cells(pair) for pair in scores.cliques], dtype=np.float64)
    # Sort by size, then by falling score, then by position.
    order = np.lexsort((-scores.values, cells))
    sizes, starts = np.unique(cells[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    falling = scores.values[order]
    weights = sizes ** (2 / 3)
    heads, best = starts.copy(), falling[starts]
    chosen: list[int] = []
    total = 0.0
    while True:
        grown = total + weights
        gains = best - noise * (grown * np.sqrt(grown) - total * math.sqrt(total))
        top = gains.max()
        if top <= 0:
            return chosen
        equal = np.flatnonzero(gains == top)
        group = int(equal[0]) if len(equal) == 1 else int(min(equal, key=lambda g: order[heads[g]]))
        chosen.append(int(order[heads[group]]))
        total += float(weights[group])
        heads[group] += 1
        best[group] = falling[heads[group]] if heads[group] < ends[group] else -np.inf
