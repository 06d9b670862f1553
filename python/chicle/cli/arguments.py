"""Arguments that several commands share, and the checks of them."""

from __future__ import annotations

import argparse
import re
from inspect import signature
from typing import Any, NoReturn

from chicle._checks import check_seed, integer, threads_or_all
from chicle.discovery import Discovery
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.mechanisms import BY_NAME
from chicle.mechanisms.base import Mechanism
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = [
    "Parser",
    "add_budget",
    "add_draw",
    "add_output",
    "check_draw",
    "command",
    "mechanism",
    "numbers",
    "subcommands",
    "workload",
]


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read on."""
        self.exit(2, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")


def command(commands: Any, name: str, what: str, epilog: str) -> Parser:  # noqa: ANN401 - argparse hides its type
    """Add a command, or make the parser of all of them if `commands` is None."""
    told: dict[str, Any] = {
        "description": what[0].upper() + what[1:].rstrip(".") + ".",
        "epilog": epilog,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
    made: Parser = Parser(prog=name, **told) if commands is None else commands.add_parser(name, help=what, **told)
    return made


def subcommands(parser: Parser) -> Any:  # noqa: ANN401 - argparse hides its type
    """Let a parser have commands, one of which must be given."""
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)


def add_output(parser: Parser, what: str) -> None:
    """Add where the result goes."""
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=what)
    parser.add_argument("--force", action="store_true", help="replace what is there already")


def add_budget(parser: Parser, *, several: bool = False) -> None:
    """Add what makes a mechanism; with `several`, epsilon may be a list."""
    what = "the privacy budget; 1 is a common choice"
    if several:
        parser.add_argument("--epsilon", type=numbers, required=True, help=f"{what}; 0.2,1,5 compares three")
    else:
        parser.add_argument("--epsilon", type=float, required=True, help=what)
    parser.add_argument("--delta", type=float, required=True, help="well below 1 / number of people, such as 1e-9")
    parser.add_argument("--mechanism", choices=BY_NAME, default="prism", help="how; prism by default")
    parser.add_argument(
        "--workload",
        metavar="FILE",
        help="the marginals that matter, with --mechanism aim and others that ask for them: a JSON file as "
        "chicle.Workload.to_json writes, or all-2way, all-3way, target:COLUMN",
    )
    parser.add_argument(
        "--discovery",
        type=float,
        metavar="SHARE",
        help="share of the budget for open columns and private bins; by default 0.05 for each, 0.2 at most",
    )


def mechanism(arguments: argparse.Namespace, epsilon: float, schema: Schema) -> Mechanism:
    """Return the mechanism that was asked for, or refuse a budget or a workload that is none."""
    make = BY_NAME[arguments.mechanism]
    threads = threads_or_all(getattr(arguments, "threads", None))
    discovery = None if arguments.discovery is None else Discovery(share=arguments.discovery)
    told: dict[str, Any] = {}
    if arguments.workload is not None:
        asking = [name for name, one in BY_NAME.items() if "workload" in signature(one).parameters]
        if arguments.mechanism not in asking:
            raise ParameterError(f"{arguments.mechanism} takes no --workload; {', '.join(asking)} do")
        told["workload"] = workload(arguments.workload, schema.model.domain)
    synth = make(epsilon=epsilon, delta=arguments.delta, discovery=discovery, threads=threads, **told)
    _ = synth.budget
    return synth


def workload(text: str, domain: Domain) -> Workload:
    """Return the workload of a file, or of a word for one."""
    if found := re.fullmatch(r"all-(\d+)way", text):
        return Workload.all_kway(domain, int(found[1]))
    if text.startswith("target:"):
        return Workload.target(domain, text.removeprefix("target:"))
    return Workload.load(text)


def numbers(text: str) -> list[float]:
    """Return numbers that were given with commas between them."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid float value: {text!r}") from None


def add_draw(parser: Parser) -> None:
    """Add what governs the draw of a table."""
    parser.add_argument("-n", type=int, help="how many rows; by default the private estimate of the table's own number")
    parser.add_argument("--seed", type=int, help="fixes the draw, never the noise")
    parser.add_argument("--threads", type=int, help="how many threads to use; all there are by default")
    told = parser.add_mutually_exclusive_group()
    told.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    told.add_argument("--json", action="store_true", help="print a summary as JSON, for a program")


def check_draw(arguments: argparse.Namespace) -> None:
    """Refuse now what `sample` would refuse later."""
    if arguments.n is not None:
        integer("-n", arguments.n, 0)
    check_seed(arguments.seed)
    threads_or_all(arguments.threads)
