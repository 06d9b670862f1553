"""What a fit leaves out of linked tables: NOT PRIVATE, for the owner of the data."""

from __future__ import annotations

import numpy as np

from chicle.linked.join import Joined
from chicle.schema.layout import Layout

__all__ = ["remarks"]

_LIMITS = (1, 2, 3, 5, 10, 20, 40)


def remarks(layout: Layout, joined: Joined) -> tuple[str, ...]:
    """Return sentences on the children that a fit leaves out, and what other limits would: NOT PRIVATE.

    Parameters
    ----------
    layout
        Where the columns are in the wide rows.
    joined
        Which child belongs where.
    """
    numbers, children = joined.numbers, int(joined.numbers.sum())
    found = []
    if joined.orphans:
        found.append(
            f"{joined.orphans:,} rows of {layout.child!r} have no row of {layout.parent!r}; they are left out. Correct "
            "the tables if they should have one."
        )
    if children and numbers.max() > layout.most:

        def left_out(most: int) -> float:
            return float(np.maximum(numbers - most, 0).sum() / children)

        others = ", ".join(f"{left_out(most):.1%} at {most}" for most in _LIMITS)
        found.append(
            f"Of each of {layout.parent!r} the first {layout.most} of {layout.child!r} are kept: "
            f"{left_out(layout.most):.1%} of the rows are left out. Other limits would leave out {others}. Choose "
            "`max_per_parent` by what is known without the data."
        )
    return tuple(found)
