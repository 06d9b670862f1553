"""The bias of regression coefficients of Prism's records, with and without the moment polish.

    python benches/moments.py adult|acs [EPSILON,...] [RELEASES] [STRENGTH,...]

Each row is the mean over coefficients of |mean over releases of (estimate - truth)|, in standard errors of regressions
on the real rows, for a logit and a linear model; the root mean squared error in that unit, also for the coefficients
of a square and a product; the mean total variation distance of pairs, and of 100 triples; and the seconds of making
records, in turns. Strength 0 is without polish.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tables import data_folder, distance, load

import chicle

Floats = npt.NDArray[np.float64]
Codes = Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Study:
    """A table and what is regressed on it: the outcome of the logit, its numbers (with a scale) and indicators; ..."""

    folder: str
    ordinal: tuple[str, ...]
    outcome: tuple[str, int]
    numbers: Mapping[str, float]
    indicators: Mapping[str, int]
    linear: str
    linear_numbers: Mapping[str, float]


STUDIES = {
    "adult": Study(
        "adult",
        ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        ("income>50K", 1),
        {"age": 85.0, "education-num": 16.0, "hours-per-week": 99.0},
        {"sex": 1, "marital-status": 2},
        "hours-per-week",
        {"age": 85.0, "education-num": 16.0},
    ),
    "acs": Study(
        "acs2018_income",
        (
            "Income",
            "Age",
            "Education",
            "Travel time to work",
            "Time of arrival at work - hour and minute",
            "Time of departure for work - hour and minute",
        ),
        ("Insurance through a current or former employer or union", 1),
        {"Age": 79.0, "Education": 24.0, "Income": 30.0},
        {"Gender": 1, "Marital Status": 0},
        "Income",
        {"Age": 79.0, "Education": 24.0},
    ),
}


def design(t: Codes, numbers: Mapping[str, float], indicators: Mapping[str, int]) -> Floats:
    ones = np.ones(len(next(iter(t.values()))))
    columns = [ones, *(t[c] / m for c, m in numbers.items()), *((t[c] == v) * 1.0 for c, v in indicators.items())]
    return np.column_stack(columns)


def logit(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    b = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ b, -30, 30)))
        hessian = (x * (p * (1 - p) + 1e-9)[:, None]).T @ x + 1e-8 * np.eye(len(b))
        b = b + np.linalg.solve(hessian, x.T @ (y - p))
    return b, np.sqrt(np.diag(np.linalg.inv(hessian)))


def linear(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    inverse = np.linalg.inv(x.T @ x)
    b = inverse @ (x.T @ y)
    rest = y - x @ b
    return b, np.sqrt(np.diag(inverse @ ((x * (rest**2)[:, None]).T @ x) @ inverse))


def coefficients(t: Codes, study: Study) -> tuple[list[Floats], list[Floats]]:
    """Those of the logit, of the linear model, and of a square and a product."""
    y = (t[study.outcome[0]] == study.outcome[1]) * 1.0
    rows = [logit(design(t, study.numbers, study.indicators), y)]
    amount = t[study.linear].astype(float)
    rows.append(linear(design(t, study.linear_numbers, study.indicators), amount))
    (first, most), (sex, code) = next(iter(study.numbers.items())), next(iter(study.indicators.items()))
    a, s = t[first] / most, (t[sex] == code) * 1.0
    b, errors = linear(np.column_stack([np.ones(len(a)), a, a * a, s, s * a]), amount)
    rows.append((b[[2, 4]], errors[[2, 4]]))
    return [b for b, _ in rows], [errors for _, errors in rows]


def main(name: str, epsilons: list[float], releases: int, strengths: list[float]) -> None:
    study = STUDIES[name]
    records, schema = load(data_folder() / study.folder)
    domain = records.domain
    rows = np.random.default_rng(0).permutation(len(records))[:50_000]
    records = chicle.Records({c: records[c][rows] for c in domain}, domain)
    schema = chicle.Schema.from_cardinalities(domain, ordinal=study.ordinal)
    truth = {c: records[c].astype(np.int64) for c in domain}
    pairs = list(itertools.combinations(domain, 2))
    triples = list(itertools.combinations(domain, 3))
    triples = [triples[i] for i in np.random.default_rng(0).permutation(len(triples))[:100]]
    target, errors = coefficients(truth, study)
    for epsilon in epsilons:
        off: dict[float, list[list[Floats]]] = {s: [] for s in strengths}
        apart: dict[float, list[list[float]]] = {s: [] for s in strengths}
        seconds: dict[float, list[float]] = {s: [] for s in strengths}
        for i in range(releases):
            release = chicle.Prism(epsilon=epsilon, delta=1e-9, threads=1).fit(records, schema).release_
            for strength in strengths:
                release.model.polish = strength  # type: ignore[attr-defined]
                begun = time.process_time()
                made = release.model.records(release.total, i, threads=1)
                seconds[strength].append(time.process_time() - begun)
                t = {c: np.asarray(made[c]).astype(np.int64) for c in domain}
                off[strength].append(
                    [(b - a) / e for a, b, e in zip(target, coefficients(t, study)[0], errors, strict=True)]
                )
                if i < 3:
                    apart[strength].append([distance(records, made, pairs), distance(records, made, triples)])
        for strength in strengths:
            z = [np.array(part) for part in zip(*off[strength], strict=True)]
            bias = " / ".join(f"{np.abs(part.mean(0)).mean():.2f}" for part in z[:2])
            rmse = " / ".join(f"{np.sqrt((part**2).mean()):.2f}" for part in z)
            tvd = " ".join(f"{d:.5f}" for d in np.mean(apart[strength], 0))
            time_ = (
                f"{np.mean(seconds[strength]):.3f} s, x{np.sum(seconds[strength]) / np.sum(seconds[strengths[0]]):.3f}"
            )
            print(f"{name} {epsilon:g} c={strength:g} bias {bias} rmse {rmse} TVD {tvd} time {time_}", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:] + [""] * 4
    main(
        given[0] or "adult",
        [float(e) for e in (given[1] or "1,3,10").split(",")],
        int(given[2] or 4),
        [float(s) for s in (given[3] or "0,0.3").split(",")],
    )
