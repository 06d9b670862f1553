"""What a reviewer signs: who is protected, by how much, what was released, and what is taken for granted."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from chicle._text import percent
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Event, Ledger
from chicle.privacy.stated import StatedLedger
from chicle.releases.release import Release
from chicle.reports.html import Markup, Piece, cut, tag

__all__ = ["but_for", "privacy", "table"]

_MOST_EVENTS = 2_000
_DELTA = 1e-9

_ASSUMED = (
    "Names, values, bounds and bins of columns are public, or were bought: none was read off the data for free.",
    "The random generator of the operating system is sound.",
    "This is the only release of these people's data, or the budgets of all of them are added up.",
    "Timing and memory use of the computer were not observed.",
)


def privacy(release: Release) -> Markup:
    """Return the section on privacy."""
    ledger = release.ledger
    if isinstance(ledger, StatedLedger):
        stated = tag("p", "Stated elsewhere, not by chicle, which added no noise and can not check it: ", ledger.claim)
        return tag("section", tag("h2", "Privacy"), stated, _taken(release), id="privacy")
    budget, k = ledger.budget, release.schema.max_records_per_person
    rows: list[tuple[Piece, Piece]] = [
        ("Neighbours", "two tables, one of which is the other with one person added or removed"),
        ("Rows of a person", f"at most {k} (max_records_per_person)"),
    ]
    if budget.epsilon is not None and budget.delta is not None:
        rows.append(("Promised", f"({budget.epsilon:g}, {budget.delta:g})-differential privacy"))
        rows.append(("Spent", f"ε {ledger.epsilon():.4g} at δ {budget.delta:g}, rounded up"))
    else:
        promised = f"μ {budget.mu:g} of Gaussian DP" if budget.mu is not None else f"ρ {budget.rho:g} of zCDP"
        rows.append(("Promised", promised + but_for(budget)))
        if ledger.spent:
            delta = _DELTA + ledger.discovered
            rows.append(("Spent", f"ε {ledger.epsilon(delta):.4g} at δ {delta:.4g}, rounded up"))
    if ledger.discovered:
        rows.append(("δ of discovered values", f"{ledger.discovered:.4g}, part of the δ above"))
    rows += [
        ("ρ", f"{ledger.spent:.6g} of {budget.rho:.6g}"),
        ("μ", f"{math.sqrt(2 * ledger.spent):.6g} of {math.sqrt(2 * budget.rho):.6g} (μ² = 2ρ)"),
        (
            "Accounting",
            {"gdp": "exact Gaussian DP", "zcdp": "zero-concentrated DP"}.get(budget.accounting, budget.accounting),
        ),
        ("Noise", _noise(ledger)),
        ("Releases", f"{len(ledger.events):,}, of {sum(event.values for event in ledger.events):,} values"),
    ]
    told = tag("table", [tag("tr", tag("th", head), tag("td", said)) for head, said in rows], class_="facts")
    return tag(
        "section",
        tag("h2", "Privacy"),
        tag("div", told, _taken(release), class_="two"),
        tag("h3", "What the budget was spent on"),
        _by_purpose(ledger),
        _all_events(ledger),
        id="privacy",
    )


def table(head: Sequence[Piece], rows: Sequence[Sequence[Piece]], numbers: int = 1, until: int = 99) -> Markup:
    """Return a table; columns from `numbers` to before `until` are aligned to the right."""

    def cells(kind: str, row: Sequence[Piece]) -> Markup:
        return tag("tr", [tag(kind, cell, class_="n" if numbers <= i < until else None) for i, cell in enumerate(row)])

    body = tag("tbody", [cells("td", row) for row in rows])
    return tag("div", tag("table", tag("thead", cells("th", head)), body), class_="scroll")


def but_for(budget: Budget) -> str:
    """Return what discovery takes of a promise that names no delta, in words."""
    if budget.delta is not None or budget.discovery is None:
        return ""
    return f", but for an event of probability {budget.discovery:g}"


def _taken(release: Release) -> Markup:
    assumed = tag("ul", [tag("li", note) for note in (*release.notes, *_ASSUMED)])
    blank = tag("span", class_="blank")
    signed = tag("p", "Reviewed by ", blank, " on ", blank, class_="sign")
    return tag("div", tag("h3", "What is taken for granted"), assumed, signed)


def _noise(ledger: Ledger) -> str:
    if not ledger.private:
        return "TEST NOISE from a seed: not private"
    kinds = sorted({event.kind for event in ledger.events})
    named = {
        "gaussian": "exactly rounded Gaussian",
        "laplace": "exact discrete Laplace",
        "discovery": "exactly rounded Gaussian with a threshold",
    }
    said = ", ".join(named.get(kind, kind) for kind in kinds) or "none"
    return f"{said}, from the operating system's random generator"


def _by_purpose(ledger: Ledger) -> Markup:
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in ledger.events:
        groups[event.purpose].append(event)
    how, whole = ledger.budget.accounting, ledger.budget.rho
    rows = []
    for purpose, events in groups.items():
        cost = math.fsum(event.rho(how) for event in events)
        values = sum(event.values for event in events)
        rows.append([cut(purpose, 60), f"{len(events):,}", f"{values:,}", f"{cost:.4g}", percent(cost / whole)])
    return table(["release", "how many", "values", "ρ", "share of the budget"], rows)


def _all_events(ledger: Ledger) -> Markup:
    how, rows = ledger.budget.accounting, []
    for event in ledger.events[:_MOST_EVENTS]:
        sensitivity = getattr(event, "l2_sensitivity", getattr(event, "l1_sensitivity", None))
        of = "-" if event.clique is None else " × ".join(cut(name, 40) for name in event.clique) or "number of records"
        rows.append(
            [
                cut(event.purpose, 60),
                tag("bdi", of),
                f"{event.values:,}",
                "-" if sensitivity is None else f"{sensitivity:g}",
                event.noise,
                f"{event.rho(how):.4g}",
            ]
        )
    more = len(ledger.events) - len(rows)
    end = tag("p", f"and {more:,} more") if more else None
    head = tag("summary", f"The ledger: every release ({len(ledger.events):,})")
    return tag("details", head, table(["release", "of", "values", "sensitivity", "noise", "ρ"], rows, 2), end)
