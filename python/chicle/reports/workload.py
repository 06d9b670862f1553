"""The answers to a declared workload with exact standard errors, where a mechanism has them."""

from __future__ import annotations

import math
from statistics import NormalDist

from chicle._html import Markup, cut, table, tag
from chicle._text import percent
from chicle.releases.release import Release

__all__ = ["workload_answers"]

_SAID = """\
These tables were measured by contrasts: they agree with each other, and the noise of every cell is known exactly. A
cell of the answer is within the half-width of the true count with the confidence given. Synthetic records add an error
of their own."""
_MOST = 500


def workload_answers(release: Release, confidence: float) -> Markup | None:
    """Return the section on tables of contrasts; None if there are none."""
    tables = release.transcript.tables_of_contrasts(release.domain)
    if tables is None:
        return None
    widest = sorted(tables.cliques, key=len, reverse=True)
    held: set[frozenset[str]] = set()
    answered = []
    for clique in widest:
        if not any(set(clique) < larger for larger in held):
            answered.append(clique)
        held.add(frozenset(clique))
    z, total = NormalDist().inv_cdf((1 + confidence) / 2), max(release.total, 1)
    rows = []
    for clique in answered[:_MOST]:
        error, cells = math.sqrt(tables.variance(clique)), release.domain.cells(clique)
        noise = math.sqrt(2 / math.pi) * error * cells / (2 * total)
        names = " × ".join(cut(name, 40) for name in clique)
        rows.append([tag("bdi", names), f"{cells:,}", f"{error:.4g}", f"± {z * error:.4g}", f"{noise:.3f}"])
    head = ["table", "cells", "standard error", f"{percent(confidence)} of cells within", "noise as a distance"]
    more = tag("p", f"and {len(answered) - _MOST:,} more") if len(answered) > _MOST else None
    listing = tag("details", tag("summary", f"All answered tables ({len(answered):,})"), table(head, rows, 1), more)
    return tag("section", tag("h2", "Answers to the workload"), tag("p", _SAID), listing, id="workload")
