"""What the comparisons share: run several ways to do one job in turns, check them, show them side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, str | int | float]


@dataclass(frozen=True)
class Settings:
    """How much to do."""

    records: int = 662_000
    quick: bool = False

    @property
    def rounds(self) -> int:
        """How often each job runs; its best time counts."""
        return 2 if self.quick else 5


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; what is printed rounded is kept in full."""

    title: str
    rows: list[Row]
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """A promise of the project and how it turned out."""

    promise: str
    bound: float
    measured: float
    smaller_is_better: bool = False

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.measured <= self.bound if self.smaller_is_better else self.measured >= self.bound

    def row(self) -> Row:
        """Return the goal as a row of a table."""
        bound = f"at {'most' if self.smaller_is_better else 'least'} {_text(self.bound)}"
        return {"goal": self.promise, "bound": bound, "measured": self.measured, "met": "yes" if self.met else "NO"}


@dataclass(frozen=True)
class Part:
    """What one comparison has to say."""

    tables: list[Table]
    goals: list[Goal] = field(default_factory=list)


@dataclass(frozen=True)
class Timed:
    """The best time of a job, and its answer."""

    seconds: float
    answer: Any


def in_turns(jobs: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Timed]:
    """Run every job once a round, so that a busy moment of the machine hits all alike; keep each one's best time."""
    seconds = dict.fromkeys(jobs, inf)
    answers: dict[str, Any] = {}
    for _ in range(rounds):
        for name, job in jobs.items():
            answers.pop(name, None)  # so that its memory can be used again
            start = perf_counter()
            answers[name] = job()
            seconds[name] = min(seconds[name], perf_counter() - start)
    return {name: Timed(seconds[name], answers[name]) for name in jobs}


def check(holds: object, claim: str) -> None:
    """Stop the run where an answer is wrong: its time means nothing."""
    if not holds:
        raise SystemExit(f"WRONG ANSWER: {claim}")


def show(table: Table) -> None:
    columns = list(table.rows[0])
    cells = [columns, *([_text(row[column]) for column in columns] for row in table.rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    is_text = [isinstance(value, str) for value in table.rows[0].values()]
    print(f"\n{table.title}")
    if table.note:
        print(f"  {table.note}")
    for number, line in enumerate(cells):
        aligned = zip(line, widths, is_text, strict=True)
        print("  " + "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in aligned))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
