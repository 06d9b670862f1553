"""The section that a reviewer signs: the guarantee, what was released, and what is taken for granted."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from chicle._html import Markup, cut, table, tag
from chicle._text import percent
from chicle.privacy.guarantee import Entry, Guarantee
from chicle.releases.release import Release
from chicle.schema.sources import needs_source

__all__ = ["privacy"]

_MOST_EVENTS = 2_000
_MOST_NAMED = 10


def privacy(release: Release) -> Markup:
    """Return the section on privacy."""
    terms = release.ledger.terms(release.schema.max_records_per_person)
    known = [*terms.facts, *_about_data(release)]
    facts = tag("table", [tag("tr", tag("th", head), tag("td", said)) for head, said in known], class_="facts")
    assumed = tag("ul", [tag("li", note) for note in (*release.notes, *terms.assumptions, _sources(release))])
    blank = tag("span", class_="blank")
    signed = tag("p", "Reviewed by ", blank, " on ", blank, class_="sign")
    taken = tag("div", tag("h3", "What is taken for granted"), assumed, signed)
    return tag(
        "section",
        tag("h2", "Privacy"),
        tag("div", facts, taken, class_="two"),
        _spending(release.ledger) if release.ledger.entries else None,
        id="privacy",
    )


def _about_data(release: Release) -> list[tuple[str, str]]:
    """Return what is declared about the data, and whether the budget is weak."""
    heads = {"name": "Data", "date": "Date of the data", "rows": "Rows, as declared", "drafted": "Schema drafted on"}
    facts = [(head, cut(release.schema.data[key], 200)) for key, head in heads.items() if key in release.schema.data]
    return facts + [("WEAK", one) for one in release.weakness]


def _sources(release: Release) -> str:
    """Return a sentence on where the declarations of columns are publicly known."""
    columns = [name for name, column in release.schema.columns.items() if needs_source(column)]
    silent = [name for name in columns if release.schema.columns[name].source is None]
    if not silent:
        return "The schema names a public source for the declaration of every column; it is listed below."
    if len(silent) == len(columns):
        return "The schema names no source for its values, bounds and bins: that they are public is its author's word."
    named = ", ".join(cut(name, 40) for name in silent[:_MOST_NAMED])
    more = f" and {len(silent) - _MOST_NAMED:,} more" if len(silent) > _MOST_NAMED else ""
    return f"The schema names no source for {named}{more}: that these are public is its author's word."


def _spending(ledger: Guarantee) -> list[Markup]:
    return [tag("h3", "What the budget was spent on"), _by_purpose(ledger), _all_entries(ledger)]


def _by_purpose(ledger: Guarantee) -> Markup:
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in ledger.entries:
        groups[entry.event.purpose].append(entry)
    rows = []
    for purpose, entries in groups.items():
        share = math.fsum(entry.share for entry in entries)
        values = sum(entry.event.values for entry in entries)
        rows.append([cut(purpose, 60), f"{len(entries):,}", f"{values:,}", _cost(entries), percent(share)])
    return table(["release", "how many", "values", "ρ", "share of the budget"], rows)


def _cost(entries: Sequence[Entry]) -> str:
    """Return what releases cost: in epsilon, if that was set aside for them, or in rho."""
    pure = math.fsum(entry.event.pure for entry in entries)
    return f"ε {pure:.4g}" if pure else f"{math.fsum(entry.rho for entry in entries):.4g}"


def _all_entries(ledger: Guarantee) -> Markup:
    rows = []
    for entry in ledger.entries[:_MOST_EVENTS]:
        event = entry.event
        of = "-" if event.clique is None else " × ".join(cut(name, 40) for name in event.clique) or "number of records"
        rows.append(
            [
                cut(event.purpose, 60),
                tag("bdi", of),
                f"{event.values:,}",
                "-" if event.sensitivity is None else f"{event.sensitivity:g}",
                event.noise,
                _cost([entry]),
            ]
        )
    more = len(ledger.entries) - len(rows)
    end = tag("p", f"and {more:,} more") if more else None
    head = tag("summary", f"The ledger: every release ({len(ledger.entries):,})")
    return tag("details", head, table(["release", "of", "values", "sensitivity", "noise", "ρ"], rows, 2), end)
