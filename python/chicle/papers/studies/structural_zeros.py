"""[A] table 3: AIM on Fire with and without structural zeros of nine pairs of attributes.

An experiment that is NOT PRIVATE: the zeros are read off the table itself. A combination counts as impossible if no row
has it although more than five would if the pair were independent. In earnest zeros are declared by a person who knows
what cannot happen; reading them off private rows would leak.
"""

from __future__ import annotations

import numpy as np

from chicle.counting.records import Records, count
from chicle.domain import Clique
from chicle.evaluation import evaluate
from chicle.mechanisms import AIM
from chicle.papers.sources import FIRE_15
from chicle.papers.study import Case, Row, Study
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["PAIRS", "STRUCTURAL_ZEROS", "allowed_combinations"]

PAIRS: tuple[Clique, ...] = (
    ("City", "Zipcode of Incident"),
    ("City", "Battalion"),
    ("Fire Prevention District", "Battalion"),
    ("Fire Prevention District", "Supervisor District"),
    ("Battalion", "Station Area"),
    ("Supervisor District", "Neighborhooods - Analysis Boundaries"),
    ("Zipcode of Incident", "Neighborhooods - Analysis Boundaries"),
    ("Zipcode of Incident", "Station Area"),
    ("Call Type Group", "Call Type"),
)
"""Nine pairs, as many as in [A], which names one of them: places within places, and types within groups."""

_EXPECTED = 5.0
_DELTA = 1e-9
_EPSILONS = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0)
_WITHOUT = (0.613, 0.303, 0.141, 0.087, 0.052, 0.044, 0.038, 0.029, 0.025)
_WITH = (0.542, 0.263, 0.153, 0.077, 0.053, 0.045, 0.032, 0.026, 0.025)


def allowed_combinations(records: Records, pair: Clique) -> list[list[int]]:
    """Return the combinations of codes that are not taken for impossible. NOT PRIVATE: it reads the rows."""
    (table,) = count(records, [pair])
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(len(records), 1)
    found: list[list[int]] = np.argwhere((table > 0) | (expected <= _EXPECTED)).tolist()
    return found


def zeros(case: Case) -> list[Row]:
    """Return the workload error of AIM as published, without and with zeros, and how many there are."""
    records, domain = case.records, case.records.domain
    known = [pair for pair in PAIRS if set(pair) <= set(domain)]
    combinations = {pair: allowed_combinations(records, pair) for pair in known}
    declared = [{"allow": list(pair), "combinations": allowed} for pair, allowed in combinations.items()]
    forbidden = sum(domain.cells(pair) - len(allowed) for pair, allowed in combinations.items())
    triples = Workload.all_kway(domain, min(3, len(domain)))
    rows: list[Row] = []
    for name, constraints in (("AIM", None), ("AIM and structural zeros", declared)):
        schema = Schema(dict(domain), constraints=constraints)
        synth = AIM(published=True, epsilon=case.epsilon, delta=_DELTA, allow_weak=True, threads=case.threads)
        made = synth.fit(records, schema).sample(seed=case.seed)
        found = evaluate(
            records, made, case.schema, workload=triples, pairs=1, triples=1, queries=1, threads=case.threads
        )
        impossible = np.zeros(len(made), dtype=np.bool_)
        for pair, allowed in combinations.items():
            table = np.zeros(domain.shape(pair), dtype=np.bool_)
            table[tuple(np.array(allowed).T)] = True
            impossible |= ~table[made[pair[0]], made[pair[1]]]
        rows.append(
            {
                "system": name,
                "workload": found["workload"].value,
                "impossible": float(impossible.mean()),
                "zeros": forbidden if constraints else 0,
            }
        )
    return rows


STRUCTURAL_ZEROS = Study(
    name="zeros",
    title="Structural zeros (table 3)",
    about=(
        "[A] table 3: the workload error of AIM as published on Fire, all triples, with and without structural zeros "
        "of nine pairs. [A] has 2,696 zeros and names one pair. Here the pairs are ours, and their zeros are read off "
        "the table, which only an experiment may do: a combination is declared impossible if no row has it although "
        "more than five would if the pair were independent. Published figures are means of five runs."
    ),
    run=zeros,
    by={"epsilon": "epsilon", "system": "system"},
    values={"workload": "workload error", "impossible": "share of impossible rows", "zeros": "zeros"},
    tables=(FIRE_15,),
    epsilons=_EPSILONS,
    quick_epsilons=(0.1, 1.0, 10.0),
    seeds=5,
    quick_seeds=3,
    published={
        ("Fire", epsilon, system): {"workload": value}
        for system, values in (("AIM", _WITHOUT), ("AIM and structural zeros", _WITH))
        for epsilon, value in zip(_EPSILONS, values, strict=True)
    },
)
