"""Synthetic rows with given values: rows that satisfy a condition, and rows that complete a given table.

Both are post-processing of a release and cost nothing.

`rows_where` draws tables from the release, with one seed after the other, and keeps the rows that satisfy the
condition. Measured, that serves rare groups better than records that are made of slices of the tables.

`rows_given` fills in the columns that a table lacks:

1. A pool of synthetic rows is drawn. Its rows are weighted, by raking, so that each given column has the distribution
   that it has in the given table: the two populations may differ.
2. Hot deck: each given row takes the other columns of a random row of the pool that agrees with it on all given
   columns. Where none does, the given column that says least about the others is left out, and so on.
3. Two sweeps of residual descent move the other columns towards the weighted tables of the pool, one for each table
   that was measured; the given columns are frozen. Where a table has given columns too, it is scaled to their counts in
   the given table.
4. Rows that violate a constraint are repaired; the given columns stay.

Cost: drawing the pool, one sort for each given column, and two sweeps.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle._checks import integer
from chicle.codecs.repair import as_keys, draw, mend
from chicle.codes import Codes
from chicle.columns.base import refuse
from chicle.counting.records import Records
from chicle.errors import InfeasibleError, ParameterError, SchemaError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement
from chicle.models.descent import descend
from chicle.partition.model import PartitionedModel
from chicle.query import Query
from chicle.schema import Schema
from chicle.sources.local import reader_of

if TYPE_CHECKING:
    from chicle.releases.release import Release

__all__ = ["Drawn", "codes_where", "modelled", "rows_given", "rows_where"]

Floats = npt.NDArray[np.float64]

_WHERE, _GIVEN = 0x3E1EC7, 0x617E9  # separate these streams from others of the same seed
_MOST_DRAWS = 50
_FEW = 100  # matching rows in a draw: below it the rows of a condition vary less than their number says
_POOL = 100_000  # the most rows of a pool, unless the given table has more
_SWEEPS = 2
_RAKING = 10  # rounds
_MOST_WEIGHT = 50.0


@dataclass(frozen=True)
class Drawn:
    """Synthetic records over the columns, and what else their table needs.

    Attributes
    ----------
    records
        The records.
    rng
        Draws numbers and dates inside their bins.
    known
        Columns whose values are known, not only their codes.
    """

    records: Records
    rng: np.random.Generator
    known: Mapping[str, pa.Array] = field(default_factory=dict)


def rows_where(
    release: Release,
    n: int | None,
    where: Mapping[str, Any],
    seed: int | None,
    *,
    threads: int | None,
    progress: Progress | None,
) -> Drawn:
    """Return `n` synthetic rows that satisfy a condition; by default as many as one draw has.

    Parameters
    ----------
    release
        The release.
    n
        How many rows.
    where
        For each column of the condition its value, or a list of values.
    seed, threads, progress
        As for `Release.sample`.
    """
    wanted = {name: _wanted(release.schema, name, asked) for name, asked in _named("where", where).items()}
    said = " and ".join(map(repr, wanted))
    rng = np.random.default_rng(None if seed is None else [seed, _WHERE])
    among, at_once, expected = _partitions_of(release, wanted, n)
    found: list[Records] = []
    rows = draws = 0
    while draws == 0 or (n is not None and rows < n and draws < _MOST_DRAWS):
        drawn = among.draw(at_once, int(rng.integers(2**63)), threads=threads, progress=progress).records
        kept = np.ones(len(drawn), dtype=np.bool_)
        for name, (codes, _) in wanted.items():
            kept &= np.isin(drawn[name], codes)
        found.append(_rows(drawn, np.flatnonzero(kept)))
        rows, draws = rows + len(found[-1]), draws + 1
        if rows == 0 and draws == 5:
            break
    n = rows if n is None else integer("n", n, 0)
    if n and not rows:
        raise InfeasibleError(
            f"no synthetic row in {draws} draws has these values of {said}; ask for fewer columns or more values"
        )
    each = rows / draws if expected is None else expected
    if each < _FEW:
        warnings.warn(
            f"a table drawn from this release has about {each:,.0f} rows with these values of {said}: the rows "
            "show the noise of few, and more of them tell no more",
            UserWarning,
            stacklevel=4,
        )
    whole = Records({name: np.concatenate([some[name] for some in found]) for name in found[0]}, found[0].domain)
    order = (
        rng.permutation(rows)[:n] if rows >= n else np.concatenate([np.arange(rows), rng.integers(rows, size=n - rows)])
    )
    made = _rows(whole, order)
    columns = release.schema.columns
    known = {
        name: _any_of(codes, values, made[name], rng)
        for name, (codes, values) in wanted.items()
        if columns[name].labels is None
    }
    return Drawn(made, rng, known)


def _partitions_of(
    release: Release, wanted: Mapping[str, tuple[Codes, pa.Array]], n: int | None
) -> tuple[Release, int | None, float | None]:
    """Return the release of the partitions that can satisfy a condition, and how many rows to draw at once.

    Where nothing but partitions is asked for, every row that is drawn satisfies it; then the estimated number of rows
    of these partitions is returned too.
    """
    if not (isinstance(release.model, PartitionedModel) and wanted.keys() & set(release.partition)):
        return release, None, None
    some = release.model.only({name: codes for name, (codes, _) in wanted.items()})
    among = replace(release, model=some)
    if not wanted.keys() <= set(release.partition) or release.schema.constraints:
        return among, some.total, None
    return among, some.total if n is None else n, float(some.total)


def rows_given(
    release: Release,
    given: Any,  # noqa: ANN401 - any table
    seed: int | None,
    *,
    threads: int | None,
    progress: Progress | None,
) -> Drawn:
    """Return the rows of a given table, in its order, with the columns that it lacks.

    Parameters
    ----------
    release
        The release.
    given
        A table with some of the schema's columns.
    seed, threads, progress
        As for `Release.sample`.
    """
    codec, domain = release.codec, release.schema.domain
    values = _columns_of(given, release)
    codes = {name: codec.schema.columns[name].encode(column, refuse(name)) for name, column in values.items()}
    for problem in codec.violations(codes):
        raise SchemaError(f"the given rows: {problem}")
    rows = len(next(iter(codes.values())))
    rng = np.random.default_rng(None if seed is None else [seed, _GIVEN])
    pool = release.draw(max(rows, min(release.total, _POOL)), int(rng.integers(2**63)), threads=threads).records
    if not len(pool):
        raise InfeasibleError("this release is of no records, so it has nothing to fill in")
    free = [name for name in domain if name not in codes]
    if rows and free:
        donors = _hot_deck(pool, codes, free, rng, threads)
        made = Records({name: codes.get(name, pool[name][donors]) for name in domain}, domain)
        made = mend(made, codec.schema.parts, rng, codes)
        made = _descended(release, made, pool, codes, rng, threads=threads, progress=progress)
    else:
        made = Records({name: codes.get(name, pool[name][:rows]) for name in domain}, domain)
    known = {name: column.combine_chunks() for name, column in values.items()}
    return Drawn(made, rng, known)


def _hot_deck(
    pool: Records, codes: Mapping[str, Codes], free: Sequence[str], rng: np.random.Generator, threads: int | None
) -> npt.NDArray[np.int64]:
    """Return for each given row a row of the pool that agrees with it on as many columns as possible."""
    names = _strongest_first(pool, list(codes), free, threads)
    rows = len(codes[names[0]])
    donors = np.zeros(rows, dtype=np.int64)
    left = np.arange(rows)
    for number in range(len(names), -1, -1):
        if not number:
            donors[left] = rng.integers(len(pool), size=len(left))
            break
        used = names[:number]
        wanted, known = as_keys([codes[name][left] for name in used], [pool[name] for name in used])
        taken, there = draw(known, np.ones(len(known), dtype=np.int64), wanted, rng)
        donors[left[there]] = taken[there]
        left = left[~there]
        if not len(left):
            break
    return donors


def _strongest_first(pool: Records, given: Sequence[str], free: Sequence[str], threads: int | None) -> list[str]:
    """Return given columns, those first on which the others depend most: by distance from independence."""
    pairs = [(one, other) for one in given for other in free if pool.domain.cells((one, other)) <= 10 * len(pool)]
    depends = dict.fromkeys(given, 0.0)
    for (one, _), table in zip(pairs, pool.count(pairs, threads=threads), strict=True):
        joint = table / table.sum()
        depends[one] += float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())
    return sorted(given, key=lambda name: -depends[name])


def _descended(
    release: Release,
    made: Records,
    pool: Records,
    codes: Mapping[str, Codes],
    rng: np.random.Generator,
    *,
    threads: int | None,
    progress: Progress | None,
) -> Records:
    """Return rows whose free columns fit the tables of the weighted pool."""
    codec = release.codec
    frozen = [name for name, columns in codec.attributes.columns.items() if any(column in codes for column in columns)]
    queries = {one.query.key: one.query for one in release.transcript.tables(codec.domain) if one.whole and one.clique}
    asked = [query for query in queries.values() if not set(query.clique) <= set(frozen)]
    if not asked:
        return made
    weights = _raked(pool, made, list(codes))
    before, weighed = codec.recode(made), codec.recode(pool)
    targets = [_target(query, weighed, weights, before, frozen) for query in asked]
    amounts = {name: numbers for name, numbers in codec.amounts.items() if name not in frozen}
    inner = descend(
        targets,
        codec.domain,
        start=before,
        frozen=frozen,
        sweeps=_SWEEPS,
        tolerance=0.0,
        amounts=amounts,
        seed=int(rng.integers(2**63)),
        threads=threads,
        progress=progress,
    )
    kept = dict(codes)
    # A combined attribute of which some columns are given is frozen; its other columns keep their values too.
    kept.update({column: made[column] for name in frozen for column in codec.attributes.columns[name]})
    return codec.restore(inner, release.fine_one_ways, rng, kept)


def _raked(pool: Records, made: Records, names: Sequence[str]) -> Floats:
    """Return a weight for each row of the pool, so that given columns have the distribution of the given rows.

    Each code of the pool counts as one more given row in all, in proportion to its frequency, so that small given
    tables do not make weights of their own noise.
    """
    weights = np.full(len(pool), 1 / len(pool))
    wanted = {}
    for name in names:
        size = pool.domain[name]
        prior = np.bincount(pool[name], minlength=size) / len(pool)
        wanted[name] = (np.bincount(made[name], minlength=size) + size * prior) / (len(made) + size)
    for _ in range(_RAKING):
        for name in names:
            now = np.bincount(pool[name], weights, minlength=pool.domain[name])
            ratio = np.divide(wanted[name], now, out=np.ones(now.size), where=now > 0)
            weights *= ratio[pool[name]]
        weights = np.minimum(weights, _MOST_WEIGHT * weights.mean())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _target(query: Query, pool: Records, weights: Floats, made: Records, frozen: Sequence[str]) -> Measurement:
    """Return the table that the rows should have: that of the weighted pool, scaled where columns are given."""
    shape = query.shape(pool.domain)
    cells = np.ravel_multi_index(tuple(_places(query, pool)), shape)
    table = np.bincount(cells, weights, minlength=int(np.prod(shape))).reshape(shape) * len(made)
    known = [axis for axis, name in enumerate(query.clique) if name in frozen]
    if known:
        places = [codes for axis, codes in enumerate(_places(query, made)) if axis in known]
        sizes = tuple(shape[axis] for axis in known)
        counts = np.bincount(np.ravel_multi_index(tuple(places), sizes), minlength=int(np.prod(sizes))).reshape(sizes)
        front = np.moveaxis(table, known, range(len(known)))
        there = front.reshape(*sizes, -1)
        margin = there.sum(axis=-1)
        # Where the pool has no row with these values, the others are as in the whole pool.
        spread = np.where(margin[..., None] > 0, there, there.reshape(-1, there.shape[-1]).sum(axis=0))
        spread = spread / spread.sum(axis=-1, keepdims=True) * counts[..., None]
        table = np.moveaxis(spread.reshape(front.shape), range(len(known)), known)
    return Measurement(query.clique, table, 1.0, buckets=query.buckets)


def _places(query: Query, records: Records) -> list[npt.NDArray[Any]]:
    """Return the place of each record along each axis of a query."""
    return [
        np.asarray(query.buckets[name])[records[name]] if name in query.buckets else records[name].astype(np.int64)
        for name in query.clique
    ]


def _columns_of(given: Any, release: Release) -> dict[str, pa.ChunkedArray]:  # noqa: ANN401 - any table
    """Return the columns of a given table; they must be modelled columns of the schema."""
    schema = release.schema
    if isinstance(given, Records):
        given = {name: given[name] for name in given}
    reader = reader_of(given, schema)
    names = list(dict.fromkeys(name for _, some in reader.layouts() for name in some))
    modelled("given", names, schema)
    if not names:
        raise SchemaError("the given table has no column; give at least one column of the schema")
    parts = list(reader.batches(names))
    if not parts:
        return {name: pa.chunked_array([pa.array([], pa.null())]) for name in names}
    return {name: pa.chunked_array([c for part in parts for c in part.columns[name].chunks]) for name in names}


def _named(what: str, asked: object) -> Mapping[str, Any]:
    if not isinstance(asked, Mapping) or not asked:
        raise ParameterError(f"{what} must be a mapping of columns to values, such as {{'sex': 'f'}}, not {asked!r}")
    return asked


def modelled(what: str, names: Iterable[str], schema: Schema) -> None:
    """Raise unless these are columns that the schema models."""
    for name in names:
        if name in schema.domain:
            continue
        if name in schema.columns:
            raise SchemaError(f"{what}: column {name!r} is not modelled, so nothing depends on it; leave it out")
        near = difflib.get_close_matches(str(name), list(schema.domain), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(map(repr, schema.domain))}"
        raise SchemaError(f"{what}: the schema has no column {name!r}{hint}")


def codes_where(schema: Schema, name: str, asked: Any) -> Codes:  # noqa: ANN401 - a value, or some
    """Return the codes of the asked values of a column."""
    return _wanted(schema, name, asked)[0]


def _wanted(schema: Schema, name: str, asked: Any) -> tuple[Codes, pa.Array]:  # noqa: ANN401 - a value, or some
    """Return the codes of the asked values of a column, and the values."""
    modelled("where", [name], schema)
    some = list(asked) if isinstance(asked, (list, tuple, set, frozenset, range, np.ndarray)) else [asked]
    if not some:
        raise ParameterError(f"where: {name!r} has no value to be; give at least one")
    try:
        values = pa.array(some, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise ParameterError(f"where: the values of {name!r} must be of one kind") from None
    codes = schema.columns[name].encode(pa.chunked_array([values]), refuse(name))
    return codes, values


def _any_of(codes: Codes, values: pa.Array, made: Codes, rng: np.random.Generator) -> pa.Array:
    """Return for each row one of the asked values of its code."""
    keys, known = as_keys([made], [codes])
    place, _ = draw(known, np.ones(len(known), dtype=np.int64), keys, rng)
    return values.take(pa.array(place))


def _rows(records: Records, rows: npt.NDArray[np.int64]) -> Records:
    return Records({name: records[name][rows] for name in records}, records.domain)
