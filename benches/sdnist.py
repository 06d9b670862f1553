"""SDNist's score of mechanisms, and what `coarse` columns cost, on a table like NIST's national excerpt.

python benches/sdnist.py [PYTHON]    # PYTHON: that of an environment with SDNist; without it, our own measure alone

The excerpt, which is not at hand, has 20 PUMAs and 24 features of the American Community Survey 2019. This takes 20
PUMAs of New York and Pennsylvania in 2024, and 24 features like them. Everything printed compares with the real table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from side_by_side import Row, Table, show
from tables import data_folder

import chicle
from chicle import Records, Schema
from chicle.codecs import Codec

NAMES = (
    *("PUMA", "SEX", "AGEP", "RAC1P", "HISP", "MAR", "SCHL", "OCCP", "COW", "PINCP", "POVPIP", "DEAR", "DEYE", "DREM"),
    *("DPHY", "MIL", "TEN", "NP", "NPF", "HHT", "TYPEHUGQ", "ESR", "WKHP", "HICOV"),
)
COARSE = {"AGEP": 20, "PINCP": 10, "WKHP": 6, "POVPIP": 6}
EPSILONS = (1.0, 5.0, 10.0)


def excerpt() -> tuple[Records, list[str]]:
    """Return the table, and its columns of numbers."""
    folder = data_folder() / "acs2024_ny_pa_puma"
    domain, known = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("domain", "values"))
    rows = pq.read_table(folder / "data.parquet", columns=list(NAMES))
    chosen = np.arange(0, domain["PUMA"], 12)
    kept = np.isin(rows["PUMA"].to_numpy(), chosen)
    columns = {name: rows[name].to_numpy()[kept] for name in NAMES}
    columns["PUMA"] = np.searchsorted(chosen, columns["PUMA"])
    domain = {**{name: domain[name] for name in NAMES}, "PUMA": chosen.size}
    return Records(columns, domain), [name for name in NAMES if isinstance(known.get(name), dict)]


def declared(real: Records, ordinal: list[str], coarse: Mapping[str, int]) -> Schema:
    """Return the schema, with groups of values for some columns."""
    return Schema(
        {
            name: {
                "type": "coded",
                "values": size,
                "ordinal": name in ordinal,
                **({"coarse": coarse[name]} if name in coarse else {}),
            }
            for name, size in real.domain.items()
        }
    )


def scores(real: Records, ordinal: list[str], scorer: str | None) -> Table:
    """Score mechanisms, each at three budgets."""
    plain, rows = declared(real, ordinal, {}), list[Row]()
    workload = [("PUMA", a, b) for a, b in combinations(NAMES[1:], 2)]
    for epsilon in EPSILONS:
        told: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-9}
        for label, synth, schema in (
            ("Prism", chicle.Prism(**told), plain),
            ("Prism, four columns coarse", chicle.Prism(**told), declared(real, ordinal, COARSE)),
            ("AIM over records", chicle.AIM(**told), plain),
            ("MST", chicle.MST(**told), plain),
        ):
            made = synth.fit(real, schema).sample(seed=0)
            found = chicle.evaluate(real, made, plain, workload=workload, queries=20, scorer=scorer, **told)
            names = {"sdnist": "SDNist", "workload": "workload", "nist_density": "nist_density"}
            values = {name: float(found[key].value or 0) for key, name in names.items() if key in found}
            ours = 500 * (2 - values.pop("workload"))
            rows.append({"mechanism": label, "epsilon": epsilon, "PUMA x pairs, of 1,000": ours, **values})
    return Table("20 PUMAs, 24 features", rows)


def grouped(real: Records, ordinal: list[str]) -> Table:
    """Tell where the error at epsilon 10 is: of values, and of groups of values."""
    schema = declared(real, ordinal, COARSE)
    groups = {name: np.asarray(Codec(schema).attributes.groups[name]) for name in COARSE}
    rows: list[Row] = []
    for label, given in (("as they are", declared(real, ordinal, {})), ("coarse", schema)):
        made = chicle.Prism(epsilon=10, delta=1e-9).fit(real, given).sample(seed=0)
        for number in range(3):
            pairs = [pair for pair in combinations(NAMES[1:], 2) if sum(name in COARSE for name in pair) == number]
            means = [float(np.mean([_l1(real, made, pair, by) for pair in pairs])) for by in ({}, groups)]
            rows.append(
                {"four columns": label, "of which in a pair": number, "L1, values": means[0], "L1, groups": means[1]}
            )
    return Table("Prism at epsilon 10, mean L1 of PUMA x pairs", rows)


def _l1(real: Records, made: Records, pair: tuple[str, str], groups: Mapping[str, npt.NDArray[Any]]) -> float:
    shares = []
    for records in (real, made):
        codes = [groups[name][records[name]] if name in groups else records[name] for name in ("PUMA", *pair)]
        cells = np.ravel_multi_index([one.astype(np.int64) for one in codes], [real.domain[n] for n in ("PUMA", *pair)])
        shares.append(np.bincount(cells, minlength=real.domain.cells(("PUMA", *pair))) / len(records))
    return float(np.abs(shares[0] - shares[1]).sum())


if __name__ == "__main__":
    table, numbers = excerpt()
    show(scores(table, numbers, f"sdnist@{sys.argv[1]}" if len(sys.argv) > 1 else None))
    show(grouped(table, numbers))
