"""`chicle ledger`: what one body of data has cost, from the file that keeps it; and the arguments that spend on it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from chicle._text import aligned
from chicle.cli.arguments import Parser, command, subcommands
from chicle.cli.terminal import say
from chicle.errors import ArtefactError, ParameterError
from chicle.mechanisms.base import Mechanism
from chicle.privacy import Budget, Ledger
from chicle.privacy.hold import total_up
from chicle.privacy.store import KeptLedger, read_kept
from chicle.privacy.strength import check_strength
from chicle.releases.release import load
from chicle.schema import Schema

__all__ = ["add", "add_ledger", "check_ledger", "opened_ledger"]

_HELP = """\
Example:
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --ledger people.ledger --total-epsilon 3
  chicle ledger show people.ledger                     # what was released, what it cost, what is left
  chicle ledger history people.ledger                  # each fit, when it was, and the sum up to it
  chicle ledger verify people.ledger made.chicle       # is the file whole, and is this release in it?

One file for one body of data: keep it beside the data, back it up after each run, and never copy it to spend on both.
These commands read it only. See docs/ledger.md.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    group = subcommands(command(commands, "ledger", "show and verify what a body of data has cost so far", _HELP))
    show = command(group, "show", "print all releases and the sum of their costs", _HELP)
    show.add_argument("file", metavar="LEDGER", help="the file of the ledger")
    show.add_argument("--json", action="store_true", help="print JSON instead of a table")
    show.set_defaults(run=_show)
    history = command(group, "history", "print each fit: when, what it cost, and the sum up to it", _HELP)
    history.add_argument("file", metavar="LEDGER", help="the file of the ledger")
    history.add_argument("--json", action="store_true", help="print JSON instead of a table")
    history.set_defaults(run=_history)
    verify = command(group, "verify", "check that the file is whole and that releases are in it", _HELP)
    verify.add_argument("file", metavar="LEDGER", help="the file of the ledger")
    verify.add_argument("releases", metavar="RELEASE", nargs="*", help="releases that must be in it")
    verify.set_defaults(run=_verify)


def add_ledger(parser: Parser) -> None:
    """Add the ledger that a command spends on."""
    group = parser.add_argument_group("one ledger for all releases from the same people's data")
    group.add_argument(
        "--ledger", metavar="FILE", help="the file that keeps what was spent; it is made if --total-epsilon is given"
    )
    group.add_argument(
        "--total-epsilon", type=float, metavar="E", help="what all releases may cost in all; fixed with the first one"
    )
    group.add_argument(
        "--total-delta", type=float, metavar="D", help="the delta of that guarantee (default: that of --delta)"
    )


def check_ledger(arguments: argparse.Namespace, synth: Mechanism, schema: Schema) -> None:
    """Raise for a ledger that cannot be opened, before anything is written."""
    if arguments.ledger is None:
        if arguments.total_epsilon is not None or arguments.total_delta is not None:
            raise ParameterError("--total-epsilon and --total-delta are those of a ledger; give --ledger FILE too")
        return
    path = Path(arguments.ledger)
    if path.is_dir():
        raise ParameterError(f"{path} is a folder; name a file in it")
    if not path.exists() and arguments.total_epsilon is None:
        raise ParameterError(f"there is no ledger {path} yet; give --total-epsilon, what all releases may cost in all")
    total = _total(arguments, synth)
    if total is not None:
        check_strength(total, schema.rows, allowed=synth.allow_weak)


def opened_ledger(arguments: argparse.Namespace, synth: Mechanism) -> Ledger | None:
    """Return the ledger that pays, if one was named."""
    return None if arguments.ledger is None else Ledger.open(arguments.ledger, _total(arguments, synth))


