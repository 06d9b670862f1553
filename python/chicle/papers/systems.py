"""Systems of the papers that are a mechanism with other parameters, as contenders of `chicle.compare`."""

from __future__ import annotations

from typing import Any

from chicle.counting.records import Records
from chicle.mechanisms import GEM, MWEM, PEP, PrivSyn, Residual
from chicle.mechanisms.base import Mechanism
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["gem_published", "mwem_explicit", "pep_published", "privsyn_published", "residual_triples"]


def _made(synth: Mechanism, records: Records, schema: Schema, seed: int) -> Records:
    made: Records = synth.fit(records, schema).sample(seed=seed)
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
    records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
) -> Records:
    """MWEM over an explicit distribution, one query a round, as in [G]."""
    return _made(MWEM(model="explicit", published=True, **_budget(epsilon, delta, threads)), records, schema, seed)


def pep_published(
    records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
) -> Records:
    """PEP, one query a round, as in [G]."""
    return _made(PEP(published=True, **_budget(epsilon, delta, threads)), records, schema, seed)


def gem_published(
    records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
) -> Records:
    """GEM with its network, single queries, as in [G]."""
    return _made(GEM(published=True, **_budget(epsilon, delta, threads)), records, schema, seed)


def residual_triples(
    records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
) -> Records:
    """Residual on all triples of at most 20,000 cells."""
    cliques = [clique for clique in Workload.all_kway(records.domain, 3) if records.domain.cells(clique) <= 20_000]
    synth = Residual(workload=cliques or None, max_cells=2**26, **_budget(epsilon, delta, threads))
    return _made(synth, records, schema, seed)
