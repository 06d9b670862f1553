"""Run an audit: fits of two neighbouring tables, in several processes, and what they prove.

Half of the fits train a test, the other half judge it. A bound on the errors of the judged half fails with probability
`LUCK` at most, so an audit of a mechanism that keeps its promise finds something with that probability at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

from chicle._checks import integer
from chicle.audit.attacks import train
from chicle.audit.bounds import Promise
from chicle.audit.cases import case_names, case_of
from chicle.audit.evidence import Evidence, Notebook
from chicle.audit.finding import DELTA, LUCK, Finding
from chicle.audit.one_run import ONE_RUN, find_in_one_run
from chicle.audit.planted import BUGS
from chicle.errors import ParameterError

__all__ = ["audit", "find", "find_bugs", "judge", "worlds"]

_AT_ONCE = 250  # fits of a part: a process returns their evidence and gets the next part


def audit(
    names: Iterable[str] | None = None,
    *,
    runs: int = 2_000,
    jobs: int = 1,
    progress: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """Audit releases and mechanisms; return a finding for each.

    Parameters
    ----------
    names
        The cases, as `chicle audit --list` shows them; all of them by default.
    runs
        Fits of each of both tables.
    jobs
        How many processes fit at the same time.
    progress
        Called with each finding.

    Examples
    --------
    >>> (found,) = audit(["choice"], runs=300)
    >>> found.broken, found.least_mu <= found.mu
    (False, True)
    """
    chosen = [*case_names(), ONE_RUN] if names is None else list(names)
    for name in chosen:
        if name != ONE_RUN:
            case_of(name)
    return _each(chosen, lambda name: find(name, runs=runs, jobs=jobs), progress)


def find_bugs(
    names: Iterable[str] | None = None,
    *,
    runs: int = 1_000,
    jobs: int = 1,
    progress: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """Plant bugs, one after another, and audit the case that must show each; return a finding for each.

    Parameters
    ----------
    names
        The bugs, by their names in `chicle.audit.planted`; all of them by default.
    runs, jobs, progress
        As for `audit`.
    """
    chosen = list(BUGS) if names is None else list(names)
    for name in chosen:
        if name not in BUGS:
            raise ParameterError(f"there is no bug {name!r} to plant; there are {', '.join(BUGS)}")
    return _each(chosen, lambda name: find(BUGS[name].case, runs=runs, jobs=jobs, bug=name), progress)


def _each(
    names: Iterable[str], one: Callable[[str], Finding], progress: Callable[[Finding], None] | None
) -> list[Finding]:
    findings = []
    for name in names:
        findings.append(one(name))
        if progress is not None:
            progress(findings[-1])
    return findings


def find(name: str, *, runs: int, jobs: int = 1, bug: str | None = None) -> Finding:
    """Audit one case, with a planted bug if one is named."""
    integer("runs", runs, 4)
    if name == ONE_RUN:
        return find_in_one_run()
    return judge(name, *worlds(name, runs=runs, jobs=jobs, bug=bug), bug=bug)


def judge(name: str, without: Evidence, with_canary: Evidence, *, bug: str | None = None) -> Finding:
    """Return what the evidence of fits without the canary and with it proves."""
    half = without.fits // 2
    test = train(without.part(slice(half)), with_canary.part(slice(half)), LUCK)
    errors = test.errors(without.part(slice(half, None)), with_canary.part(slice(half, None)), LUCK)
    promise = Promise(
        gaussian=without.gaussian and with_canary.gaussian,
        rho=float(max(without.spent.max(), with_canary.spent.max())),
        discovered=float(max(without.discovered.max(), with_canary.discovered.max())),
    )
    return Finding(
        case=name,
        about=case_of(name).about,
        bug=bug,
        fits=without.fits + with_canary.fits,
        mu=promise.mu,
        epsilon=promise.epsilon(DELTA),
        least_mu=errors.mu(promise.discovered),
        least_epsilon=errors.epsilon(DELTA),
        by=test.name,
        broken=not promise.allows(errors),
    )


def worlds(name: str, *, runs: int, jobs: int = 1, bug: str | None = None) -> tuple[Evidence, Evidence]:
    """Fit both tables of a case so often; return the evidence of fits without the canary, and with it."""
    integer("jobs", jobs, 1, 256)
    parts = [(name, bug, seen, fits) for seen in (False, True) for fits in _parts(runs)]
    if jobs == 1:
        done = [_part(part) for part in parts]
    else:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            done = list(pool.map(_part, parts))
    return Evidence.joined(done[: len(done) // 2]), Evidence.joined(done[len(done) // 2 :])


def _parts(runs: int) -> Iterator[int]:
    while runs > 0:
        yield min(runs, _AT_ONCE)
        runs -= _AT_ONCE


def _part(part: tuple[str, str | None, bool, int]) -> Evidence:
    """Fit one of the tables a number of times."""
    name, bug, with_canary, fits = part
    with nullcontext() if bug is None else BUGS[bug].planted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to tiny tables, at a weak budget
        case = case_of(name)
        notebook = Notebook(case.pair)
        for _ in range(fits):
            notebook.note(case.release(with_canary=with_canary))
        return notebook.evidence()
