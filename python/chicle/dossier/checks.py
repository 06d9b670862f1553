"""Verify a release: that the file is whole, that everything was paid for, that the accounting comes out the same.

What can be checked from a release alone is checked. That noise was drawn as the events say, that the schema is public
and that no person has more rows than declared is not in the file; the dossier names who vouches for that.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chicle.counting.countable import UNITS
from chicle.dossier.groups import check_groups, of_a_group
from chicle.dossier.manifest import MANIFEST, check_signature, digest_of
from chicle.dossier.oracle import (
    SLACK,
    cost_of,
    delta_of,
    discovered_by,
    epsilon_by_dp_accounting,
    pure_epsilon_of,
)
from chicle.errors import ArtefactError, ChicleError
from chicle.measurements.persons import PERSONS
from chicle.privacy.budget import Budget
from chicle.privacy.events import DiscoveryEvent, Event, ExponentialEvent, GaussianEvent, LaplaceEvent, PureEvent
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Release, load

__all__ = ["Check", "check_release", "verify"]

_DELTA_SLACK = 1e-6  # what SLACK in rho is in delta, with room


@dataclass(frozen=True)
class Check:
    """One thing that was checked: what, whether it holds, and the figures."""

    what: str
    holds: bool
    detail: str = ""


def verify(path: str | Path, *, dossier: str | Path | None = None, key: str | Path | None = None) -> list[Check]:
    """Return what was checked of a release file, and of its dossier where one is given.

    Parameters
    ----------
    path
        The release.
    dossier
        The folder that `chicle dossier` wrote: its files must be those of its manifest, and of this release.
    key
        The steward's public key (PEM, ed25519), from a source that you trust: the manifest must be signed with it.

    Examples
    --------
    >>> import chicle, tempfile
    >>> release = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(2_000, d=3)).release_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/census.chicle")
    ...     all(check.holds for check in verify(f"{folder}/census.chicle"))
    True
    """
    try:
        release = load(path)
    except ArtefactError as error:
        return [Check("the file is a whole release", holds=False, detail=str(error))]
    checks = [Check("the file is a whole release", holds=True, detail="its checksum matches"), *check_release(release)]
    if dossier is not None:
        checks += _dossier(Path(path), Path(dossier), key)
    return checks


def check_release(release: Release) -> list[Check]:
    """Return what was checked of a release."""
    ledger = release.ledger
    if not isinstance(ledger, Ledger):
        return [Check("the accounting can be recomputed", holds=False, detail=ledger.summary())]
    protected = "the operating system's" if ledger.protected else "a test: NOT PRIVATE"
    checks = [Check("noise protects", ledger.protected, f"it came from {protected}"), _paid(release, ledger)]
    if (wrong := check_groups(release)) is not None:
        what = "no partition costs more than was paid for all of them"
        checks.append(Check(what, not wrong, wrong or f"partitions by {', '.join(release.partition)}"))
    return [*checks, _sensitivities(release, ledger), *_accounting(ledger)]


def _paid(release: Release, ledger: Ledger) -> Check:
    """Check that every released number has an event of its own."""
    have = Counter(_key(event) for event in ledger.events)
    have.subtract(_needed(release))
    lacking = sorted(str(key) for key, left in have.items() if left < 0)
    entries = sum(1 for _ in _needed(release))
    detail = f"{entries:,} releases in the transcript, {len(ledger.events):,} events"
    return Check("every release was paid for", not lacking, f"unpaid: {lacking[0]}" if lacking else detail)


def _key(event: Event) -> tuple[object, ...]:
    """Return what an event and a release that it pays for have in common."""
    if isinstance(event, ExponentialEvent):
        return "choice", round(event.epsilon, 12), event.values
    if isinstance(event, (GaussianEvent, PureEvent)):
        return "noise", event.clique, _same(event.sigma), event.values
    return event.kind, event.clique, event.values


def _needed(release: Release) -> Iterator[tuple[object, ...]]:
    """Yield the keys of the events that must have paid for a transcript."""
    apart = of_a_group(release)
    for one in (*release.measurements, *release.fine_one_ways):
        if not apart(one.query):
            yield "noise", one.clique, _same(one.sigma), one.values.size
    for scores in release.transcript.scores:
        if not apart(scores.queries[0]):
            yield "noise", None, _same(scores.sigma * UNITS), len(scores.queries)
    for choice in release.transcript.choices:
        if not apart(choice.query):
            yield "choice", round(choice.epsilon, 12), choice.among
    for sums in release.transcript.row_sums:
        yield "noise", None, _same(sums.sigma), sums.values.size
    if release.persons is not None:
        yield "noise", None, _same(release.persons.sigma), len(release.persons.values)


def _same(sigma: float) -> str:
    return f"{sigma:.9e}"


def _sensitivities(release: Release, ledger: Ledger) -> Check:
    """Check that no event says that a person moves counts by less than the k rows that one may have."""
    k = release.schema.max_records_per_person
    least = {"table": float(k), "score": float(k * UNITS)}
    for event in ledger.events:
        if isinstance(event, (GaussianEvent, DiscoveryEvent, LaplaceEvent)) and event.purpose != PERSONS:
            of_scores = event.purpose.endswith("records") and event.clique is None
            needed = least["score"] * math.sqrt(event.values) if of_scores else least["table"]
            if (event.sensitivity or 0.0) < needed * (1 - SLACK):
                said = f"{event.purpose!r} says {event.sensitivity:g}, k = {k} needs {needed:g}"
                return Check("sensitivities allow for all rows of a person", holds=False, detail=said)
    return Check("sensitivities allow for all rows of a person", holds=True, detail=f"k = {k}")


def _accounting(ledger: Ledger) -> list[Check]:
    """Recompute what was spent, and whether it keeps the promise."""
    budget, events = ledger.budget, ledger.events
    rho = math.fsum(cost_of(event, budget.accounting) for event in events)
    found = discovered_by(events)
    checks = [
        Check(
            "the sum of all costs comes out the same",
            math.isclose(rho, ledger.spent, rel_tol=SLACK, abs_tol=1e-300),
            f"rho {rho:.9g}, the ledger says {ledger.spent:.9g}",
        )
    ]
    if budget.discovery is not None:
        aside = budget.discovery
        checks.append(
            Check("discoveries stay within their delta", found <= aside * (1 + SLACK), f"{found:.4g} of {aside:.4g}")
        )
    pure = pure_epsilon_of(events)
    if budget.pure is not None:
        holds = pure <= budget.pure * (1 + SLACK)
        checks.append(Check("pure releases stay within their epsilon", holds, f"{pure:.4g} of {budget.pure:.4g}"))
    return checks + _promise(budget, events, rho, found, pure)


def _promise(budget: Budget, events: tuple[Event, ...], rho: float, found: float, pure: float) -> list[Check]:
    """Check the promise: what discoveries took of delta and pure releases of epsilon is not there for the rest."""
    if budget.epsilon is None or budget.delta is None:
        most = budget.mu**2 / 2 if budget.mu is not None else budget.rho
        kept = rho <= most * (1 + SLACK) and (not pure or pure <= (budget.epsilon or 0.0) * (1 + SLACK))
        return [Check("the promise is kept", kept, f"rho {rho:.9g} of {most:.9g}")]
    rest, left = budget.delta - found, budget.epsilon - pure
    delta = delta_of(left, rho, budget.accounting) if left > 0 else float(rho > 0)
    kept = delta <= rest * (1 + _DELTA_SLACK)
    said = f"at epsilon {budget.epsilon:g}, delta {delta + found:.6g} of {budget.delta:g}"
    checks = [Check("the promise is kept, in decimal arithmetic", kept, said)]
    epsilon = epsilon_by_dp_accounting(rest, events, budget.accounting)
    if epsilon is None:
        return [*checks, Check("the promise is kept, by dp-accounting", holds=True, detail="not installed: skipped")]
    within = epsilon + pure <= budget.epsilon * (1 + _DELTA_SLACK)
    said = f"at delta {budget.delta:g}, epsilon {epsilon + pure:.6g} of {budget.epsilon:g}"
    return [*checks, Check("the promise is kept, by dp-accounting", within, said)]


def _dossier(release: Path, folder: Path, key: str | Path | None) -> list[Check]:
    """Check the files of a dossier against its manifest, and its signature."""
    try:
        text = (folder / MANIFEST).read_bytes()
        told = json.loads(text)
        files, of_release = dict(told["files"]), told["release"]["sha256"]
        wrong = [
            name for name, digest in files.items() if Path(name).name != name or digest_of(folder / name) != digest
        ]
        same = of_release == digest_of(release)
    except (OSError, ValueError, LookupError, TypeError):
        return [
            Check("the dossier is whole", holds=False, detail=f"{folder} has no readable {MANIFEST} or lacks a file")
        ]
    detail = f"changed: {', '.join(wrong)}" if wrong else f"{len(files)} files are those of the manifest"
    checks = [
        Check("the dossier is whole", not wrong, detail),
        Check("the dossier is of this release", same, f"sha256 {of_release}"),
    ]
    try:
        signed = check_signature(folder, text, key)
    except ChicleError as error:
        return [*checks, Check("the manifest is signed", holds=False, detail=str(error))]
    if signed is not None:
        checks.append(Check("the manifest is signed", holds=True, detail=signed))
    return checks
