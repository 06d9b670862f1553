"""MCF: records made to match one marginal after another, changing as few attributes as possible ([P] section 5.1).

The baseline that the paper compares GUM with: each visit matches one target in full and ignores the others.
On exact, consistent targets (Adult, 91 pairs) it comes closer than GUM; the paper's argument is about noisy ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import InfeasibleError
from chicle.measurements.measurement import Measurement
from chicle.models.gum import Gum, Order, Progress, check_tables

__all__ = ["mcf"]

MAX_CELLS = 2**22


def mcf(
    targets: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    start: Records | None = None,
    passes: int = 20,
    order: Order = "given",
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """Make records by min-cost flow: each visit matches one target exactly.

    A visit moves records between the cells of a target until its counts are the target's, rounded at random; moving a
    record costs the number of attributes it changes, and the total cost is the least possible (by an exact solver).
    Records of a cell are picked at random; nothing is duplicated. The same as `chicle.gum` with ``alpha=1``,
    ``decay="constant"``, ``duplicate=0``, ``growth="proportional"``, ``removal="excess"`` and ``pairing="flow"``.

    Parameters
    ----------
    targets, domain, n, start, passes, order, seed, threads, progress
        As for `chicle.gum`. A target has at most 2^22 cells.

    Examples
    --------
    >>> import numpy as np
    >>> from chicle import count
    >>> target = Measurement(("age",), np.array([4, 4, 2]), sigma=1.0)
    >>> start = Records({"age": [0, 0, 1, 1, 1, 1, 1, 2, 2, 2]}, {"age": 3})
    >>> count(mcf([target], {"age": 3}, start=start, passes=1, seed=0), [("age",)])
    [array([4, 4, 2])]
    """
    checked = Domain.of(domain)
    for target in check_tables(targets, checked):
        if target.values.size > MAX_CELLS:
            raise InfeasibleError(
                f"target {target.clique!r} has {target.values.size} cells, above the limit of {MAX_CELLS} "
                "for a min-cost flow; use smaller cliques, or gum"
            )
    run = Gum(
        targets,
        checked,
        n,
        start=start,
        alpha=1.0,
        decay="constant",
        duplicate=0.0,
        growth="proportional",
        removal="excess",
        pairing="flow",
        order=order,
        seed=seed,
        threads=threads,
    )
    return run.run(passes, progress=progress).records()
