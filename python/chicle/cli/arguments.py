"""Arguments that several commands share, and their checks."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn, get_args

from chicle._checks import check_seed, integer, threads_or_all
from chicle.analyses import Analysis, analysis_of
from chicle.analyses.run import ANALYSIS_SHARE
from chicle.cli.terminal import warn
from chicle.codecs import Codec
from chicle.discovery import Discovery
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.measurements.public_rows import Role
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.variants import mechanism_names, named_mechanism
from chicle.public import PublicData
from chicle.schema import Schema
from chicle.sources.dialect import Dialect, DialectPath, dialect_of
from chicle.sources.files import find_files
from chicle.sources.table_files import check_ending
from chicle.workload import Workload

__all__ = [
    "Parser",
    "add_analyses",
    "add_budget",
    "add_dialect",
    "add_draw",
    "add_output",
    "add_partition",
    "add_public",
    "analyses",
    "check_draw",
    "command",
    "count",
    "mechanism",
    "names",
    "numbers",
    "partitioned",
    "public_data",
    "subcommands",
    "tables",
    "workload",
]


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with what is wrong and where to read more."""
        self.exit(2, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")


def command(commands: Any, name: str, what: str, epilog: str) -> Parser:  # noqa: ANN401 - argparse hides its type
    """Add a command, or make the main parser if `commands` is None."""
    texts: dict[str, Any] = {
        "description": what[0].upper() + what[1:].rstrip(".") + ".",
        "epilog": epilog,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
    made: Parser = Parser(prog=name, **texts) if commands is None else commands.add_parser(name, help=what, **texts)
    return made


def subcommands(parser: Parser) -> Any:  # noqa: ANN401 - argparse hides its type
    """Give a parser subcommands, one of which is required."""
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)


def add_output(parser: Parser, what: str) -> None:
    """Add the output file and whether to replace it."""
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=what)
    parser.add_argument("--force", action="store_true", help="replace output files that exist")


def add_dialect(parser: Parser) -> None:
    """Add how CSV files are written, for files where sniffing is not enough."""
    group = parser.add_argument_group("how CSV files are written (sniffed, and said, unless given)")
    group.add_argument("--delimiter", metavar="CHAR", help="the separator of fields, such as ';' or tab")
    group.add_argument("--decimal", metavar="CHAR", help="the decimal mark: . or ,")
    group.add_argument("--encoding", metavar="NAME", help="the encoding of the text, such as utf-8 or latin-1")


def tables(arguments: argparse.Namespace, given: str | Sequence[str], *, said: bool = True) -> list[Path]:
    """Return the files of paths and patterns, with the dialect of the arguments.

    If `said`, a file in which something else than commas, decimal points and UTF-8 was sniffed is named.
    """
    dialect = Dialect(arguments.delimiter, arguments.decimal, arguments.encoding)
    several = [given] if isinstance(given, str) else given
    paths = [DialectPath.of(path, dialect) for path in find_files(several)]
    told: dict[str, str] = {}
    for path in paths:
        if (
            path.exists()
            and check_ending(path) in (".csv", ".tsv")
            and not (read := dialect_of(path)).plain_but(dialect)
        ):
            told.setdefault(str(read), str(path))
    for how, name in told.items():
        if said and name.lower().removesuffix(".gz").endswith(".csv"):
            warn(f"{name} is read with {how}")
    return list(paths)


def add_budget(parser: Parser, *, several: bool = False) -> None:
    """Add the parameters of a mechanism; with `several`, epsilon may be a list."""
    what = "the privacy budget: smaller is more private, larger is more accurate; 1 is common"
    if several:
        parser.add_argument("--epsilon", type=numbers, required=True, help=f"{what}; 0.2,1,5 plans three")
    else:
        parser.add_argument("--epsilon", type=float, required=True, help=what)
    parser.add_argument(
        "--delta",
        type=float,
        required=True,
        help="the delta of the guarantee: well below 1 / number of people, such as 1e-9",
    )
    parser.add_argument(
        "--allow-weak",
        action="store_true",
        help="allow an epsilon above 10, or a delta that is not below 1/(10 n) for n rows",
    )
    parser.add_argument(
        "--mechanism",
        choices=mechanism_names(public=True),
        default="prism",
        help="how to make the table (default prism)",
    )
    parser.add_argument(
        "--workload",
        metavar="FILE",
        help="the marginals that matter, for --mechanism aim and others that take a workload: all-2way, all-3way, "
        "target:COLUMN, or a JSON file as chicle.Workload.to_json writes",
    )
    parser.add_argument(
        "--discovery",
        type=float,
        metavar="SHARE",
        help="share of the budget for finding the values of open columns and private bins (default 0.05 for each such "
        "column, 0.2 at most)",
    )


