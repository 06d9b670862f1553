"""The model of a partitioned table: records of each partition, made apart.

Two ways. *Pooled*: one model of the whole table without the attributes of the partition, and for each partition its
size and the shares of each attribute's values. *Independent*: a model for each partition. Both hold fitted models of
other families, whose parameters and arrays go into the file with their own, so a load fits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chicle._checks import threads_or_all
from chicle.codes import code_dtype
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.errors import ArtefactError, ParameterError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement
from chicle.models.base import CountedModel, Model, State, model_of, register_model
from chicle.partition.areas import PublicAreas
from chicle.partition.pool import Pool, systematic
from chicle.partition.shrink import mean_sizes, shrunk_shares, steady_sizes

__all__ = ["PartitionedModel", "seen_domain"]

Floats = npt.NDArray[np.float64]

_LEAST_POOL, _MOST_POOL, _TIMES = 30_000, 1_000_000, 2  # rows of the pool: for each row of the largest partition two
_REFERENCE = 0xA2  # the seed of the rows that give the 1-ways of the whole table: public
_REFERENCE_ROWS = 50_000


@register_model("partitioned")
@dataclass(kw_only=True, eq=False)
class PartitionedModel(CountedModel):
    """Records of each partition, made apart.

    Attributes
    ----------
    partition
        The attributes that form partitions.
    way
        ``"pooled"`` or ``"independent"``.
    inner
        The families and parameters of the models that it holds.
    """

    partition: Sequence[str]
    way: Literal["pooled", "independent"]
    inner: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    @classmethod
    def pooled(cls, partition: Clique, whole: Model, areas: PublicAreas | None = None) -> PartitionedModel:
        """Return a model, to be fitted, that holds that of the whole table without the attributes of the partition."""
        found = cls(partition=list(partition), way="pooled", inner=[_told(whole)])
        found.hold([whole], areas)
        return found

    @classmethod
    def independent(cls, partition: Clique, models: Sequence[Model]) -> PartitionedModel:
        """Return a model, to be fitted, that holds the model of each partition, in the order of their codes."""
        found = cls(partition=list(partition), way="independent", inner=[_told(one) for one in models])
        found.hold(models)
        return found

    def hold(self, models: Sequence[Model], areas: PublicAreas | None = None) -> None:
        """Take fitted models of the other attributes, of the whole or of each partition, and public partitions."""
        self._models = list(models)
        self._areas = areas

    @property
    def sizes(self) -> Floats:
        """The estimated number of rows of each partition, in the order of their codes."""
        return self._sizes

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn how partitions differ; the models that this one holds are fitted already."""
        del start, progress
        if not hasattr(self, "_models"):
            raise ParameterError("a partitioned model holds fitted models; make it by `pooled` or `independent`")
        names = tuple(self.partition)
        (size,) = [one for one in measurements if one.clique == names and one.whole]
        counted, sigma = size.floats.reshape(-1), size.sigma
        parents = self._parents()
        if self.way == "independent":
            self._sizes = self._of_groups(measurements, counted, sigma)
            return
        inside = [one for one in measurements if one.whole and one.clique[:-1] == names and not one.buckets]
        tables = {one.clique[-1]: one.floats.reshape(len(counted), -1) for one in inside}
        sigmas = {one.clique[-1]: one.sigma for one in inside}
        counted, sigma = mean_sizes(counted, sigma, list(tables.values()), list(sigmas.values()))
        self._sizes = steady_sizes(counted, sigma, parents)
        self._total = max(round(float(self._sizes.sum())), 1)
        queries = [(name,) for name in self._rest()]
        reference = (
            self._models[0]
            .records(min(self._total, _REFERENCE_ROWS), _REFERENCE, threads=threads)
            .count(queries, threads=threads)
        )
        whole = {
            name: np.maximum(table, 0.01) / np.maximum(table, 0.01).sum()
            for name, table in zip(self._rest(), reference, strict=True)
        }
        shares, self.believed = shrunk_shares(tables, sigmas, self._sizes, whole, parents=parents, areas=self._areas)
        self._shares = list(shares.values())

    def _rest(self) -> Domain:
        """Return the attributes that do not form the partition."""
        return Domain({name: size for name, size in self.domain.items() if name not in self.partition})

    def _parents(self) -> npt.NDArray[np.int64]:
        """Return the number of the parent of each partition: the value of all attributes but the last."""
        shape = self.domain.shape(tuple(self.partition))
        return np.arange(int(np.prod(shape))) // shape[-1]

    def _of_groups(self, measurements: Sequence[Measurement], counted: Floats, sigma: float) -> Floats:
        """Return the sizes of partitions by all that was measured in them, too."""
        precision = np.full(len(counted), sigma**-2)
        found = counted * precision
        shape = self.domain.shape(tuple(self.partition))
        for one in measurements:
            if set(one.where) == set(self.partition) and one.functional is None:
                place = int(np.ravel_multi_index([one.where[name] for name in self.partition], shape))
                weight = 1 / (one.values.size * one.sigma**2)
                precision[place] += weight
                found[place] += weight * float(one.floats.sum())
        return np.asarray(np.maximum(found / precision, 0.0), dtype=np.float64)

    def only(self, codes: Mapping[str, npt.NDArray[Any]]) -> PartitionedModel:
        """Return the model of some partitions alone: those with given codes of some of their attributes."""
        shape = self.domain.shape(tuple(self.partition))
        kept = np.ones(len(self._sizes), dtype=np.bool_)
        for name, values in zip(self.partition, np.unravel_index(np.arange(len(kept)), shape), strict=True):
            if name in codes:
                kept &= np.isin(values, codes[name])
        sizes = np.where(kept, self._sizes, 0.0)
        if not sizes.sum() and kept.any():
            sizes = kept.astype(np.float64)  # all of them are empty: whoever asks for rows gets them evenly
        found = copy(self)
        vars(found).pop("_kept", None)
        vars(found).update(_sizes=sizes, _total=max(round(float(sizes.sum())), 1))
        return found

    def less_smoothed(self) -> PartitionedModel:
        """Refuse: replicates of a partitioned release would have to be fitted partition by partition."""
        raise ParameterError(
            "draws of a release with partitions are not available; sample it, or fit without `partition`"
        )

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the domain."""
        rng = np.random.default_rng(seed)
        fixed = int(rng.integers(2**63))
        weights = self._sizes if self._sizes.sum() > 0 else np.ones(len(self._sizes))
        drawn = systematic(weights, n, rng)
        sizes = np.bincount(drawn, minlength=len(weights))
        make = self._maker(sizes, fixed, threads)
        ends = np.cumsum(sizes)
        columns = {name: np.empty(n, dtype=code_dtype(size)) for name, size in self.domain.items()}
        codes = np.unravel_index(np.arange(len(sizes)), self.domain.shape(tuple(self.partition)))

        def fill(place: int) -> None:
            rows = slice(ends[place] - sizes[place], ends[place])
            made = make(place, int(sizes[place]))
            for name in made:
                columns[name][rows] = made[name]
            for name, values in zip(self.partition, codes, strict=True):
                columns[name][rows] = values[place]

        there = np.flatnonzero(sizes).tolist()
        # Each partition has a seed of its own, so the records do not depend on the number of workers.
        with ThreadPoolExecutor(1 if self.way == "independent" else threads_or_all(threads)) as workers:
            for done, _ in enumerate(workers.map(fill, there), 1):
                if progress is not None and (done % 100 == 0 or done == len(there)):
                    progress(done, 1 - done / len(there))
        # Shuffled: the position of a record must carry no information.
        order = rng.permutation(n)
        return Records({name: column[order] for name, column in columns.items()}, self.domain)

    def _maker(self, sizes: npt.NDArray[np.int64], seed: int, threads: int | None) -> Callable[[int, int], Records]:
        """Return what makes so many records of one partition."""
        if self.way == "independent":
            return lambda place, n: self._models[place].records(
                n, int(np.random.SeedSequence([seed, place]).generate_state(1, np.uint64)[0] >> 1), threads=threads
            )
        rows = min(max(_TIMES * int(sizes.max(initial=0)), _LEAST_POOL), _MOST_POOL)
        pool = Pool.of(self._models[0].records(rows, seed, threads=threads), threads)
        names = list(self._rest())

        def make(place: int, n: int) -> Records:
            shares = {name: table[place] for name, table in zip(names, self._shares, strict=True)}
            return pool.make(shares, n, [seed, place])

        return make

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays; those of the models that it holds have their place in front."""
        held = {f"{i}-{name}": array for i, one in enumerate(self._models) for name, array in one.state().items()}
        shares = {"shares": np.concatenate(self._shares, axis=1)} if self.way == "pooled" else {}
        return {"sizes": self._sizes, **shares, **held}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        rest, number = self._rest(), self.domain.cells(tuple(self.partition))
        if len(self.inner) != (1 if self.way == "pooled" else number):
            raise ArtefactError("its models are not as many as its partitions")
        self._sizes = np.asarray(state["sizes"], dtype=np.float64)
        if self._sizes.shape != (number,) or not (np.isfinite(self._sizes).all() and (self._sizes >= 0).all()):
            raise ArtefactError("the sizes of its partitions do not fit its schema")
        if self.way == "pooled":
            shares = np.asarray(state["shares"], dtype=np.float64)
            if shares.shape != (number, sum(rest.values())) or not (np.isfinite(shares).all() and (shares >= 0).all()):
                raise ArtefactError("the shares of its partitions do not fit its schema")
            self._shares = np.split(shares, np.cumsum(list(rest.values()))[:-1], axis=1)
        own: list[dict[str, npt.NDArray[Any]]] = [{} for _ in self.inner]
        for name, array in state.items():
            place, _, inside = name.partition("-")
            if place.isdigit() and int(place) < len(own):
                own[int(place)][inside] = array
        self._models = [
            model_of(one["family"])(**one["parameters"]).restore(arrays, rest)
            for one, arrays in zip(self.inner, own, strict=True)
        ]


def _told(model: Model) -> dict[str, Any]:
    return {"family": model.family, "parameters": model.params()}


def seen_domain(model: Model, domain: Domain) -> Domain:
    """Return the attributes that a mechanism saw: all but those of the partition, where the model is partitioned."""
    if not isinstance(model, PartitionedModel):
        return domain
    return Domain({name: size for name, size in domain.items() if name not in model.partition})
