"""How partitions differ, as the partitions of a public table tell. Everything here is free.

A public table that has the columns of the partition has partitions of its own: other counties, or the same in another
year. Nothing is taken of any one of them. But how their 1-ways differ is alike: where incomes are high, more people own
their homes. So each partition's 1-ways, all in one vector of shares, are taken to be those of the whole plus ``V b``,
for a few directions V and ``b`` normal with variances L, both of the public table, as far as they stand out from the
sampling of its rows (Gavish and Donoho 2017). Of noisy tables with M = V' S^-1 V, for S the variances of their noise,
the best guess of b for a partition of N rows is ``(L^-1 + N^2 M)^-1 N V' S^-1 (y - N mean)``.

L is multiplied by one number, for which the noisy tables are expected to come nearest to the truth (Stein's unbiased
estimate of risk). It is 0 if no number is clearly better than 0: then the public partitions say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.measurements.public_rows import PublicRows
from chicle.privacy.budget import budget_shares, calibrate

__all__ = ["Guess", "PublicAreas", "by_partition", "public_areas"]

Floats = npt.NDArray[np.float64]

_EDGE = 1.3  # a direction must exceed the largest of independent rows by this factor: rows of a household are alike
_MOST_DIRECTIONS = 40
_MOST_AREAS = 2_000  # public partitions that are looked at, the largest
_MOST_CELLS = 2**25  # of the public 1-ways of all partitions
_LEAST_AREAS = 8
_LEAST_ROWS = 30  # of a public partition
_SCALES = (0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 6.0, 12.0)
_CLEARLY = 3.0  # standard deviations


@dataclass(frozen=True, eq=False)
class Guess:
    """What public partitions make of noisy tables.

    Attributes
    ----------
    shares
        For each attribute, by how much the shares of its values differ in each partition: a row for each.
    scale
        The number by which the public variances were multiplied; 0 if they say nothing.
    """

    shares: Mapping[str, Floats]
    scale: float


@dataclass(frozen=True, eq=False)
class PublicAreas:
    """How the 1-ways of public partitions differ.

    Attributes
    ----------
    directions
        For each attribute, the directions in which the shares of its values differ: a row for each.
    variances
        The variance along each direction.
    rests
        For each attribute, the variance of each share beyond the directions.
    number
        How many public partitions there are.
    """

    directions: Mapping[str, Floats]
    variances: Floats
    rests: Mapping[str, Floats]
    number: int

    @classmethod
    def of(cls, public: Records, names: Clique, *, threads: int | None = None) -> PublicAreas | None:
        """Return how the partitions of public rows differ; None if they have none, or too few to tell.

        Parameters
        ----------
        public
            The public rows.
        names
            The attributes that form partitions; where there are several, partitions are compared with their parent.
        threads
            How many threads to use.
        """
        rest = Domain({name: size for name, size in public.domain.items() if name not in names})
        if not rest or any(name not in public.domain for name in names):
            return None
        if public.domain.cells(names) * sum(rest.values()) > _MOST_CELLS:
            return None
        tables = [
            table.reshape(-1, size).astype(np.float64)
            for table, size in zip(
                public.count([(*names, name) for name in rest], threads=threads), rest.values(), strict=True
            )
        ]
        rows = tables[0].sum(axis=1)
        parents = np.arange(rows.size) // public.domain[names[-1]]
        kept = np.sort(np.argsort(-rows, kind="stable")[:_MOST_AREAS])
        kept = kept[rows[kept] >= _LEAST_ROWS]
        if len(kept) < _LEAST_AREAS:
            return None
        rows, parents = rows[kept], parents[kept]
        off, sampled = [], []
        for table in tables:
            above = np.zeros((int(parents.max()) + 1, table.shape[1]))
            np.add.at(above, parents, table[kept])
            shares = above / np.maximum(above.sum(axis=1, keepdims=True), 1)
            off.append(table[kept] / rows[:, None] - shares[parents])
            sampled.append(np.maximum(above.sum(axis=0) / rows.sum(), 0.5 / rows.sum()))
        return cls._found(off, sampled, rows, rest)

    @classmethod
    def _found(cls, off: Sequence[Floats], shares: Sequence[Floats], rows: Floats, rest: Domain) -> PublicAreas | None:
        """Return the directions that stand out of the sampling of rows, whose variance is share over rows."""
        deviations, share = np.concatenate(off, axis=1), np.concatenate(shares)
        whitened = deviations * np.sqrt(rows[:, None] / share)
        left, values, right = np.linalg.svd(whitened, full_matrices=False)
        low, high = sorted(whitened.shape)
        ratio, scaled = low / high, values / math.sqrt(high)
        there = np.flatnonzero(scaled > _EDGE * (1 + math.sqrt(ratio)))[:_MOST_DIRECTIONS]
        if not there.size:
            return None
        y = scaled[there]
        strength = np.sqrt(np.maximum((y**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)) / y * math.sqrt(high)
        signal = (left[:, there] * strength) @ right[there] / np.sqrt(rows[:, None] / share)
        weights = rows / rows.sum()
        _, sizes, directions = np.linalg.svd(signal * np.sqrt(weights)[:, None], full_matrices=False)
        found = directions[: there.size], np.square(sizes[: there.size])
        clear = found[1] > 1e-12
        directions, variances = found[0][clear], found[1][clear]
        if not variances.size:
            return None
        beyond = weights @ np.square(deviations - signal) - share / rows.mean()
        ends = np.cumsum(list(rest.values()))[:-1]
        return cls(
            dict(zip(rest, np.split(directions, ends, axis=1), strict=True)),
            variances,
            dict(zip(rest, np.split(np.maximum(beyond, 0.0), ends), strict=True)),
            len(rows),
        )

    def said(self, scale: float) -> str:
        """Return a sentence about how far they were believed."""
        found = f"{self.number:,} public partitions differ in {len(self.variances)} directions"
        if not scale:
            return f"{found}; the tables by partition do not clearly bear them out, so they are not used"
        return f"{found}; the tables by partition bear them out, with variances times {scale:g}"

    def chosen(self, domain: Domain, size: float, noise: float) -> list[str]:
        """Return the attributes to measure by partition, if the public partitions are like the private ones.

        They are added one by one, each time the one after which 1-ways are expected to be best, until none helps.

        Parameters
        ----------
        domain
            The attributes there are.
        size
            About how many rows a partition has.
        noise
            The standard deviation of counts that the whole share of the budget buys.
        """
        taken: list[str] = []
        least = self._expected([], domain, size, noise)
        while len(taken) < len(domain):
            errors = {
                name: self._expected([*taken, name], domain, size, noise)
                for name in domain
                if name not in taken and name in self.directions
            }
            if not errors or min(errors.values()) >= least:
                break
            name = min(errors, key=lambda one: errors[one])
            least = errors[name]
            taken.append(name)
        return [name for name in domain if name in taken]

    def _expected(self, measured: Sequence[str], domain: Domain, size: float, noise: float) -> float:
        """Return the sum of standard deviations of all shares of a partition, if some attributes are measured."""
        shares: list[float] = budget_shares([domain[name] for name in measured]).tolist() if measured else []
        variances = {name: (noise / size) ** 2 / share for name, share in zip(measured, shares, strict=True)}
        precision = np.diag(1 / self.variances)
        for name, variance in variances.items():
            precision += self.directions[name] @ self.directions[name].T / variance
        left = np.linalg.inv(precision)
        found = 0.0
        for name, along in self.directions.items():
            rest = self.rests[name]
            if name in variances:
                rest = rest * variances[name] / (rest + variances[name])
            found += float(np.sqrt(np.maximum(((left @ along) * along).sum(axis=0), 0.0) + rest).sum())
        return found

    def guess(
        self,
        tables: Mapping[str, Floats],
        sigmas: Mapping[str, float],
        sizes: Floats,
        above: Mapping[str, Floats],
    ) -> Guess:
        """Return by how much 1-ways of partitions differ from those above, as noisy tables and public rows tell.

        Parameters
        ----------
        tables, sigmas
            The noisy tables of some attributes, with a row for each partition, and their standard deviations.
        sizes
            The sizes of partitions.
        above
            For each attribute, the shares that are expected of each partition.
        """
        seen = [name for name in tables if name in self.directions]
        none = Guess({}, 0.0)
        if not seen:
            return none
        noise = np.concatenate([np.full(tables[name].shape[1], sigmas[name]) for name in seen])
        off = np.concatenate([tables[name] - sizes[:, None] * above[name] for name in seen], axis=1) / noise
        along = np.concatenate([self.directions[name] for name in seen], axis=1) / noise
        # b = root Q d Q' root V' S^-1 (y - N mean), by the eigenvectors Q of root M root.
        root = np.sqrt(self.variances)
        values, vectors = np.linalg.eigh((along * root[:, None]) @ (along * root[:, None]).T)
        values = np.maximum(values, 0.0)
        projected = off @ along.T * root @ vectors
        best, scale = 0.0, 0.0
        for one in _SCALES:
            gain, deviation = _gain(projected, values * one, sizes, one)
            if gain > max(best, _CLEARLY * deviation):
                best, scale = gain, one
        if not scale:
            return none
        factors = scale * sizes[:, None] / (1 + sizes[:, None] ** 2 * scale * values)
        found = (projected * factors) @ vectors.T * root
        return Guess({name: found @ self.directions[name] for name in self.directions}, scale)


def public_areas(public: PublicRows | None, names: Clique, threads: int | None) -> PublicAreas | None:
    """Return how the partitions of public rows differ, if they have any."""
    return None if public is None else PublicAreas.of(public.records, names, threads=threads)


def by_partition(
    domain: Domain, areas: PublicAreas | None, public: PublicRows | None, *, size: float, k: int, rho: float
) -> list[str]:
    """Return the attributes that are measured by partition: all, or where trusted public ones say which tell most.

    Parameters
    ----------
    domain
        The attributes that do not form the partition.
    areas, public
        How public partitions differ, and the public rows.
    size
        About how many rows a partition has.
    k, rho
        How many rows one person may have, and what the tables may cost.
    """
    if areas is None or public is None or public.role != "trusted":
        return list(domain)
    return areas.chosen(domain, size, calibrate(rho, l2_sensitivity=k)) or list(domain)


def _gain(projected: Floats, values: Floats, sizes: Floats, scale: float) -> tuple[float, float]:
    """Return how much nearer to the truth a guess is expected to be than none, in units of noise; and its deviation.

    Stein's estimate of the risk of a linear guess H y is ``|y - H y|^2 + 2 tr H``, but for a constant.
    """
    kept = sizes[:, None] ** 2 * values / (1 + sizes[:, None] ** 2 * values)
    there = values > 0
    # Squares of y along the eigenvectors: (projected)^2 / value, where `values` are already scaled.
    squares = np.square(projected[:, there]) / values[there] * scale
    h = kept[:, there]
    gain = float(((2 * h - h**2) * squares - 2 * h).sum())
    return gain, math.sqrt(2 * float(np.square(2 * h - h**2).sum()))
