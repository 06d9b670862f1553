"""`chicle papers`: run the experiments of a paper again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from chicle.cli.arguments import command, numbers
from chicle.cli.terminal import Progress, say

__all__ = ["add"]

_NAMES = ("privsyn", "aim", "gem", "dpsyn18", "dpsyn20", "chicle")

_HELP = """\
Example:
  chicle papers aim --data tables -o results --quick

NOT PRIVATE: this is an experiment on public tables. Each run has a process of its own; to resume, run the same command
again. DATA holds a folder for each table: data.parquet (codes) and domain.json (the number of values of each column).
A table that is not there is named on the page, with its public source. The page is OUT/PAPER.md, all runs are in
OUT/PAPER.json and in one CSV file for each table and workload. Studies are the paper's other tables and figures,
such as bounds or seconds; each has a section of the page and a JSON file for each table.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "papers", "run the experiments of a paper again: NOT PRIVATE", _HELP)
    made.add_argument("paper", choices=_NAMES, help=f"one of {', '.join(_NAMES)}", metavar="PAPER")
    made.add_argument("--data", metavar="FOLDER", help="the folder of tables (default: that of CHICLE_DATA)")
    made.add_argument("-o", "--output", metavar="OUT", default="papers", help="the folder of results (default papers)")
    made.add_argument("--quick", action="store_true", help="few rows, attributes and budgets, one run each")
    made.add_argument("--only", metavar="A,B", help="run these systems only; none: run the studies alone")
    made.add_argument("--also", metavar="NAME=RUN,...", help="let these join, such as Mine=mine:function@PYTHON")
    made.add_argument("--studies", metavar="A,B", help="run these studies only; none: run the comparison alone")
    made.add_argument("--tables", metavar="A,B", help="run these tables only")
    made.add_argument("--workload", metavar="A,B", help="run these workloads only, such as TARGET of aim")
    made.add_argument("--epsilon", type=numbers, metavar="A,B", help="the budgets, instead of the paper's")
    made.add_argument("--seeds", type=int, help="runs of each, instead of the paper's")
    made.add_argument("--role", choices=("develop", "judge"), help="run the tables to tune on, or those that judge")
    made.add_argument("--timeout", type=float, metavar="SECONDS", help="stop a run after this many seconds")
    made.add_argument("--threads", type=int, help="number of threads of a run (default: all cores)")
    made.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    # The papers import every mechanism; other commands start without them.
    from chicle.papers import run_paper  # noqa: PLC0415
    from chicle.papers.page import save  # noqa: PLC0415

    folder = Path(arguments.output)
    with Progress(quiet=arguments.quiet) as progress:
        outcome = run_paper(
            arguments.paper,
            data=arguments.data,
            output=folder,
            quick=arguments.quick,
            only=[] if arguments.only is None else arguments.only.split(","),
            also=[] if arguments.also is None else arguments.also.split(","),
            tables=[] if arguments.tables is None else arguments.tables.split(","),
            studies=_studies(arguments.studies),
            workloads=[] if arguments.workload is None else arguments.workload.split(","),
            epsilons=arguments.epsilon,
            seeds=arguments.seeds,
            role=arguments.role,
            timeout=arguments.timeout,
            threads=arguments.threads,
            progress=progress.say,
        )
    written = save(outcome, folder)
    if not arguments.quiet:
        there = f"{sum(one.runs is not None for one in outcome.tables)} of {len(outcome.tables)} tables"
        say(f"{written}: {there}, {len({one.study.name for one in outcome.studied})} studies")
    return 0


def _studies(given: str | None) -> list[str] | None:
    """Return the studies that were named: all of them where nothing was, none of them for ``none``."""
    return None if given is None else [] if given == "none" else given.split(",")
