"""Partitioned tables: the mean error inside partitions, by ways to fit them.

    python benches/partitions.py states [EPSILON,...] [SEEDS] [WAY,...]     49 states of 1,000 rows each
    python benches/partitions.py large  [EPSILON,...] [SEEDS] [WAY,...]     10 states of 89,000 rows each
    python benches/partitions.py puma   [EPSILON,...] [SEEDS] [WAY,...]     New York and Pennsylvania by PUMA
    python benches/partitions.py adult:COLUMN [EPSILON,...] [SEEDS] [WAY,...] Adult by one of its columns
    python benches/partitions.py thousand [EPSILON]                         1,000 partitions of 2.7 million rows

Ways: `attribute` (Prism with the partition as one more attribute), `independent`, `pooled`, `pooled:SHARE`, `auto`, and
`floor`, a bootstrap of the real rows of each partition. For `puma` also `evidence` and `trusted`: `auto` beside the
public rows of Illinois and Ohio, whose areas are others. Each row is the mean over partitions of the total variation
distance of all pairs and of 150 triples of the other attributes, the share of rows in the wrong partition, and the
seconds of fit and draw. For `puma` a person is a household, of which 7 rows are kept, and the score of the NIST
challenge of 2020 stands beside: 1000 (2 - L1) / 2 over 50 random pairs, where a partition that is off by 250 rows has
an L1 of 2.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import time
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from tables import ADULT_ORDINAL, data_folder, load

import chicle
from chicle import Records, Schema
from chicle.evaluation.partitions import errors_by
from chicle.measurements.public_rows import Role
from chicle.partition import Partition
from chicle.partition.declared import Way

COLUMNS = (
    *(
        "AGEP",
        "SEX",
        "RAC1P",
        "HISP",
        "CIT",
        "ENG",
        "SCHL",
        "MAR",
        "ESR",
        "INDP",
        "OCCP",
        "COW",
        "WKHP",
        "JWMNP",
        "PINCP",
    ),
    *("WAGP", "POVPIP", "HICOV", "PRIVCOV", "PUBCOV", "DIS", "MIL", "TEN", "HINCP"),
)
DELTA = 1e-9


@dataclass
class Table:
    """A table with a partition.

    Attributes
    ----------
    records, real
        What is fitted, and what is compared with.
    schema
        Its columns.
    by
        The column of the partition.
    delta
        The delta of its budgets.
    public
        A public table, with partitions of its own.
    """

    records: Records
    real: Records
    schema: Schema
    by: str
    delta: float
    public: Records | None = None


def columns_of(
    name: str, partition: str, extra: tuple[str, ...] = ()
) -> tuple[dict[str, npt.NDArray[np.integer]], dict[str, int], list[str]]:
    """Return the codes, cardinalities and ordinal columns of a table of the American Community Survey."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where tables are at hand

    folder = data_folder() / name
    domain, values = (
        json.loads((folder / file).read_text(encoding="utf-8")) for file in ("domain.json", "values.json")
    )
    read = pq.read_table(folder / "data.parquet", columns=[partition, *extra, *COLUMNS])
    codes = {column: read[column].to_numpy() for column in read.column_names}
    codes["AGEP"] = np.minimum(codes["AGEP"] // 5, 19).astype(np.uint8)
    sizes = {partition: domain[partition], **{column: domain[column] for column in COLUMNS}, "AGEP": 20}
    return codes, sizes, [column for column in COLUMNS if isinstance(values.get(column), dict) or column == "AGEP"]


def states(rows: int, number: int, seed: int) -> Table:
    """Return states of so many rows each: all of them, or the largest."""
    codes, sizes, ordinal = columns_of("acs2024_us49", "STATE")
    held = np.bincount(codes["STATE"], minlength=sizes["STATE"])
    chosen = np.sort(np.argsort(-held, kind="stable")[:number])
    rng = np.random.default_rng(seed)
    kept = np.concatenate([rng.choice(np.flatnonzero(codes["STATE"] == s), rows, replace=False) for s in chosen])
    renumbered = np.zeros(sizes["STATE"], dtype=np.uint8)
    renumbered[chosen] = np.arange(number)
    taken = {name: column[kept] for name, column in codes.items()}
    taken["STATE"] = renumbered[taken["STATE"]]
    sizes["STATE"] = number
    records = Records({name: taken[name] for name in sizes}, sizes)
    return Table(records, records, Schema.from_cardinalities(sizes, ordinal=ordinal), "STATE", DELTA)


def puma(k: int = 7) -> Table:
    """Return New York and Pennsylvania by PUMA; a person is a household."""
    codes, sizes, ordinal = columns_of("acs2024_ny_pa_puma", "PUMA", ("HOUSEHOLD",))
    order = np.argsort(codes["HOUSEHOLD"], kind="stable")
    household = codes["HOUSEHOLD"][order]
    first = np.flatnonzero(np.append(True, np.diff(household) != 0))
    inside = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    kept = np.sort(order[inside < k])
    real = Records({name: codes[name] for name in sizes}, sizes)
    records = Records({name: codes[name][kept] for name in sizes}, sizes, max_records_per_person=k)
    schema = Schema(sizes, ordinal, k, data={"rows": 340_000})  # about, as the bureau publishes it
    elsewhere, areas, _ = columns_of("acs2024_il_oh_puma", "PUMA")
    # Its areas are others, and fewer: all that their numbers say is who lives in one and the same.
    public = Records({name: elsewhere[name] for name in sizes}, {**areas, "PUMA": max(areas["PUMA"], sizes["PUMA"])})
    return Table(records, real, schema, "PUMA", 3.45e-11, public)


def adult(by: str) -> Table:
    """Return Adult by one of its columns: few partitions, of sizes and dependences that differ much."""
    records, _ = load(data_folder() / "adult")
    schema = Schema.from_cardinalities(records.domain, ordinal=ADULT_ORDINAL)
    return Table(records, records, schema, by, DELTA)


def thousand(number: int = 1_000) -> Table:
    """Return 49 states with a made-up county each row: partitions whose sizes and 1-ways differ a little."""
    codes, sizes, ordinal = columns_of("acs2024_us49", "STATE")
    rng = np.random.default_rng(0)
    counties = (codes["STATE"].astype(np.int64) * 20 + rng.integers(20, size=len(codes["STATE"]))) % number
    sizes = {"COUNTY": number, **{name: sizes[name] for name in COLUMNS}}
    codes["COUNTY"] = counties
    records = Records({name: codes[name] for name in sizes}, sizes)
    return Table(records, records, Schema.from_cardinalities(sizes, ordinal=ordinal), "COUNTY", DELTA)


def made(table: Table, way: str, epsilon: float, seed: int) -> tuple[Records, str]:
    """Return a synthetic table, and what was noted about how partitions were fitted."""
    if way == "floor":
        rng = np.random.default_rng(seed)
        codes = table.real[table.by]
        rows = np.concatenate(
            [
                rng.choice(found, len(found))
                for s in range(table.real.domain[table.by])
                if len(found := np.flatnonzero(codes == s))
            ]
        )
        return Records({name: table.real[name][rows] for name in table.real}, table.real.domain), ""
    synth = chicle.Prism(epsilon=epsilon, delta=table.delta)
    if way == "attribute":
        synth.fit(table.records, table.schema)
    else:
        kind, _, share = way.partition(":")
        beside = kind in ("evidence", "trusted")
        asked = Partition(
            (table.by,), way=cast("Way", "auto" if beside else kind), share=float(share) if share else None
        )
        public = chicle.PublicData(table.public, role=cast("Role", kind)) if beside else None
        synth.fit(table.records, table.schema, partition=asked, public=public)
    return synth.sample(seed=seed), "; ".join(note for note in synth.release_.notes if " partitions " in note)


def figures(table: Table, synthetic: Records) -> str:
    """Return the errors inside partitions, as text."""
    rest = [name for name in table.real if name != table.by]
    rng = np.random.default_rng(7)
    triples = list(itertools.combinations(rest, 3))
    cliques = {
        2: list(itertools.combinations(rest, 2)),
        3: [triples[i] for i in rng.choice(len(triples), 150, replace=False)],
    }
    rows, there, tvd = errors_by(table.real, synthetic, (table.by,), cliques, None)
    said = f"{np.nanmean(tvd[2]):.4f} {np.nanmean(tvd[3]):.4f} {np.abs(rows - there).sum() / rows.sum() / 2:8.4f}"
    if table.by == "PUMA":
        draw = np.random.RandomState(123456)
        some = [tuple(draw.choice(rest, 2, replace=False)) for _ in range(50)]
        _, _, found = errors_by(table.real, synthetic, (table.by,), {2: some}, None)
        said += f" {1000 * (1 - np.where(np.abs(rows - there) >= 250, 1.0, found[2]).mean()):6.0f}"
    return said


def made_up(kind: str, seed: int) -> Table:
    """Return a table by the name of its kind."""
    if kind.startswith("adult:"):
        return adult(kind.removeprefix("adult:"))
    return puma() if kind == "puma" else states(1_000, 49, seed) if kind == "states" else states(89_000, 10, seed)


def main() -> None:
    """Print a row for each way, budget and seed."""
    kind, *rest = sys.argv[1:]
    epsilons = [float(one) for one in (rest[0] if rest else "0.3,1,3").split(",")]
    if kind == "thousand":
        table = thousand()
        begin = time.perf_counter(), time.process_time()
        synthetic, note = made(table, "auto", epsilons[0] if rest else 1.0, 0)
        wall, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{wall:.0f} s, {cpu:.0f} s of CPU, {peak:.2f} GB at most; {note}")
        print(figures(table, synthetic))
        return
    seeds = int(rest[1]) if len(rest) > 1 else 1
    ways = rest[2].split(",") if len(rest) > 2 else ["floor", "attribute", "independent", "pooled", "auto"]
    print("epsilon way            seed  pairs triples  misplaced" + (" NIST" if kind == "puma" else "") + "  seconds")
    for seed in range(seeds):
        table = made_up(kind, seed)
        for epsilon in epsilons:
            for way in ways:
                start = time.perf_counter()
                synthetic, note = made(table, way, epsilon, seed)
                took = time.perf_counter() - start
                print(f"{epsilon:7g} {way:15} {seed:3d}  {figures(table, synthetic)} {took:8.1f}  {note}", flush=True)


if __name__ == "__main__":
    main()
