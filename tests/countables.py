"""Every kind of countable over the same rows, for tests that all of them must pass."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from chicle import Domain, Records
from chicle.counting.countable import Cached, Countable, View
from chicle.counting.counts import Counts
from chicle.counting.passes import Passes
from chicle.query import Maps, one_ways


def finer(table: Records) -> tuple[Records, Maps]:
    """Return rows behind a view of a table, and its maps: other names, and every second attribute in finer codes."""
    columns: dict[str, npt.NDArray[np.int64]] = {}
    domain: dict[str, int] = {}
    maps: dict[str, tuple[str, npt.NDArray[np.int64] | None]] = {}
    rng = np.random.default_rng(0)
    for place, (name, size) in enumerate(table.domain.items()):
        old, copies = f"old {name}", 1 + 2 * (place % 2)
        columns[old] = table[name].astype(np.int64) + size * rng.integers(copies, size=len(table))
        domain[old] = size * copies
        maps[name] = (old, np.arange(size * copies) % size if copies > 1 else None)
    return Records(columns, domain, max_records_per_person=table.max_records_per_person), maps


def passes(table: Records, rows: int = 7) -> Passes:
    """Return the rows of a table as rows that are read anew for each pass, so many at a time."""

    def read(counts: Counts) -> Counts:
        domain = counts.counter.domain
        for piece in table.pieces(rows):
            counts.add(Records({name: piece[name] for name in domain}, domain))
        return counts

    first = Passes.first(table.domain)
    first.add(table)
    return Passes(read, table.domain, table.max_records_per_person, first)


def _view(table: Records) -> View:
    base, maps = finer(table)
    return View(base, maps, table.domain)


def _view_of_passes(table: Records) -> Countable:
    base, maps = finer(table)
    return passes(base).view(maps, table.domain)


def _view_of_view(table: Records) -> Countable:
    base, maps = finer(table)
    turned = {name: np.arange(size)[::-1].copy() for name, size in table.domain.items()}
    other = Domain({f"turned {name}": size for name, size in table.domain.items()})
    behind = {
        f"turned {name}": (old, turned[name] if codes is None else turned[name][codes])
        for name, (old, codes) in maps.items()
    }
    back = {name: (f"turned {name}", turned[name]) for name in table.domain}
    return View(base, behind, other).view(back, table.domain)


def _cached(table: Records) -> Countable:
    pairs = [(a, b) for a, b in zip(table.domain, list(table.domain)[1:], strict=False)]
    return Cached(table).keep([*one_ways(table.domain), *pairs])


KINDS: dict[str, Callable[[Records], Countable]] = {
    "Records": lambda table: table,
    "View": _view,
    "View of View": _view_of_view,
    "Cached": _cached,
    "Passes": passes,
    "View of Passes": _view_of_passes,
    "Cached Passes": lambda table: Cached(passes(table)).keep([tuple(table.domain)[:2]]),
}
"""For each kind what makes one of a table; the counts must not tell them apart."""

GROUPED = [kind for kind in KINDS if kind != "View of View"]
"""Kinds that have the codes of attributes 0, 2, 4, ... as they are, so that rows can be grouped by them."""
