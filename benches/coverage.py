"""Do intervals cover? Repeats a fit on rows resampled from a real table, which stands for the population.

    python benches/coverage.py adult --epsilon 1 --repetitions 200 --state coverage
    python benches/coverage.py adult --epsilon 1 --repetitions 200 --state coverage --what descriptive
    python benches/coverage.py --print coverage

The tables are adult, acs and new-jersey; adult-small has 2,000 rows, adult-wide 31 coefficients, adult-visits Poisson.
Each repetition draws n rows with replacement, fits Prism, and asks whether each 95 % interval holds the figure of the
whole table: coefficients of declared analyses, or descriptive statistics pooled over `Release.draws`, which fit a model
for each replicate and so take twenty times as long. The state is a file of lines, one for each repetition, so that a
run can be stopped and continued: repetition i always has the same rows. Coefficients of the population and intervals
without privacy come from a plain solver in this file, which shares nothing with the library.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from descriptive import Statistic, cells, deviation, difference, mean, quantile
from tables import data_folder, load

import chicle
from chicle import Linear, Logit, Poisson, Records, Schema
from chicle.analyses import Analysis

DELTA = 1e-9
Z = 1.959963984540054
KINDS = ("logit", "linear", "poisson")

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Asked:
    """A declared analysis, and its outcome and columns written out for the plain solver."""

    analysis: Analysis
    outcome: Callable[[Columns], np.ndarray]
    columns: Callable[[Columns], list[np.ndarray]]


@dataclass(frozen=True)
class Case:
    """A table: where it is, which columns, how many rows are drawn, and what is asked.

    Statistics are described with the columns that they depend on.
    """

    folder: str
    n: int
    asked: tuple[Asked, ...]
    described: Mapping[str, tuple[tuple[str, ...], Statistic]]
    kept: tuple[str, ...] = ()


def is_(name: str, code: int) -> Callable[[Columns], np.ndarray]:
    return lambda t: (t[name] == code).astype(float)


def dummies(t: Columns, name: str, size: int) -> list[np.ndarray]:
    return [(t[name] == code).astype(float) for code in range(1, size)]


def described(
    number: str, other: str, group: tuple[str, int], cell: Mapping[str, int]
) -> dict[str, tuple[tuple[str, ...], Statistic]]:
    """Return means, spread, quantiles, a difference of groups, and cells of one, two and three columns."""
    names = list(cell)
    some = [{name: cell[name] for name in names[: i + 1]} for i in range(len(names))]
    return {
        f"mean {number}": ((number,), mean(number)),
        f"mean {other}": ((other,), mean(other)),
        f"sd {number}": ((number,), deviation(number)),
        f"median {number}": ((number,), quantile(number, 0.5)),
        f"90 % quantile {number}": ((number,), quantile(number, 0.9)),
        f"difference {number} by {group[0]}": ((number, group[0]), difference(number, *group)),
        **{f"cell {' x '.join(one)}": (tuple(one), cells(one)) for one in some},
    }


ADULT = (
    Asked(
        Logit("`income>50K` ~ age + `education-num` + `hours-per-week` + sex + `marital-status` == 2"),
        is_("income>50K", 1),
        lambda t: [
            t["age"],
            t["education-num"],
            t["hours-per-week"],
            t["sex"],
            is_("marital-status", 2)(t),
        ],
    ),
    Asked(
        Linear("`hours-per-week` ~ age + `education-num` + sex + `marital-status` == 2"),
        lambda t: t["hours-per-week"],
        lambda t: [t["age"], t["education-num"], t["sex"], is_("marital-status", 2)(t)],
    ),
)
ADULT_DESCRIBED = described("age", "hours-per-week", ("sex", 1), {"sex": 0, "income>50K": 1, "race": 2})
INSURED = "Insurance through a current or former employer or union"
CASES = {
    "adult": Case("adult", 48_842, ADULT, ADULT_DESCRIBED),
    "adult-small": Case("adult", 2_000, ADULT, ADULT_DESCRIBED),
    "adult-wide": Case(
        "adult",
        48_842,
        (
            Asked(
                Linear("`hours-per-week` ~ age + C(occupation) + C(`marital-status`) + C(relationship) + C(race)"),
                lambda t: t["hours-per-week"],
                lambda t: [
                    t["age"],
                    *dummies(t, "occupation", 15),
                    *dummies(t, "marital-status", 7),
                    *dummies(t, "relationship", 6),
                    *dummies(t, "race", 5),
                ],
            ),
        ),
        ADULT_DESCRIBED,
    ),
    "adult-visits": Case(
        "adult",
        48_842,
        (
            Asked(
                Poisson("`education-num` ~ age + sex + C(race)"),
                lambda t: t["education-num"],
                lambda t: [t["age"], t["sex"], *dummies(t, "race", 5)],
            ),
        ),
        ADULT_DESCRIBED,
    ),
    "acs": Case(
        "acs2018_income",
        50_000,
        (
            Asked(
                Logit(f"`{INSURED}` == 1 ~ Age + Education + Income + Gender + `Marital Status` == 0"),
                is_(INSURED, 1),
                lambda t: [t["Age"], t["Education"], t["Income"], t["Gender"], is_("Marital Status", 0)(t)],
            ),
            Asked(
                Linear("Income ~ Age + Education + Gender + `Marital Status` == 0"),
                lambda t: t["Income"],
                lambda t: [t["Age"], t["Education"], t["Gender"], is_("Marital Status", 0)(t)],
            ),
        ),
        described("Age", "Income", ("Gender", 1), {"Gender": 0, "Marital Status": 0, "Nativity": 1}),
    ),
    "new-jersey": Case(
        "acs2024_nj",
        50_000,
        (
            Asked(
                Logit("NATIVITY == 1 ~ AGEP + C(COW) + SCHL"),
                is_("NATIVITY", 1),
                lambda t: [t["AGEP"], *dummies(t, "COW", 10), t["SCHL"]],
            ),
            Asked(
                Linear("WKHP ~ AGEP * SEX + I(AGEP ** 2) + MAR == 4"),
                lambda t: t["WKHP"],
                lambda t: [
                    t["AGEP"],
                    t["SEX"],
                    is_("MAR", 4)(t),
                    t["AGEP"].astype(float) * t["SEX"],
                    t["AGEP"].astype(float) ** 2,
                ],
            ),
        ),
        described("AGEP", "WKHP", ("SEX", 1), {"SEX": 0, "MAR": 4, "HICOV": 1}),
        (
            "AGEP",
            "SEX",
            "RAC1P",
            "CIT",
            "NATIVITY",
            "ENG",
            "SCHL",
            "MAR",
            "ESR",
            "COW",
            "WKHP",
            "WKWN",
            "PINCP",
            "HICOV",
            "DIS",
            "NP",
        ),
    ),
}


def plain(asked: Asked, table: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and their robust standard errors: Newton's method and the sandwich, without privacy."""
    y = asked.outcome(table).astype(float)
    x = np.column_stack([np.ones(len(y)), *asked.columns(table)]).astype(float)
    scale = np.maximum(np.abs(x).max(axis=0), 1)
    x /= scale
    b = np.zeros(x.shape[1])
    if isinstance(asked.analysis, Poisson):
        b[0] = np.log(y.mean())
    for _ in range(1 if isinstance(asked.analysis, Linear) else 30):
        mean, weights = fitted(asked.analysis, x @ b)
        b = b + np.linalg.solve(x.T @ (weights[:, None] * x) + 1e-9 * np.eye(len(b)), x.T @ (y - mean))
    mean, weights = fitted(asked.analysis, x @ b)
    bread = np.linalg.inv(x.T @ (weights[:, None] * x) + 1e-9 * np.eye(len(b)))
    meat = x.T @ ((y - mean)[:, None] ** 2 * x)
    return b / scale, np.sqrt(np.diag(bread @ meat @ bread)) / scale


