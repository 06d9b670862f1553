"""How good are linked tables? Households and their people, against flattening and against tables joined at random.

    python benches/linked.py accuracy --epsilon 1 3 --seeds 2                  # docs/linked-tables.md
    python benches/linked.py accuracy --households 20000 --epsilon 1           # a quick look
    python benches/linked.py census                                           # simulated households, known truth
    python benches/linked.py visits --most 40                                 # simulated visits, longer sequences
    python benches/linked.py speed --parents 1000000                           # three children each, on two threads

Figures are total variation distances, means over the tables named in each row, from the exact pair with at most `most`
people a household; where the truth is simulated, the floor is another population. Flattened: one table of people with
their household's columns and its number of people, fitted by Prism with as many rows a person as people are kept;
people with the same number are grouped at random into households. Joined at random: both tables fitted by Prism, half
the budget each; each person belongs to a random household.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import data_folder

import chicle

DELTA = 1e-9
HOUSEHOLD = ("TEN", "BLD", "HHT", "VALP", "HINCP", "YRBLT")
PERSON = ("AGEP", "SEX", "MAR", "ESR", "SCHL", "RAC1P", "PINCP")
ORDINAL = ("VALP", "HINCP", "YRBLT", "AGEP", "SCHL", "PINCP")

Columns = dict[str, np.ndarray]


class Pair:
    """Parents and children as codes: `of` is the row of each child's parent; children stand in order."""

    def __init__(self, parents: Columns, children: Columns, of: np.ndarray) -> None:
        self.parents, self.children, self.of = parents, children, of
        self.n = len(next(iter(parents.values())))
        self.number = np.bincount(of, minlength=self.n)
        self.place = np.arange(len(of)) - (np.cumsum(self.number) - self.number)[of]

    def first(self, most: int) -> Pair:
        """Return the pair with at most so many children a parent."""
        kept = self.place < most
        return Pair(self.parents, {name: codes[kept] for name, codes in self.children.items()}, self.of[kept])

    def tables(self) -> dict[str, Any]:
        """Return both tables, as a user has them."""
        ids = np.arange(self.n)
        return {
            "households": pa.table({"id": ids, **self.parents}),
            "people": pa.table({"id": ids[self.of], "place": self.place, **self.children}),
        }

    @classmethod
    def of_tables(cls, made: Mapping[str, Any], parents: Iterable[str], children: Iterable[str]) -> Pair:
        """Return the pair in two synthetic tables."""
        own, theirs = made["households"], made["people"]
        place = {key: row for row, key in enumerate(own["id"].to_pylist())}
        of = np.array([place[key] for key in theirs["id"].to_pylist()], dtype=np.int64)
        order = np.argsort(of, kind="stable")
        return cls(
            {name: own[name].to_numpy() for name in parents},
            {name: theirs[name].to_numpy()[order] for name in children},
            of[order],
        )


def households(folder: str, number: int | None) -> tuple[Pair, dict[str, int]]:
    """Return the households of the American Community Survey and their people."""
    table = pq.read_table(
        data_folder() / folder / "data.parquet", columns=["HOUSEHOLD", "SPORDER", *HOUSEHOLD, *PERSON]
    )
    sizes = json.loads((data_folder() / folder / "domain.json").read_text(encoding="utf-8"))
    rows = {name: table[name].to_numpy() for name in table.column_names}
    order = np.lexsort((rows["SPORDER"], rows["HOUSEHOLD"]))
    _, first, of = np.unique(rows["HOUSEHOLD"][order], return_index=True, return_inverse=True)
    pair = Pair(
        {name: rows[name][order][first] for name in HOUSEHOLD}, {name: rows[name][order] for name in PERSON}, of
    )
    return (pair if number is None else some(pair, number)), {name: sizes[name] for name in (*HOUSEHOLD, *PERSON)}


def some(pair: Pair, number: int) -> Pair:
    """Return a random part of the parents, with their children."""
    chosen = np.sort(np.random.default_rng(0).permutation(pair.n)[:number])
    at = np.full(pair.n, -1)
    at[chosen] = np.arange(len(chosen))
    kept = at[pair.of] >= 0
    parents = {name: codes[chosen] for name, codes in pair.parents.items()}
    return Pair(parents, {name: codes[kept] for name, codes in pair.children.items()}, at[pair.of[kept]])


