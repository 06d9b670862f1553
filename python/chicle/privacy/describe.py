"""A ledger in words: a table and a summary for a terminal, terms for a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chicle._text import aligned, percent
from chicle.privacy.guarantee import Terms
from chicle.privacy.strength import in_words

if TYPE_CHECKING:
    from chicle.privacy.ledger import Ledger

__all__ = ["ledger_rows", "ledger_summary", "ledger_table", "ledger_terms"]

_MOST_LINES, _FIRST, _LAST = 24, 13, 10
_DELTA = 1e-9  # at which epsilon is reported where the budget names no delta

_NOISE = {
    "gaussian": "exactly rounded Gaussian",
    "laplace": "exact discrete Laplace",
    "parallel": "that of each group",
    "pure": "exact discrete Laplace",
    "discovery": "exactly rounded Gaussian with a threshold",
}
_ACCOUNTING = {"gdp": "exact Gaussian DP", "zcdp": "zero-concentrated DP"}

_ASSUMPTIONS = (
    "Names, values, bounds and bins of columns are public, or the budget paid for them.",
    "The random generator of the operating system is sound.",
    "This is the only release of these people's data, or the budgets of all their releases are added up.",
    "Nobody observed the computer's timing or memory use.",
)


def ledger_rows(ledger: Ledger) -> list[tuple[str, ...]]:
    """Return the entries of a ledger as the rows of a table, the head first; none if there are no entries."""
    if not ledger.entries:
        return []
    rows: list[tuple[str, ...]] = [("release", "of", "values", "sensitivity", "noise", "rho", "share")]
    for event, cost, share in ledger.entries:
        rows.append(
            (
                event.purpose,
                "-" if event.clique is None else " x ".join(event.clique) or "total",
                f"{event.values:,}",
                "-" if event.sensitivity is None else f"{event.sensitivity:g}",
                event.noise,
                f"ε {event.pure:.4g}" if event.pure else f"{cost:.4g}",
                percent(share),
            )
        )
    return rows


def ledger_table(ledger: Ledger) -> list[str]:
    """Return the entries of a ledger as the lines of a table; the middle of a long one is left out."""
    rows = ledger_rows(ledger)
    lines = aligned(rows) if rows else []
    if len(lines) > _MOST_LINES:
        lines[_FIRST:-_LAST] = [f"... {len(lines) - _FIRST - _LAST} more releases"]
    return lines


def ledger_summary(ledger: Ledger) -> str:
    """Return what a ledger spent, in a line, and what its budget means in words, or that test noise was used."""
    budget = ledger.budget
    if budget.pure == budget.epsilon is not None:
        line = f"spent epsilon {ledger.pure:.4g} of {budget.epsilon:g}, all of it pure: delta is 0"
        return f"{line}\n{in_words(budget)}" if ledger.protected else f"{line}\nNOT PRIVATE: made with test noise"
    line = f"spent rho {ledger.spent:.4g} of {budget.rho:.4g}"
    if budget.delta is not None:
        line += f", which is epsilon {ledger.epsilon():.4g} of {budget.epsilon:g} at delta {budget.delta:g}"
    if budget.discovery is not None:
        line += ", of which" if budget.delta is not None else "; of delta,"
        line += f" discovery took {ledger.discovered:.4g} of {budget.discovery:.4g}"
    if budget.pure is not None:
        line += f"; pure releases took epsilon {ledger.pure:.4g} of {budget.pure:.4g}"
    line += f" (accounting: {budget.accounting})"
    return f"{line}\n{in_words(budget)}" if ledger.protected else f"{line}\nNOT PRIVATE: made with test noise"


def ledger_terms(ledger: Ledger, max_records_per_person: int) -> Terms:
    """Return the guarantee that a ledger keeps, in words, for a report."""
    budget, k = ledger.budget, max_records_per_person
    # Without a delta of its own, the promise holds except with the probability that discovery takes.
    exception = f", except with probability {budget.discovery:g}" if budget.discovery is not None else ""
    if budget.pure == budget.epsilon is not None:
        promise, condition = f"ε = {budget.epsilon:g}", ""
        promised = f"{budget.epsilon:g}-differential privacy (pure: δ is 0)"
    elif budget.delta is not None:
        promise, condition = f"ε = {budget.epsilon:g}", f" at δ = {budget.delta:g}"
        promised = f"({budget.epsilon:g}, {budget.delta:g})-differential privacy"
    elif budget.mu is not None:
        promise, condition = f"μ = {budget.mu:g}", exception
        promised = f"μ {budget.mu:g} of Gaussian DP{exception}"
    else:
        promise, condition = f"ρ = {budget.rho:g}", exception
        promised = f"ρ {budget.rho:g} of zCDP{exception}"
    facts = [
        ("Neighbours", "two tables, one of which is the other with one person added or removed"),
        ("Rows of a person", f"at most {k} (max_records_per_person)"),
        ("Promised", promised),
        ("In words", in_words(budget)),
    ]
    if budget.delta is not None:
        facts.append(("Spent", f"ε {ledger.epsilon():.4g} at δ {budget.delta:g}, rounded up"))
    elif ledger.spent:
        delta = _DELTA + ledger.discovered
        facts.append(("Spent", f"ε {ledger.epsilon(delta):.4g} at δ {delta:.4g}, rounded up"))
    if ledger.discovered:
        facts.append(("δ of discovered values", f"{ledger.discovered:.4g}, part of the δ above"))
    if budget.pure is not None:
        facts.append(("ε of pure releases", f"{ledger.pure:.4g}, part of the ε above"))
    facts += [
        ("ρ", f"{ledger.spent:.6g} of {budget.rho:.6g}"),
        ("μ", f"{math.sqrt(2 * ledger.spent):.6g} of {math.sqrt(2 * budget.rho):.6g} (μ² = 2ρ)"),
        ("Accounting", _ACCOUNTING.get(budget.accounting, budget.accounting)),
        ("Noise", _noise(ledger)),
        ("Releases", f"{len(ledger.events):,}, of {sum(event.values for event in ledger.events):,} values"),
    ]
    person = f"one person of at most {k} row{'s' if k > 1 else ''}, added or removed"
    return Terms(
        promise=promise,
        condition=condition,
        detail=f"{percent(math.fsum(entry.share for entry in ledger.entries))} of the budget spent; protects {person}",
        caveat="",
        facts=tuple(facts),
        assumptions=_ASSUMPTIONS,
    )


def _noise(ledger: Ledger) -> str:
    if not ledger.protected:
        return "TEST NOISE from a seed: not private"
    kinds = sorted({event.kind for event in ledger.events})
    names = ", ".join(_NOISE.get(kind, kind) for kind in kinds) or "none"
    return f"{names}, from the operating system's random generator"
