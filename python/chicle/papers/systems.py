"""Systems of the papers that are a mechanism with other parameters, as contenders of `chicle.compare`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chicle.counting.records import Records
from chicle.mechanisms import GEM, MWEM, PEP, DPSyn, PMWPub, PrivSyn, Residual
from chicle.mechanisms.base import Mechanism
from chicle.public import PublicData
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = [
    "dpsyn_areas",
    "gem_pub_half",
    "gem_published",
    "mwem_explicit",
    "pep_published",
    "pmw_pub_published",
    "privsyn_published",
    "residual",
]


_JOINT = (("SEX", "MAR"), ("HICOV", "PRIVCOV", "PUBCOV"))
"""Sex and marital status, and the kinds of health insurance ([D20])."""


def _made(synth: Mechanism, records: Records, schema: Schema, seed: int, public: PublicData | None = None) -> Records:
    made: Records = synth.fit(records, schema, public=public).sample(seed=seed)
    return made


def _budget(epsilon: float, delta: float, threads: int | None) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": delta, "threads": threads, "allow_weak": True}


def privsyn_published(
    records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
) -> Records:
    """PrivSyn with the scores, the accounting and the record update of the paper: 100 passes of GUM."""
    gum = {"variant": "published", "passes": 100}
    synth = PrivSyn(form="published", accounting="zcdp-basic", options=gum, **_budget(epsilon, delta, threads))
    return _made(synth, records, schema, seed)


def mwem_explicit(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    workload: Workload,
) -> Records:
    """MWEM over an explicit distribution, one query a round, as in [G]."""
    return _made(
        MWEM(model="explicit", published=True, workload=workload, **_budget(epsilon, delta, threads)),
        records,
        schema,
        seed,
    )


def pep_published(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    workload: Workload,
) -> Records:
    """PEP, one query a round, as in [G]."""
    return _made(PEP(published=True, workload=workload, **_budget(epsilon, delta, threads)), records, schema, seed)


def gem_published(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    workload: Workload,
) -> Records:
    """GEM with its network, single queries, as in [G]."""
    return _made(GEM(published=True, workload=workload, **_budget(epsilon, delta, threads)), records, schema, seed)


def residual(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    workload: Workload,
) -> Records:
    """Residual on the marginals of a workload of at most 20,000 cells."""
    kept = {clique: weight for clique, weight in workload.items() if records.domain.cells(clique) <= 20_000}
    synth = Residual(workload=kept or None, max_cells=2**26, **_budget(epsilon, delta, threads))
    return _made(synth, records, schema, seed)


def gem_pub_half(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    workload: Workload,
    public: PublicData,
) -> Records:
    """GEM-pub whose public table has every second attribute: 7 of the 13 of Adult, as in [G]."""
    half = replace(public, columns=list(public.table.domain)[::2])
    synth = GEM(workload=workload, **_budget(epsilon, delta, threads))
    return _made(synth, records, schema, seed, half)


def pmw_pub_published(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    workload: Workload,
    public: PublicData,
) -> Records:
    """PMW-pub by half steps, one query a round, as in [G]."""
    synth = PMWPub(workload=workload, published=True, **_budget(epsilon, delta, threads))
    return _made(synth, records, schema, seed, public)


def dpsyn_areas(
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
    public: PublicData,
) -> Records:
    """DPSyn with the joint columns of [D20] that the survey has."""
    there = [group for group in _JOINT if set(group) <= set(records.domain)]
    return _made(DPSyn(joint=there, **_budget(epsilon, delta, threads)), records, schema, seed, public)
