"""The 1-ways' share of the budget: their needs against those of the pairs.

Noise on a set of tables with c_i cells each, at the best split ([P] equation 1), grows as ``(sum c_i^(2/3))^(3/2)``. So
``Z1 = sum of c_i^(2/3)`` measures the needs of the 1-ways. Attributes of at most four values are left out, because
pairs measure them well enough. ``Zp = pairs^(1/3) min(sum of pair cells, n mu)^(2/3)`` measures the needs of all pairs;
it counts no more cells than the budget can tell from noise. The 1-ways weigh five times as much: every later step
compares with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

__all__ = ["one_way_share"]

_FACTOR, _LEAST, _MOST = 5.0, 0.08, 0.5
_FEW_VALUES = 4


def one_way_share(domain: Mapping[str, int], n: float, mu: float) -> float:
    """Return the share of the budget for the 1-ways, from 0.08 to 0.5; all of it if there are no pairs.

    Examples
    --------
    >>> one_way_share({"age": 100, "income": 100, "sex": 2}, n=1_000, mu=0.2)
    0.5
    >>> one_way_share({"a": 2, "b": 2, "c": 2}, n=1_000, mu=0.2)
    0.08
    """
    if len(domain) < 2:
        return 1.0
    cells = sum(a * b for a, b in combinations(domain.values(), 2))
    number = len(domain) * (len(domain) - 1) // 2
    pairs = number ** (1 / 3) * max(min(float(cells), n * mu), 1.0) ** (2 / 3)
    singles = _FACTOR * sum(size ** (2 / 3) for size in domain.values() if size > _FEW_VALUES)
    return float(min(max(singles / (singles + pairs), _LEAST), _MOST))
