"""Measurements as tables that anyone can read, and tables of noisy counts by others as measurements.

One tidy table holds any number of marginals. A row is a cell, with its clique, its values as labels and as codes, its
noisy count and the standard deviation of the noise. Cliques differ in size, so it has nested lists, which Arrow and
Parquet support well, and not a column for each attribute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codecs import Codec
from chicle.codecs.labels import attribute_labels, bucket_labels, value_labels
from chicle.columns.base import refuse
from chicle.domain import Clique, Domain
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement
from chicle.sources.frames import arrow_columns

__all__ = ["as_measurements", "tidy_table"]

_TIDY = pa.schema(
    [
        ("marginal", pa.int32()),
        ("clique", pa.list_(pa.string())),
        ("cell", pa.list_(pa.string())),
        ("codes", pa.list_(pa.list_(pa.uint32()))),
        ("value", pa.float64()),
        ("sigma", pa.float64()),
    ]
)


def tidy_table(measurements: Sequence[Measurement], fine: Sequence[Measurement], codec: Codec) -> pa.Table:
    """Return whole tables of counts as one table, a row for each cell; see `Release.marginals`."""
    joint = {name: attribute_labels(codec, name) for name in codec.domain}
    single = {one.clique[0]: value_labels(codec.schema, one.clique[0]) for one in fine}
    listed = [*((one, joint) for one in measurements if one.whole), *((one, single) for one in fine)]
    parts = [_tidy(i, one, labels, codec.ordinal) for i, (one, labels) in enumerate(listed)]
    return pa.concat_tables([_TIDY.empty_table(), *parts])


def as_measurements(marginals: Any, codec: Codec) -> tuple[list[Measurement], list[Measurement]]:  # noqa: ANN401
    """Return the measurements that `Release.from_marginals` was given, and the fine 1-ways of coarse columns."""
    if not isinstance(marginals, Sequence):
        read = _from_tidy(arrow_columns(marginals), codec)
    else:
        read = [
            _checked(one, _seen(codec, one.clique, np.size(one.values)))
            if isinstance(one, Measurement)
            else _from_table(one, codec)
            for one in marginals
        ]
    fine = {one.clique: one for one in read if _is_fine(codec, one.clique, one.values.size)}
    joint = [one for one in read if not _is_fine(codec, one.clique, one.values.size)]
    return joint, [fine[(name,)] for name in codec.coarse if (name,) in fine]


def _is_fine(codec: Codec, clique: Clique, cells: int) -> bool:
    """Whether a table is a fine 1-way of a coarse column."""
    if len(clique) != 1 or clique[0] not in codec.coarse:
        return False
    return cells == codec.schema.domain[clique[0]] != codec.domain.get(clique[0])


def _seen(codec: Codec, clique: Clique, cells: int) -> Domain:
    """Return the domain that a table is over."""
    return codec.schema.domain if _is_fine(codec, tuple(clique), cells) else codec.domain


def _tidy(number: int, measurement: Measurement, labels: Mapping[str, list[str]], ordinal: Collection[str]) -> pa.Table:
    clique, values = measurement.clique, measurement.values
    words: list[str] = []
    sets: list[list[int]] = []
    first = []
    for name in clique:
        first.append(len(words))
        if name in measurement.buckets:
            buckets = np.asarray(measurement.buckets[name])
            words += bucket_labels(labels[name], buckets, ordered=name in ordinal)
            sets += [np.flatnonzero(buckets == bucket).tolist() for bucket in range(int(buckets.max()) + 1)]
        else:
            words += labels[name]
            sets += [[code] for code in range(len(labels[name]))]
    rows, axes = values.size, values.ndim
    place = np.stack(np.unravel_index(np.arange(rows), values.shape), axis=1) if axes else np.empty((rows, 0), int)
    chosen = pa.array((place + np.array(first, dtype=np.int64)).reshape(-1))
    ends = pa.array(np.arange(rows + 1, dtype=np.int32) * axes)
    held = {
        "marginal": pa.array(np.full(rows, number, dtype=np.int32)),
        "clique": pa.ListArray.from_arrays(ends, pa.array(clique, pa.string()).take(np.tile(np.arange(axes), rows))),
        "cell": pa.ListArray.from_arrays(ends, pa.array(words, pa.string()).take(chosen)),
        "codes": pa.ListArray.from_arrays(ends, pa.array(sets, pa.list_(pa.uint32())).take(chosen)),
        "value": pa.array(values.reshape(-1).astype(np.float64)),
        "sigma": pa.array(np.full(rows, measurement.sigma)),
    }
    return pa.table(held, _TIDY)


def _from_tidy(table: dict[str, pa.ChunkedArray], codec: Codec) -> list[Measurement]:
    """Return the measurements of a table such as `tidy_table` gives, its rows in any order."""
    needed = ("marginal", "clique", "codes", "value", "sigma")
    for name in needed:
        if name not in table:
            raise DomainError(f"a table of marginals needs a column {name!r}; Release.marginals() shows its form")
    whole = pa.table({name: table[name] for name in needed})
    whole = whole.take(pc.sort_indices(whole.column("marginal")))
    numbers = whole.column("marginal").to_numpy()
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1)) if len(numbers) else np.empty(0, int)
    return [
        _from_cells(whole.slice(begin, end - begin), codec)
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(numbers)], strict=True)
    ]


def _from_cells(part: pa.Table, codec: Codec) -> Measurement:
    part = part.combine_chunks()
    names, codes = (part.column(name).chunk(0) for name in ("clique", "codes"))
    domain = _seen(codec, tuple(names[0].as_py()), len(part))
    clique = domain.check(names[0].as_py())
    axes = len(clique)
    if (
        names.flatten().to_pylist() != list(clique) * len(part)
        or (pc.list_value_length(codes).to_numpy() != axes).any()
    ):
        raise DomainError(f"the cells of the marginal of {clique!r} do not all have its attributes, in that order")
    seen: dict[str, npt.NDArray[np.uint32]] = {}
    places = []
    for axis, name in enumerate(clique):
        sets = codes.flatten().take(pa.array(np.arange(len(part)) * axes + axis))
        buckets, place = _buckets(sets, domain[name])
        if buckets is None:
            raise DomainError(f"the cells of {clique!r} must have each of the {domain[name]} codes of {name!r} once")
        size = int(buckets.max()) + 1
        if size == domain[name]:
            places.append((np.argsort(buckets)[place], size))
        else:
            seen[name] = buckets.astype(np.uint32)
            places.append((place, size))
    return _filled(clique, places, {name: part.column(name) for name in ("value", "sigma")}, seen, domain)


def _buckets(sets: pa.ListArray, size: int) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64]]:
    """Return the bucket of each code, in order of occurrence, and of each row; None if they do not partition codes."""
    if sets.null_count or (pc.list_value_length(sets).to_numpy() == 0).any():
        return None, np.empty(0, dtype=np.int64)
    firsts = pc.list_element(sets, 0).to_numpy()
    _, met, row = np.unique(firsts, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(met))
    held = sets.take(pa.array(met))
    flat = held.flatten().to_numpy()
    if not sets.equals(held.take(pa.array(row))) or not np.array_equal(np.sort(flat), np.arange(size)):
        return None, np.empty(0, dtype=np.int64)
    buckets = np.empty(size, dtype=np.int64)
    buckets[flat] = np.repeat(order, pc.list_value_length(held).to_numpy())
    return buckets, order[row]


def _from_table(source: Any, codec: Codec) -> Measurement:  # noqa: ANN401 - any data frame
    """Return the measurement of a table with a column for each attribute, and the columns `value` and `sigma`."""
    table = arrow_columns(source)
    named = [name for name in table if name not in ("value", "sigma")]
    if len(named) + 2 != len(table):
        raise DomainError("a table of noisy counts needs the columns 'value' and 'sigma', and one for each attribute")
    domain = _seen(codec, tuple(named), len(table["value"]))
    clique = domain.check(named)
    places = []
    for name in clique:
        if name not in codec.schema.columns:
            raise DomainError(f"{name!r} is several columns combined; give its counts as Release.marginals() does")
        codes = codec.schema.columns[name].encode(table[name], refuse(name)).astype(np.int64)
        if domain[name] != codec.schema.domain[name]:
            codes = codec.attributes.groups[name][codes]
        places.append((codes, domain[name]))
    return _filled(clique, places, table, {}, domain)


def _filled(
    clique: Clique,
    places: Sequence[tuple[npt.NDArray[np.int64], int]],
    given: Mapping[str, pa.ChunkedArray],
    buckets: dict[str, npt.NDArray[np.uint32]],
    domain: Domain,
) -> Measurement:
    """Return the measurement of cells, each given once: its place on every axis, its value and its sigma."""
    shape = tuple(size for _, size in places)
    values, sigmas = (_numbers(clique, given[name]) for name in ("value", "sigma"))
    if len(values) != np.prod(shape, dtype=object):
        raise DomainError(
            f"the marginal of {clique!r} must have each of its {np.prod(shape, dtype=object)} cells once, "
            "those without records too"
        )
    at = np.ravel_multi_index(tuple(codes for codes, _ in places), shape) if shape else np.zeros(1, dtype=np.int64)
    if len(np.unique(at)) < len(at):
        raise DomainError(f"the marginal of {clique!r} has a cell twice; give each once")
    if sigmas.min() != sigmas.max():
        raise DomainError(f"the marginal of {clique!r} has several sigmas; a marginal has one")
    table = np.empty(len(values))
    table[at] = values
    return _checked(Measurement(clique, table.reshape(shape), float(sigmas[0]), buckets=buckets), domain)


def _checked(measurement: Measurement, domain: Domain) -> Measurement:
    """Check that a measurement fits the domain; return it with plain numbers."""
    given = np.asarray(measurement.values)
    checked = measurement.checked(domain)
    if checked.values.shape != checked.query.shape(domain):
        raise DomainError(f"the marginal of {checked.clique!r} must have a cell for each bucket, and no others")
    return replace(checked, values=given.astype(np.int64)) if given.dtype.kind in "iu" else checked


def _numbers(clique: Clique, given: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    if given.null_count or not len(given):
        raise DomainError(f"the marginal of {clique!r} has cells without a value or a sigma; each cell has both")
    try:
        numbers: npt.NDArray[np.float64] = given.cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        raise DomainError(f"the values and sigmas of {clique!r} must be numbers") from None
    return numbers