def _total(arguments: argparse.Namespace, synth: Mechanism) -> Budget | None:
    """Return the budget of the arguments; of a ledger that exists, only what was given must agree."""
    epsilon, delta = arguments.total_epsilon, arguments.total_delta
    if Path(arguments.ledger).exists() and Path(arguments.ledger).stat().st_size:
        kept = read_kept(arguments.ledger).budget
        for name, given, there in (("epsilon", epsilon, kept.epsilon), ("delta", delta, kept.delta)):
            if given is not None and given != there:
                raise ParameterError(
                    f"{arguments.ledger} was opened with {kept}; leave --total-{name} {given:g} out, or name another "
                    "file for other people's data"
                )
        return None
    delta = arguments.delta if delta is None else delta
    return Budget(epsilon=epsilon, delta=delta, accounting=synth.budget.accounting)


def _show(arguments: argparse.Namespace) -> int:
    ledger = read_kept(arguments.file)
    if arguments.json:
        figures = {**ledger.figures(), "remaining": {"rho": ledger.remaining}, "reserved": {"rho": ledger.reserved}}
        say(json.dumps({**figures, "ledger": ledger.to_dict(), "head": ledger.head}, indent=1))
        return 0
    left = ledger.remaining
    lines = [repr(ledger), f"left rho {left:.4g}{_worth(ledger, left)}"]
    if ledger.reserved:
        lines.append(f"reserved rho {ledger.reserved:.4g} by fits that run, or were killed and nobody has spent since")
    say("\n".join(lines))
    return 0


def _worth(ledger: KeptLedger, left: float) -> str:
    """Return the epsilon of a fit that takes all that is left."""
    delta = ledger.budget.delta
    if delta is None or left < 1e-6 * ledger.budget.rho:
        return ""
    return f", which is a fit of epsilon {ledger.budget.epsilon_at(delta, left):.4g} at delta {delta:g}"


def _history(arguments: argparse.Namespace) -> int:
    ledger = read_kept(arguments.file)
    rows: list[tuple[str, ...]] = [("begun (UTC)", "what", "how it ended", "releases", "rho", "sum of rho", "epsilon")]
    told, before = [], []
    discovered = 0.0
    for session in ledger.sessions:
        cost = total_up(rho for _, rho in session.paid)
        before += [rho for _, rho in session.paid]
        total = total_up(before)
        delta = ledger.budget.delta
        discovered = total_up((discovered, *(event.delta for event, _ in session.paid)))
        epsilon = None if delta is None or not total else ledger.budget.epsilon_at(delta, total, discovered)
        told.append(
            {
                "begun": session.begun,
                "ended": session.ended,
                "what": session.title,
                "how": session.how,
                "releases": len(session.paid),
                "rho": cost,
                "sum of rho": total,
                "epsilon": epsilon,
            }
        )
        shown = "-" if epsilon is None else f"{epsilon:.4g}"
        when = session.begun.removesuffix("+00:00").replace("T", " ")
        rows.append((when, session.title, session.how, f"{len(session.paid):,}", f"{cost:.4g}", f"{total:.4g}", shown))
    say(json.dumps(told, indent=1) if arguments.json else "\n".join([*aligned(rows), ledger.summary()]))
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    ledger = read_kept(arguments.file)  # every record and the chain of checksums are checked here
    if not (ledger.spent <= ledger.budget.rho and ledger.discovered <= (ledger.budget.discovery or 0.0)):
        raise ArtefactError(f"{arguments.file} holds more than its budget; somebody wrote it without chicle")
    there = Counter(ledger.events)
    for path in arguments.releases:
        release = load(path)
        if not isinstance(release.ledger, Ledger):
            raise ArtefactError(
                f"{path} holds somebody else's claim instead of a ledger; nothing of it can be verified"
            )
        if Counter(release.ledger.events) - there:
            raise ArtefactError(
                f"{path} has releases that are not in {arguments.file}: it was made on another ledger, or this file is "
                "older than the release. Restore the newest file before anything is spent"
            )
    events, sessions = len(ledger.events), len(ledger.sessions)
    fits = "1 fit" if sessions == 1 else f"{sessions:,} fits"
    say(f"{arguments.file} is whole: {events:,} releases in {fits}, within its budget; checksum {ledger.head[:16]}")
    for path in arguments.releases:
        say(f"{path} is in it")
    return 0