def fitted(analysis: Analysis, predictor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of the outcome, and how fast they grow with the predictor."""
    if isinstance(analysis, Linear):
        return predictor, np.ones(len(predictor))
    mean = np.exp(predictor) if isinstance(analysis, Poisson) else 1 / (1 + np.exp(-predictor))
    return mean, mean if isinstance(analysis, Poisson) else mean * (1 - mean)


def declared(case: Case, table: Columns, synth: chicle.Prism, schema: Schema) -> list[dict[str, Any]]:
    """Return the interval of each coefficient, and the one without privacy."""
    analyses = [one.analysis for one in case.asked]
    release = synth.fit(Records(table, schema.domain), schema, analyses=analyses).release_
    found = []
    for one, answer in zip(case.asked, release.analyses, strict=True):
        for name, (low, high), b, se in zip(answer.names, answer.interval(0.95), *plain(one, table), strict=True):
            kind = type(one.analysis).__name__.lower()
            found.append({"of": f"{kind} {name}", "low": low, "high": high, "plain": [b - Z * se, b + Z * se]})
    return found


def descriptive(
    case: Case, table: Columns, synth: chicle.Prism, schema: Schema, replicates: int
) -> list[dict[str, Any]]:
    """Return the pooled interval of each statistic, and one without privacy."""
    release = synth.fit(Records(table, schema.domain), schema).release_
    draws = release.draws(m=replicates, seed=0, threads=1)
    tables = [{name: draw[name].astype(np.int64) for name in draw} for draw in draws]
    held = [draws.covers(*columns) for columns, _ in case.described.values()]
    found = np.array([[of(one) for _, of in case.described.values()] for one in tables])
    lows, highs = chicle.pool(found[:, :, 0], found[:, :, 1]).interval(0.95)
    alone = [of(table) for _, of in case.described.values()]
    together = zip(case.described, lows, highs, alone, held, strict=True)
    return [
        {"of": name, "low": low, "high": high, "plain": [one - Z * var**0.5, one + Z * var**0.5], "held": there}
        for name, low, high, (one, var), there in together
    ]


def show(folder: Path) -> None:
    """Print coverage and widths of every state in a folder."""
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if len(lines) < 2:
            continue
        truth = np.array(lines[0]["truth"])
        names = [one["of"] for one in lines[1]["found"]]
        low, high = (np.array([[one[end] for one in line["found"]] for line in lines[1:]]) for end in ("low", "high"))
        alone = np.array([[one["plain"] for one in line["found"]] for line in lines[1:]])
        hit = (low <= truth) & (truth <= high)
        real = (alone[:, :, 0] <= truth) & (truth <= alone[:, :, 1])
        held = np.array([[one.get("held", True) for one in line["found"]] for line in lines[1:]])
        width = np.median(high - low, axis=0) / np.median(alone[:, :, 1] - alone[:, :, 0], axis=0)
        off = ((low + high) / 2 - truth).mean(axis=0) / (np.median(high - low, axis=0) / (2 * Z))
        print(f"\n{path.stem}: {len(hit)} repetitions")
        print(f"{'':44} coverage  width / plain  bias / SE  coverage of plain")
        for j, name in enumerate(names):
            said = f"{name[:44]:44} {hit[:, j].mean():8.3f} {width[j]:14.2f} {off[j]:10.2f} {real[:, j].mean():18.3f}"
            print(said if held[:, j].all() else f"{said}   measured together in {held[:, j].mean():.0%}")
        kinds = {kind: [j for j, name in enumerate(names) if name.startswith(kind + " ")] for kind in KINDS}
        kinds = {kind: mine for kind, mine in kinds.items() if mine} or {"all": list(range(len(names)))}
        if not held.all():
            print(f"{'where measured together, pooled':44} {hit[held].mean():8.3f}; elsewhere {hit[~held].mean():.3f}")
        for kind, mine in kinds.items():
            each = hit[:, mine].mean(axis=0)
            print(
                f"{kind + ', pooled':44} {each.mean():8.3f} ({each.min():.2f} to {each.max():.2f}), widths "
                f"{width[mine].min():.1f} to {width[mine].max():.1f}; plain {real[:, mine].mean():.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", choices=CASES)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repetitions", type=int, default=200, help="in all, with those of earlier runs")
    parser.add_argument("--what", choices=("declared", "descriptive"), default="declared")
    parser.add_argument("--replicates", type=int, default=20, help="of each release, for descriptive statistics")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--state", type=Path, default=Path("coverage"))
    parser.add_argument("--print", type=Path, help="print what is in a folder of states")
    arguments = parser.parse_args()
    if arguments.print is not None:
        show(arguments.print)
        return
    case, begun = CASES[arguments.table], time.monotonic()
    records, schema = load(data_folder() / case.folder)
    kept = case.kept or tuple(records.domain)
    population = {name: records[name].astype(np.int64) for name in kept}
    domain = {name: records.domain[name] for name in kept}
    ordinal = [name for name in kept if name in schema.ordinal]
    schema = Schema.from_cardinalities(domain, ordinal=ordinal)
    arguments.state.mkdir(parents=True, exist_ok=True)
    path = arguments.state / f"{arguments.table}-{arguments.epsilon:g}-{arguments.what}.jsonl"
    if not path.exists():
        coefficients = [b for one in case.asked for b in plain(one, population)[0]]
        figures = [of(population)[0] for _, of in case.described.values()]
        truth = coefficients if arguments.what == "declared" else figures
        path.write_text(json.dumps({"truth": [float(one) for one in truth]}) + "\n")
    rows, done = len(records), len(path.read_text().splitlines()) - 1
    for i in range(done, arguments.repetitions):
        if time.monotonic() - begun > arguments.seconds:
            break
        drawn = np.random.default_rng([19, i]).integers(0, rows, case.n)
        table = {name: codes[drawn] for name, codes in population.items()}
        synth = chicle.Prism(epsilon=arguments.epsilon, delta=DELTA, threads=1)
        found = (
            declared(case, table, synth, schema)
            if arguments.what == "declared"
            else descriptive(case, table, synth, schema, arguments.replicates)
        )
        with path.open("a") as file:
            file.write(json.dumps({"repetition": i, "found": found}) + "\n")


if __name__ == "__main__":
    main()
