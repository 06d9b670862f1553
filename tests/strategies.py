"""Domains, records and cliques for property tests, and the oracle that everybody can read."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from chicle import Clique, Domain, Records

names = st.lists(st.text("abcdefgh ÄØ_", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)
cardinalities = st.one_of(st.integers(1, 9), st.integers(10, 400), st.just(70_000))


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    return Domain({name: draw(cardinalities) for name in draw(names)})


@st.composite
def records(draw: st.DrawFn, max_rows: int = 300) -> Records:
    domain = draw(domains())
    rows = draw(st.integers(0, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    skew = draw(st.sampled_from([1.0, 4.0]))
    codes = {name: (rng.random(rows) ** skew * size).astype(np.int64) for name, size in domain.items()}
    return Records(codes, domain)


@st.composite
def cliques_of(draw: st.DrawFn, domain: Domain) -> list[Clique]:
    clique = st.lists(st.sampled_from(list(domain)), max_size=3, unique=True).map(tuple)
    return draw(st.lists(clique.filter(lambda c: domain.cells(c) <= 2**20), max_size=8))


def naive_count(table: Records, clique: Clique) -> npt.NDArray[Any]:
    counts = np.zeros(table.domain.shape(clique), dtype=np.int64)
    for row in range(len(table)):
        counts[tuple(table[name][row] for name in clique)] += 1
    return counts
