"""`chicle audit`: lower bounds on what releases reveal, from neighbouring tables; it reads no table of yours."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from chicle._checks import integer
from chicle._text import aligned
from chicle.audit import Finding, audit, find_bugs
from chicle.audit.cases import mechanism_cases, release_cases
from chicle.audit.finding import DELTA, LUCK
from chicle.audit.planted import BUGS
from chicle.cli.arguments import command
from chicle.cli.terminal import Progress, say
from chicle.errors import ParameterError

__all__ = ["add"]

_HELP = """\
Examples:
  chicle audit prism                   # fits two neighbouring tables 2,000 times each; about 15 seconds
  chicle audit                         # every kind of release and every mechanism
  chicle audit --planted               # is the audit any good? plants twelve bugs and must find each
  chicle audit --list                  # what can be audited

An audit fits a mechanism to a tiny made-up table and to the same table with one person more, and learns to tell which
was which. How rarely that is wrong proves how much is revealed at least; more than was promised means that something is
broken. That nothing is found is no proof, but an audit that finds planted bugs would probably find real ones.

Exit codes: 0 nothing was found (with --planted: every bug was); 1 otherwise.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "audit", "try to refute what releases promise", _HELP)
    made.add_argument("cases", metavar="MECHANISM", nargs="*", help="what to audit, or with --planted which bugs")
    made.add_argument("--runs", type=int, help="fits of each of both tables (default 2000; with --planted 1000)")
    made.add_argument("--jobs", type=int, help="processes that fit at the same time (default: all cores)")
    made.add_argument("--planted", action="store_true", help="plant bugs and audit what must show them")
    made.add_argument("--list", action="store_true", help="list what can be audited, and the bugs")
    output = made.add_mutually_exclusive_group()
    output.add_argument("--quiet", action="store_true", help="print nothing but errors")
    output.add_argument("--json", action="store_true", help="print the findings as JSON")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        say("\n".join(_listed()))
        return 0
    runs = integer("--runs", arguments.runs, 4) if arguments.runs is not None else None
    jobs = integer("--jobs", arguments.jobs, 1, 256) if arguments.jobs is not None else os.cpu_count() or 1
    if arguments.planted and (unknown := [name for name in arguments.cases if name not in BUGS]):
        raise ParameterError(f"there is no bug {unknown[0]!r} to plant; there are {', '.join(BUGS)}")
    with Progress(quiet=arguments.quiet or arguments.json) as progress:
        progress.say("auditing", total=len(arguments.cases) or None)
        look = find_bugs if arguments.planted else audit
        more = {} if runs is None else {"runs": runs}
        found = look(arguments.cases or None, jobs=jobs, progress=lambda _: progress.advance(1), **more)
    if arguments.json:
        say(json.dumps([one.to_dict() for one in found], indent=1))
    elif not arguments.quiet:
        say("\n".join(_told(found, planted=arguments.planted)))
    return 0 if all(one.broken is arguments.planted for one in found) else 1


def _listed() -> list[str]:
    cases = [(name, case.about) for name, case in (release_cases() | mechanism_cases()).items()]
    bugs = [(name, f"{bug.what} (found in: {bug.case})") for name, bug in BUGS.items()]
    return ["Releases and mechanisms:", *aligned(cases), "", "Bugs for --planted:", *aligned(bugs)]


def _told(found: list[Finding], *, planted: bool) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("bug" if planted else "audited", "promised mu", "at least", "epsilon", "at least", "by", "fits", "")
    ]
    for one in found:
        verdict = ("FOUND" if one.broken else "NOT FOUND") if planted else "BROKEN" if one.broken else ""
        figures = (f"{value:.2f}" for value in (one.mu, one.least_mu, one.epsilon, one.least_epsilon))
        rows.append((one.bug or one.case, *figures, one.by, f"{one.fits:,}", verdict))
    wrong = sum(one.broken for one in found)
    if planted:
        last = f"{wrong} of {len(found)} planted bugs were found."
    else:
        last = (
            "A promise is BROKEN: report it as SECURITY.md says." if wrong else "Nothing was found, which is no proof."
        )
    how = f"Epsilon is at delta {DELTA:g}; a bound is wrong with probability {LUCK:g} at most."
    return [*aligned(rows), "", how, last]
