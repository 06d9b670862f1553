"""The model of DPSyn: consistent tables over fields, and GUM; for partitions a pool, improved for each ([D20])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chicle._checks import check_seed
from chicle.codes import Codes, code_dtype
from chicle.counting.records import Records
from chicle.denoising.consistency import project
from chicle.denoising.rake import rake_table
from chicle.domain import Clique, Domain
from chicle.errors import ArtefactError, ParameterError
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, check_all, onto_simplex
from chicle.models.base import CountedModel, Model, State, register_model
from chicle.models.compose import compose
from chicle.models.descent import descend
from chicle.models.gum import gum, onto_total
from chicle.models.layout import Layout

__all__ = ["DPSynModel", "Generator", "Regime", "processed_sizes"]

Generator = Literal["gum", "descent"]
Regime = Literal["declared", "public", "one-way", "two-way"]

Ints = npt.NDArray[np.int64]

_POOL = 10_000  # records of the pool ([D20])
_MOST_PUBLIC = 100_000  # of the pool of public rows, which the file of a release holds
_SEED = 0xD5  # of the pool: public, so that a fit is a function of what was released


@register_model("dpsyn")
@dataclass(kw_only=True, eq=False)
class DPSynModel(CountedModel):
    """Tables over the fields of a layout, and records that GUM makes of them.

    Without a partition, records are made from all tables at once, unconnected groups of fields apart ([D18] appendix
    A). With one, a pool of 10,000 records is made first. Each partition begins with as many rows of the pool as it has,
    and GUM brings these closer to the tables: to public pairs, measured 1-ways or measured pairs, by the regime
    ([D20]). Partitions of one size share their records.

    Attributes
    ----------
    regime
        What was measured: ``"declared"`` tables ([D18]); or, of [D20], nothing beside sizes (``"public"``),
        ``"one-way"`` or ``"two-way"`` tables.
    joint, synchronous, mapped
        Columns that are seen as fewer fields; see `Layout`.
    partition
        The columns that form partitions.
    floor, round_to
        Noisy sizes of partitions are raised to the floor, then rounded to a multiple.
    generator, passes
        What makes records: ``"gum"``, passes of its tuned variant, or ``"descent"``, as many sweeps.
    """

    regime: Regime = "declared"
    joint: Sequence[Sequence[str]] = ()
    synchronous: Sequence[Sequence[str]] = ()
    mapped: Mapping[str, str] = field(default_factory=dict)
    partition: Sequence[str] = ()
    floor: int = 300
    round_to: int = 100
    generator: Generator = "gum"
    passes: int = 10

    def with_public(self, layout: Layout, public: Records | None) -> DPSynModel:
        """Return the model with what its fit needs beside measurements: its fields, and public rows of them."""
        self._given = layout, public
        return self

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""
        del start, progress
        merged = check_all([self.merge.over(one) for one in measurements if one.whole], self.merge.domain)
        self._layout, self._public = vars(self).pop("_given", (None, None))
        if self._layout is None:
            self._layout = self._fields({})
        self._maps = self._layout.maps(merged)
        seen = [table for one in merged if (table := self._layout.table(one)) is not None]
        self._tables = self._targets(seen, threads)
        names = self.merge.domain.clique(self.partition)
        sized = [one for one in merged if self.partition and one.clique == names and not one.buckets]
        self._sizes = processed_sizes(sized[0].floats, self.floor, self.round_to) if sized else np.array([self.total])
        self._pool = self._made_pool(threads) if self.partition else None
        del self._public

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        rng = np.random.default_rng(check_seed(seed))
        if not self.partition:
            fields = self._made(self._tables, n, int(rng.integers(2**63)), threads, progress)
            made = self._layout.split(fields, self._maps)
            return Records({name: made[name] for name in self.merge.domain}, self.merge.domain)
        sizes = _apportioned(self._sizes, n)
        rows = self._of_sizes(np.unique(sizes), rng, threads, progress)
        parts = np.repeat(np.arange(sizes.size), sizes)
        columns: dict[str, Codes] = {
            name: np.concatenate([np.empty(0, dtype=codes.dtype), *(rows[size][name] for size in sizes.tolist())])
            for name, codes in rows[int(sizes[0])].items()
        }
        names = self.merge.domain.clique(self.partition)
        for name, codes in zip(names, np.unravel_index(parts, self.merge.domain.shape(names)), strict=True):
            columns[name] = codes.astype(code_dtype(self.merge.domain[name]))
        # Shuffled: partitions of one size have the same rows, and their order must not say so.
        order = rng.permutation(n)
        return Records({name: columns[name][order] for name in self.merge.domain}, self.merge.domain)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        pool = {} if self._pool is None else {f"pool-{i}": self._pool[name] for i, name in enumerate(self._pool.domain)}
        maps = {f"map-{i}": self._maps[name] for i, name in enumerate(self.mapped)}
        tables = measurements_to_arrays(self._tables, self._layout.domain)
        return {**tables, **self._layout.to_arrays(), **maps, **pool, "sizes": self._sizes}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        self._layout = self._fields({tuple(group): state[f"joint-{i}"] for i, group in enumerate(self.joint)})
        self._maps = {name: state[f"map-{i}"].astype(np.int64) for i, name in enumerate(self.mapped)}
        for name, learnt in self._maps.items():
            values, by = self.merge.domain[name], self.merge.domain[self.mapped[name]]
            if learnt.shape != (by,) or learnt.min() < 0 or learnt.max() >= values:
                raise ArtefactError(f"the map that fills {name!r} does not fit its values")
        self._tables = measurements_from_arrays(state, self._layout.domain)
        self._sizes = state["sizes"].astype(np.int64)
        expected = self.merge.domain.cells(tuple(self.partition)) if self.partition else 1
        if self._sizes.shape != (expected,) or (self._sizes < 0).any():
            raise ArtefactError("the sizes of partitions do not fit their columns")
        self._pool = None
        if self.partition:
            columns = {name: state[f"pool-{i}"] for i, name in enumerate(self._layout.domain)}
            self._pool = Records(columns, self._layout.domain)

    def _fields(self, joint: Mapping[Clique, Ints]) -> Layout:
        return Layout(
            self.merge.domain,
            joint=joint,
            synchronous=[tuple(group) for group in self.synchronous],
            mapped=self.mapped,
            without=tuple(self.partition),
        )

    def _targets(self, seen: Sequence[Measurement], threads: int | None) -> list[Measurement]:
        """Return the tables that records shall have: consistent, without negative cells."""
        domain = self._layout.domain
        if self.regime in ("declared", "two-way"):
            return project(seen, domain, threads=threads)
        pairs = _public_pairs(_public_rows(self._public), domain, threads)
        if self.regime == "public":
            return pairs
        total = max(float(self.total), 1.0)
        one_ways = [
            Measurement(one.clique, onto_simplex(one.floats, total), one.sigma) for one in seen if len(one.clique) == 1
        ]
        margins = {one.clique[0]: one.floats for one in one_ways}
        # Public pairs with the private margins ([D20]): raked, so that a cell that no public row is in stays empty.
        raked = [
            Measurement(pair.clique, rake_table(pair.floats, [margins[name] for name in pair.clique]), 1.0)
            for pair in pairs
        ]
        return [*one_ways, *raked]

    def _made_pool(self, threads: int | None) -> Records:
        """Return the records that partitions begin with."""
        if self.regime == "public":
            public = _public_rows(self._public)
            rows = np.random.default_rng(_SEED).permutation(len(public))[:_MOST_PUBLIC]
            return Records({name: public[name][rows] for name in public}, public.domain)
        return self._made(self._tables, _POOL, _SEED, threads, None)

    def _made(
        self,
        tables: Sequence[Measurement],
        n: int,
        seed: int,
        threads: int | None,
        progress: Progress | None,
    ) -> Records:
        def kernel(targets: Sequence[Measurement], domain: Domain, rows: int, seed: int) -> Records:
            return self._kernel(targets, domain, rows, seed=seed, threads=threads, progress=progress)

        return compose(kernel, tables, self._layout.domain, n, seed)

    def _kernel(
        self,
        targets: Sequence[Measurement],
        domain: Domain,
        n: int,
        *,
        start: Records | None = None,
        seed: int,
        threads: int | None,
        progress: Progress | None = None,
    ) -> Records:
        """Return records near the targets, made anew or from others."""
        given: dict[str, Any] = {"seed": seed, "threads": threads, "progress": progress}
        if not n:
            return Records({name: np.empty(0, dtype=np.uint8) for name in domain}, domain)
        if self.generator == "gum":
            return gum(targets, domain, n, start=start, passes=self.passes, variant="tuned", **given)
        # Consistent tables of one total: none is nearer to the truth than the others say.
        scaled = [Measurement(one.clique, onto_total(one.floats, n), 1.0) for one in targets]
        return descend(scaled, domain, n, start=start, sweeps=self.passes, **given)

    def _of_sizes(
        self, sizes: Ints, rng: np.random.Generator, threads: int | None, progress: Progress | None
    ) -> dict[int, dict[str, Codes]]:
        """Return the columns of a partition of each size: rows of the pool, improved."""
        if self._pool is None:
            raise ArtefactError("a model of partitions has a pool of records; this one has none")
        one_way = self.regime == "one-way"
        targets = [one for one in self._tables if len(one.clique) == 1 or not one_way]
        found = {}
        for done, size in enumerate(sizes.tolist(), 1):
            some = (
                rng.permutation(len(self._pool)) if size <= len(self._pool) else rng.integers(0, len(self._pool), size)
            )
            begun = Records({name: self._pool[name][some[:size]] for name in self._pool}, self._pool.domain)
            seed = int(rng.integers(2**63))
            made = self._kernel(targets, self._pool.domain, size, start=begun, seed=seed, threads=threads)
            found[size] = self._layout.split(made, self._maps)
            if progress is not None:
                progress(done, 1 - done / len(sizes))
        return found


def processed_sizes(noisy: npt.NDArray[np.float64], floor: int, round_to: int) -> Ints:
    """Return the sizes of partitions: raised to the floor, then rounded to a multiple, as the text of [D20] says.

    The published program rounds first.

    Examples
    --------
    >>> processed_sizes(np.array([-20.0, 349.0, 350.0, 12_345.0]), 310, 100).tolist()
    [300, 300, 400, 12300]
    """
    raised = np.maximum(noisy.reshape(-1), floor)
    sizes: Ints = (np.floor(raised / round_to + 0.5) * round_to).astype(np.int64)
    return sizes


def _apportioned(sizes: Ints, n: int) -> Ints:
    """Return sizes in the same ratios that add up to `n`; the largest remainders are rounded up."""
    exact = sizes * (n / sizes.sum()) if sizes.sum() else np.full(sizes.size, n / sizes.size)
    whole: Ints = np.floor(exact).astype(np.int64)
    most = np.argsort(whole - exact, kind="stable")[: n - int(whole.sum())]
    whole[most] += 1
    return whole


def _public_rows(public: Records | None) -> Records:
    if public is None or not len(public):
        raise ParameterError("this regime makes records from public rows, and there are none; give a public table")
    return public


def _public_pairs(public: Records, domain: Domain, threads: int | None) -> list[Measurement]:
    """Return all pairs of public rows, or their 1-way where there is one field only."""
    names = list(domain)
    pairs: list[Clique] = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    pairs = pairs or [(name,) for name in names]
    counted = public.count(pairs, threads=threads)
    return [Measurement(pair, table.astype(np.float64), 1.0) for pair, table in zip(pairs, counted, strict=True)]
