"""A small pair of linked tables, as frames: patients and their visits, with columns of many types."""

from typing import Any

import numpy as np
import pandas as pd

TABLES: dict[str, Any] = {
    "patients": {
        "key": "pid",
        "columns": {
            "sex": {"type": "categorical", "values": ["f", "m"]},
            "born": {"type": "integer", "min": 1930, "max": 2009, "bins": 8, "missing": True},
        },
    },
    "visits": {
        "parent": "patients",
        "key": "patient",
        "order": "day",
        "max_per_parent": 3,
        "columns": {
            "day": {"type": "date", "min": "2020-01-01", "max": "2021-12-31", "bins": "month"},
            "ward": {"type": "categorical", "values": ["A", "B", "C", "D"], "missing": True},
            "cost": {"type": "number", "min": 0, "max": 1000, "bins": 5},
            "end": {"type": "categorical", "values": ["home", "dead"]},
            "no": {"type": "identifier"},
            "note": {"type": "drop"},
        },
        "constraints": [{"if": {"ward": "D"}, "then": {"cost": {"from": 200}}}],
    },
}
RULES = [{"last": {"visits": {"end": "dead"}}}, {"some": {"visits": {"ward": ["A", "B", "C", None]}}}]
DECLARED = {"tables": TABLES, "constraints": RULES}


def hospital(n: int = 600, seed: int = 0, most: int = 6) -> dict[str, pd.DataFrame]:
    """Patients and visits: shuffled, some patients without visits, some visits of nobody."""
    rng = np.random.default_rng(seed)
    born = rng.integers(1930, 2010, n)
    number = np.minimum(rng.poisson((2010 - born) / 30), most)
    key = rng.permutation(n) + 1_000
    patients = pd.DataFrame(
        {
            "pid": key,
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "born": pd.array(np.where(rng.random(n) < 0.05, -1, born), dtype="Int64"),
        }
    )
    patients["born"] = patients["born"].mask(patients["born"] == -1)
    of = np.repeat(np.arange(n), number)
    place = np.arange(len(of)) - (np.cumsum(number) - number)[of]
    day = 120 * place + rng.integers(0, 120, len(of))
    last = np.append(np.diff(of) > 0, True)[: len(of)]
    ward = np.array(list("ABCD"), dtype=object)[(born[of] // 10) % 4]
    ward[rng.random(len(of)) < 0.1] = None
    visits = pd.DataFrame(
        {
            "patient": key[of],
            "day": (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D")).date,
            "ward": np.where((place == 0) & (ward == "D"), "A", ward),
            "cost": rng.uniform(200, 1000, len(of)).round(2),
            "end": np.where(last & (rng.random(len(of)) < 0.1), "dead", "home"),
            "no": np.arange(len(of)),
            "note": "secret",
        }
    )
    nobody = visits.head(5).assign(patient=[1, 2, 3, 4, 5])
    return {"patients": patients, "visits": pd.concat([visits, nobody]).sample(frac=1, random_state=seed)}