def add_public(parser: Parser) -> None:
    """Add a public table and what it may be used for."""
    parser.add_argument(
        "--public",
        metavar="FILE",
        help="a public table with some or all columns of the schema; it costs nothing (docs/public-data.md)",
    )
    parser.add_argument(
        "--public-role",
        choices=get_args(Role),
        default="evidence",
        help="evidence (default): used as far as noisy counts bear it out; trusted: you vouch that its rows are alike",
    )


def public_data(arguments: argparse.Namespace) -> PublicData | None:
    """Return the public table of the arguments, if there is one."""
    if arguments.public is None:
        return None
    found = tables(arguments, arguments.public)
    return PublicData(
        found if len(found) > 1 else found[0], role=arguments.public_role, name=Path(arguments.public).name
    )


def add_analyses(parser: Parser) -> None:
    """Add declared analyses and their share of the budget."""
    parser.add_argument(
        "--analysis",
        metavar="FORMULA",
        action="append",
        default=[],
        help='a regression to answer with valid intervals, such as "logit: died ~ age + C(region)" or "linear: ..." or '
        '"poisson: ..."; may be given several times',
    )
    parser.add_argument(
        "--analysis-share",
        type=float,
        metavar="SHARE",
        default=ANALYSIS_SHARE,
        help=f"share of the budget that all analyses get (default {ANALYSIS_SHARE:g})",
    )


def add_partition(parser: Parser) -> None:
    """Add the columns that form partitions."""
    parser.add_argument(
        "--partition",
        metavar="COLUMN,...",
        type=names,
        help="columns whose joint values form partitions, such as state, each of which shall be right by itself "
        "(default: those that the schema declares)",
    )


def names(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name for name in text.split(",") if name]


def partitioned(arguments: argparse.Namespace, schema: Schema) -> list[str]:
    """Return the columns that form partitions, given or declared."""
    given = getattr(arguments, "partition", None)
    return list(schema.partition) if given is None else list(given)


def analyses(arguments: argparse.Namespace) -> list[Analysis]:
    """Return the declared analyses."""
    return [analysis_of(text) for text in arguments.analysis]


def mechanism(arguments: argparse.Namespace, epsilon: float, schema: Schema) -> Mechanism:
    """Return the mechanism of the arguments; an invalid budget or workload is an error."""
    make = named_mechanism(arguments.mechanism)
    threads = threads_or_all(getattr(arguments, "threads", None))
    discovery = None if arguments.discovery is None else Discovery(share=arguments.discovery)
    more: dict[str, Any] = {}
    if arguments.workload is not None:
        asking = [
            name for name in mechanism_names(public=True) if "workload" in signature(named_mechanism(name)).parameters
        ]
        if arguments.mechanism not in asking:
            raise ParameterError(f"{arguments.mechanism} takes no --workload; {', '.join(asking)} do")
        apart = partitioned(arguments, schema)
        kept = {name: size for name, size in Codec(schema).domain.items() if name not in apart}
        more["workload"] = workload(arguments.workload, Domain(kept))
    synth = make(
        epsilon=epsilon,
        delta=arguments.delta,
        discovery=discovery,
        allow_weak=arguments.allow_weak,
        threads=threads,
        **more,
    )
    _ = synth.budget
    return synth


def workload(text: str, domain: Domain) -> Workload:
    """Return the workload in a file, or of a name such as all-2way."""
    if found := re.fullmatch(r"all-(\d+)way", text):
        return Workload.all_kway(domain, int(found[1]))
    if text.startswith("target:"):
        return Workload.target(domain, text.removeprefix("target:"))
    return Workload.load(text)


def count(text: str) -> int:
    """Return a whole number, which may be written as 1e6 or 1_000_000."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not number.is_integer():
        raise argparse.ArgumentTypeError(
            f"invalid number of rows: {text!r}; write a whole number, such as 1000000 or 1e6"
        )
    return int(text) if text.strip().isdigit() else int(number)


def numbers(text: str) -> list[float]:
    """Return the numbers of a comma-separated list."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid float value: {text!r}") from None


def add_draw(parser: Parser) -> None:
    """Add the parameters of drawing a table."""
    parser.add_argument(
        "-n", type=count, help="number of synthetic rows (default: the private estimate of the real number)"
    )
    parser.add_argument("--seed", type=int, help="makes the draw repeatable; noise never repeats")
    parser.add_argument("--threads", type=int, help="number of threads (default: all cores)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    output.add_argument("--json", action="store_true", help="print the summary as JSON")


def check_draw(arguments: argparse.Namespace) -> None:
    """Check the parameters of the draw before anything is spent."""
    if arguments.n is not None:
        integer("-n", arguments.n, 0)
    check_seed(arguments.seed)
    threads_or_all(arguments.threads)