def column(name: str, sizes: Mapping[str, int], ordinal: Iterable[str]) -> dict[str, Any]:
    values = list(range(sizes[name]))
    return {"type": "ordinal", "values": values} if name in ordinal else {"type": "categorical", "values": values}


# --- What is compared ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What is fitted: a pair, its codes, and how many children of a parent are kept."""

    pair: Pair
    sizes: Mapping[str, int]
    ordinal: tuple[str, ...]
    most: int
    least: int = 0
    again: Pair | None = None  # another population, where the truth is known
    wide: int | None = None

    @property
    def kept(self) -> Pair:
        """The pair with the children that a fit keeps."""
        return self.pair.first(self.most)

    def plain(self, columns: Columns, extra: Mapping[str, int], k: int) -> tuple[chicle.Records, chicle.Schema]:
        """Return codes as records with k rows a person, and their schema."""
        domain = {name: extra[name] if name in extra else self.sizes[name] for name in columns}
        ordinal = [name for name in (*self.ordinal, *extra) if name in domain]
        schema = chicle.Schema.from_cardinalities(domain, ordinal=ordinal, max_records_per_person=k)
        return chicle.Records(columns, domain, max_records_per_person=k), schema


def wide(make: Callable[..., Any], case: Case, epsilon: float) -> Pair:
    synth = make(epsilon=epsilon, delta=DELTA, threads=1, allow_weak=True).fit(case.pair.tables(), schema_of(case))
    return Pair.of_tables(synth.sample(seed=0), case.pair.parents, case.pair.children)


def flattened(case: Case, epsilon: float) -> Pair:
    kept = case.kept
    columns = {name: codes[kept.of] for name, codes in kept.parents.items()}
    columns = {**columns, "number": kept.number[kept.of] - 1, **kept.children}
    records, schema = case.plain(columns, {"number": case.most}, case.most)
    made = chicle.Prism(epsilon=epsilon, delta=DELTA, threads=1, allow_weak=True).fit(records, schema).sample(seed=0)
    families: list[np.ndarray] = []
    for number in range(1, case.most + 1):
        here = np.flatnonzero(made["number"] == number - 1)
        families += list(here[: len(here) // number * number].reshape(-1, number))
    first = np.array([one[0] for one in families])
    of = np.repeat(np.arange(len(families)), [len(one) for one in families])
    every = np.concatenate(families)
    return Pair(
        {name: made[name][first] for name in kept.parents}, {name: made[name][every] for name in kept.children}, of
    )


def joined_at_random(case: Case, epsilon: float) -> Pair:
    rho = chicle.Budget(epsilon=epsilon, delta=DELTA).rho / 2
    made = []
    for columns, k in ((case.kept.parents, 1), (case.kept.children, case.most)):
        records, schema = case.plain(columns, {}, k)
        made.append(chicle.Prism(rho=rho, threads=1, allow_weak=True).fit(records, schema).sample(seed=0))
    own, theirs = made
    of = np.sort(np.random.default_rng(0).integers(len(own), size=len(theirs)))
    return Pair({name: own[name] for name in own}, {name: theirs[name] for name in theirs}, of)


def schema_of(case: Case) -> chicle.Schema:
    columns = [
        {name: column(name, case.sizes, case.ordinal) for name in some}
        for some in (case.pair.parents, case.pair.children)
    ]
    people = {
        "parent": "households",
        "key": "id",
        "order": "place",
        "max_per_parent": case.most,
        **({"min_per_parent": case.least} if case.least else {}),
        **({"wide": case.wide} if case.wide else {}),
        "columns": {"place": {"type": "identifier"}, **columns[1]},
    }
    return chicle.Schema.from_dict({"tables": {"households": {"key": "id", "columns": columns[0]}, "people": people}})


def resampled(case: Case, _: float) -> Pair:
    """Return another population, or a bootstrap of families: the floor, by sampling error alone."""
    kept = case.kept
    if case.again is not None:
        return case.again.first(case.most)
    drawn = np.random.default_rng(1).integers(kept.n, size=kept.n)
    begins, sizes = np.cumsum(kept.number) - kept.number, kept.number[drawn]
    of = np.repeat(np.arange(kept.n), sizes)
    rows = begins[drawn][of] + np.arange(len(of)) - (np.cumsum(sizes) - sizes)[of]
    return Pair(
        {name: codes[drawn] for name, codes in kept.parents.items()},
        {name: codes[rows] for name, codes in kept.children.items()},
        of,
    )


# --- Measures --------------------------------------------------------------------------------------------------------


def distance(real: list[np.ndarray], made: list[np.ndarray]) -> float:
    """Return the total variation distance of the joint distributions of columns."""
    both = [np.concatenate([one, other]).astype(np.int64) for one, other in zip(real, made, strict=True)]
    keys = both[0]
    for codes in both[1:]:
        keys = keys * (int(codes.max()) + 1) + codes
    size, n = int(keys.max()) + 1, len(real[0])
    first, second = np.bincount(keys[:n], minlength=size) / n, np.bincount(keys[n:], minlength=size) / (len(keys) - n)
    return float(np.abs(first - second).sum() / 2)


def mean(pairs: Iterable[tuple[list[np.ndarray], list[np.ndarray]]]) -> float:
    return float(np.mean([distance(real, made) for real, made in pairs]))


def consecutive(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    after = np.flatnonzero(pair.place > 0)
    return after - 1, after


def measures(real: Pair, made: Pair) -> dict[str, float]:
    own, theirs = list(real.parents), list(real.children)
    before, after = (consecutive(one) for one in (real, made))
    found = {
        "parent 1-ways": mean(([real.parents[a]], [made.parents[a]]) for a in own),
        "parent pairs": mean(
            ([real.parents[a], real.parents[b]], [made.parents[a], made.parents[b]]) for a, b in combinations(own, 2)
        ),
        "child 1-ways": mean(([real.children[a]], [made.children[a]]) for a in theirs),
        "child pairs": mean(
            ([real.children[a], real.children[b]], [made.children[a], made.children[b]])
            for a, b in combinations(theirs, 2)
        ),
        "parent x child pairs": mean(
            ([real.parents[a][real.of], real.children[b]], [made.parents[a][made.of], made.children[b]])
            for a, b in product(own, theirs)
        ),
        "children per parent": distance([real.number], [made.number]),
        "consecutive children": mean(
            (
                [real.children[a][before[0]], real.children[b][before[1]]],
                [made.children[a][after[0]], made.children[b][after[1]]],
            )
            for a, b in product(theirs, theirs)
        ),
    }
    if "chronic" in theirs:
        chronic = made.children["chronic"]
        found["impossible sequences"] = float((chronic[after[0]] > chronic[after[1]]).mean())
    if "RELATE" in theirs:
        found["impossible sequences"] = float(impossible(made).mean())
    if "AGEP" in theirs:
        found["counts per household"] = float(
            np.mean([distance([a], [b]) for a, b in zip(counts(real), counts(made), strict=True)])
        )
    return found


def impossible(pair: Pair) -> np.ndarray:
    """Return which people of the simulated census can not be where they are, as `chicle.datasets.households` says."""
    relation, sex, age = (pair.children[name].astype(int) for name in ("RELATE", "SEX", "AGE"))
    mother = np.full(pair.n, 999)
    for place in (0, 1):  # a woman who is the head, or the wife of one
        women = (pair.place == place) & (relation == place) & (sex == 1)
        mother[pair.of[women]] = age[women]
    falls = np.append(False, (np.diff(relation) < 0) & (np.diff(pair.of) == 0))
    too_old = (relation == 2) & (mother[pair.of] - age < 14)
    found = ((relation == 0) != (pair.place == 0)) | ((relation == 1) & (pair.place != 1)) | falls | too_old
    return np.asarray(found, dtype=np.bool_)


def counts(pair: Pair) -> list[np.ndarray]:
    """Return how many people of each household are under 15, women, and married."""
    held = (pair.children["AGEP"] < 15, pair.children["SEX"] == 1, pair.children["MAR"] == 0)
    return [np.bincount(pair.of, weights=one, minlength=pair.n).astype(np.int64) for one in held]


METHODS: dict[str, Callable[[Case, float], Pair]] = {
    "floor": resampled,
    "flattened": flattened,
    "at random": joined_at_random,
    "Prism": lambda case, epsilon: wide(chicle.Prism, case, epsilon),
    "AIM": lambda case, epsilon: wide(chicle.AIM, case, epsilon),
}


def compare(case: Case, arguments: argparse.Namespace) -> None:
    case = replace(case, wide=arguments.wide)
    truth, every = case.kept, len(case.pair.of)
    left = 1 - len(truth.of) / every
    print(f"{case.pair.n:,} parents, {every:,} children; {left:.2%} of the children are beyond {case.most}")
    for epsilon in arguments.epsilon:
        rows: dict[str, dict[str, float]] = {}
        for name in arguments.methods or METHODS:
            begun, runs = time.process_time(), []
            number = 1 if name == "floor" else arguments.seeds
            for _ in range(number):
                runs.append(measures(truth, METHODS[name](case, epsilon)))  # noqa: PERF401 - a run takes long
            rows[name] = {what: float(np.mean([run[what] for run in runs])) for what in runs[0]}
            rows[name]["CPU seconds"] = (time.process_time() - begun) / number
        print(f"\nepsilon {epsilon:g}, {arguments.seeds} runs, at most {case.most}")
        print("| mean TVD | " + " | ".join(rows) + " |")
        print("|---" * (len(rows) + 1) + "|")
        for what in next(iter(rows.values())):
            print(f"| {what} | " + " | ".join(f"{row[what]:.4f}" for row in rows.values()) + " |", flush=True)
        if arguments.picture:
            draw(rows, Path(arguments.picture), epsilon)


def draw(rows: Mapping[str, Mapping[str, float]], path: Path, epsilon: float) -> None:
    """Draw the distances of each method as bars, as an SVG file."""
    shown = [name for name in rows if name != "floor"]
    what = [one for one in next(iter(rows.values())) if one != "CPU seconds"]
    colours = dict(zip(shown, ("#b8b8b8", "#8c8c8c", "#1f5fa8", "#e08214"), strict=False))
    left, width, high, gap = 170, 520, 11, 12
    scale = width / max(rows[name][one] for name in shown for one in what)
    block = len(shown) * high
    size = f'width="{left + width + 70}" height="{50 + len(what) * (block + gap)}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
    parts.append(f'<rect {size} fill="white"/>')
    for i, name in enumerate(shown):
        at = left + 110 * i
        parts.append(f'<rect x="{at}" y="10" width="12" height="12" fill="{colours[name]}"/>')
        parts.append(f'<text x="{at + 17}" y="20">{name}</text>')
    for row, one in enumerate(what):
        top = 38 + row * (block + gap)
        parts.append(f'<text x="{left - 8}" y="{top + block / 2 + 4}" text-anchor="end">{one}</text>')
        for i, name in enumerate(shown):
            y, bar = top + i * high, scale * rows[name][one]
            place = f'x="{left}" y="{y}" width="{bar:.1f}" height="{high - 1}"'
            parts.append(f'<rect {place} fill="{colours[name]}"/>')
            parts.append(f'<text x="{left + bar + 4:.1f}" y="{y + 9}" font-size="9">{rows[name][one]:.4f}</text>')
        if "floor" in rows:
            x = left + scale * rows["floor"][one]
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}" y2="{top + block}" stroke="black"/>')
    said = f"mean total variation distance at epsilon {epsilon:g}; line: resampled families"
    parts.append(f'<text x="{left}" y="{46 + len(what) * (block + gap)}" font-size="10">{said}</text></svg>')
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def census(n: int, most: int, least: int = 0) -> Case:
    """Return the households of the simulated census; the floor is another population."""
    both = []
    for seed in (0, 1):
        made = chicle.datasets.households(n, seed=seed)
        own, theirs = ({name: one[name].to_numpy() for name in one.column_names} for one in made.values())
        of = theirs.pop("household")
        del own["household"], theirs["line"]
        both.append(Pair(own, theirs, of))
    truth, again = both
    domain = chicle.datasets.census(0).domain
    sizes = {name: domain[name] for name in (*truth.parents, *truth.children)}
    return Case(truth, sizes, ("ROOMS", "AGE", "EDUC"), most, least, again)


def simulated(n: int, seed: int = 0) -> tuple[Pair, dict[str, int]]:
    """Return a pair with known truth: simulated people, and visits as a Markov chain given the person's columns.

    Who was chronically ill at one visit is so at all later ones: other sequences are impossible.
    """
    rng = np.random.default_rng(seed)
    census = chicle.datasets.census(n, d=6, seed=seed)
    parents = {name: census[name].astype(np.int64) for name in census}
    size = census.domain
    sick = rng.random(n) < 0.1 + 0.5 * parents["AGE"] / size["AGE"]
    number = np.minimum(rng.geometric(np.where(sick, 0.15, 0.7)) - 1 + sick, 40)
    of = np.repeat(np.arange(n), number)
    place = np.arange(len(of)) - (np.cumsum(number) - number)[of]
    ward, acute, chronic = (np.empty(len(of), dtype=np.int64) for _ in range(3))
    for at in range(int(number.max())):
        rows = np.flatnonzero(place == at)
        own = (parents["AGE"][of[rows]] * 8 // size["AGE"] + rng.integers(2, size=len(rows))) % 8
        stays = (rng.random(len(rows)) < 0.7) & (at > 0)
        ward[rows] = np.where(stays, ward[rows - 1], own)
        acute[rows] = np.minimum(rng.poisson(0.5 + 1.5 * (ward[rows] > 4) + (acute[rows - 1] if at else 0) * 0.5), 5)
        found = rng.random(len(rows)) < 0.1 + 0.1 * (acute[rows] > 2)
        chronic[rows] = found | (chronic[rows - 1] == 1) if at else found
    children = {"ward": ward, "acute": acute, "chronic": chronic}
    return Pair(parents, children, of), {**dict(size), "ward": 8, "acute": 6, "chronic": 2}


def speed(arguments: argparse.Namespace) -> None:
    pair, sizes = simulated(arguments.parents)
    drawn = np.random.default_rng(0).poisson(3, pair.n)
    of = np.repeat(np.arange(pair.n), drawn)
    rows = np.random.default_rng(1).integers(len(pair.of), size=len(of))
    big = Pair(pair.parents, {name: codes[rows] for name, codes in pair.children.items()}, of)
    schema, tables = schema_of(Case(big, sizes, ("AGE", "acute"), arguments.most)), big.tables()
    steps = {}
    begun = time.perf_counter()
    synth = chicle.Prism(epsilon=1, delta=DELTA, threads=2).fit(tables, schema)
    steps["fit"] = time.perf_counter() - begun
    made = synth.sample(seed=0)
    steps["sample"] = time.perf_counter() - begun - steps["fit"]
    print(f"{big.n:,} parents, {len(of):,} children, {len(schema.domain)} attributes:", end=" ")
    print({name: round(seconds, 1) for name, seconds in steps.items()}, {name: len(made[name]) for name in made})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "census", "visits", "speed"])
    parser.add_argument("--table", default="acs2024_ny_pa_puma")
    parser.add_argument("--households", type=int, help="a random part of the households; all by default")
    parser.add_argument("--parents", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--wide", type=int, help="how many children have a slot of their own")
    parser.add_argument("--picture", help="an SVG file of the distances at the last epsilon")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    arguments = parser.parse_args()
    if arguments.what == "speed":
        speed(arguments)
    elif arguments.what == "census":
        compare(census(arguments.parents, arguments.most, arguments.least), arguments)
    elif arguments.what == "visits":
        compare(Case(*simulated(arguments.parents), ("AGE", "acute"), arguments.most, arguments.least), arguments)
    else:
        pair, sizes = households(arguments.table, arguments.households)
        compare(Case(pair, sizes, ORDINAL, arguments.most, arguments.least), arguments)


if __name__ == "__main__":
    main()
