"""Limit the rows of each person: keep the first k, or k at random.

The first: rows are kept in order, across batches and files, until a person has k of them. At random: each row of a
person has a priority, a keyed hash of the person and of the row's place among the person's rows, and the k rows of
lowest priority are kept. Either way, whether a row is kept depends only on the rows of the same person (and on a secret
key), so adding or removing one person changes nobody else's rows.

Persons are identified by a 128-bit hash of their id, with a random key for each source from the system's generator. The
probability that any two of n ids share a hash is below n^2 / 2^129 (2^-59 for 2^35 rows), for any ids. Two persons who
share a hash count as one, so even then no more than k rows of a person are kept.

Cost: a hash and a look-up for each row (`rust/core/src/people.rs`), and a bit for each row in the mask.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle import _core
from chicle.columns.base import arrow_kind
from chicle.errors import SchemaError

__all__ = ["Kept", "People", "first_rows"]

_PERSONS = 7 << 20  # persons in memory at a time: about 300 MB
_UNLIMITED = 2**62
_LEAST_RANGE = 2**56  # of hashes in a pass: at most 256 passes


class People:
    """Finds the first k rows of each person.

    Parameters
    ----------
    name
        The column that identifies persons.
    k
        How many rows of a person to keep.
    persons
        About how many persons (at random: rows) are held in memory at a time; more take more passes.
    keep
        ``"first"`` or ``"random"``.
    """

    def __init__(self, name: str, k: int, persons: int = _PERSONS, *, keep: str = "first") -> None:
        self._name, self._k, self._persons = name, k, persons
        self.random = keep == "random"
        self._key, self._lot = ((secrets.randbits(64), secrets.randbits(64)) for _ in range(2))
        self._kind: str | None = None

    def once(self) -> Callable[[pa.ChunkedArray], pa.Array]:
        """Return a function that masks the rows to keep of each batch of a single pass; it holds all persons so far."""
        first = _core.FirstRows(self._k, _UNLIMITED)
        return lambda person: pa.array(first.update(self._hashes(person)))

    def kept(self, passes: Callable[[], Iterable[pa.ChunkedArray]]) -> Kept:
        """Return the rows to keep of a table that can be read several times, in bounded memory."""
        if self.random:
            return self._at_random(passes)
        first = _core.FirstRows(self._k, self._persons)
        mask: pa.Array | None = None
        before: _Digest | None = None
        while True:
            parts = [pa.array([], pa.bool_())]
            digest = _Digest()
            for person in passes():
                hashes = self._hashes(person)
                parts.append(pa.array(first.update(hashes)))
                digest.add(hashes)
            if before not in (None, digest):
                raise _changed()
            part, before = pa.concat_arrays(parts), digest
            mask = part if mask is None else pc.and_(mask, part)
            if not first.next_pass():
                return Kept(self._hashes, mask, digest)

    def tally(
        self, passes: Callable[[], Iterable[pa.ChunkedArray]], cells: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return how many persons have how many rows, by the least number of rows of each cell: private."""
        found = np.zeros(len(cells), dtype=np.int64)
        for sorted_rows in self._sorted(passes):
            numbers = np.diff(np.append(sorted_rows.begins, len(sorted_rows.rows)))
            found += np.bincount(np.searchsorted(cells, numbers, side="right") - 1, minlength=len(cells))
        return found

    def _at_random(self, passes: Callable[[], Iterable[pa.ChunkedArray]]) -> Kept:
        kept, digest = np.empty(0, dtype=np.bool_), _Digest()
        for some in self._sorted(passes):
            if not kept.size:
                kept = np.zeros(some.digest.rows, dtype=np.bool_)
            digest = some.digest
            numbers = np.diff(np.append(some.begins, len(some.rows)))
            person = np.repeat(np.arange(len(numbers)), numbers)
            place = np.arange(len(some.rows)) - some.begins[person]
            word = some.hashes[:, 1] + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            priority = _core.id_hashes(self._lot, word ^ some.hashes[:, 0])[:, 0]
            order = np.lexsort((priority, person))
            kept[some.rows[order[place < self._k]]] = True  # the order is that of persons, so places fit it too
        return Kept(self._hashes, pa.array(kept), digest)

    def _sorted(self, passes: Callable[[], Iterable[pa.ChunkedArray]]) -> Iterator[_Sorted]:
        """Yield all rows, sorted by person, for one range of hashes after the other."""
        low, width, before = 0, 2**64, None
        while low < 2**64:
            hashes, rows, held, digest = [], [], 0, _Digest()
            for person in passes():
                each = self._hashes(person)
                inside = _within(each, low, width)
                hashes.append(each[inside])
                rows.append(digest.rows + inside)
                digest.add(each)
                held += len(inside)
                while held > self._persons and width > _LEAST_RANGE:
                    width //= 2
                    for i, some in enumerate(hashes):
                        there = _within(some, low, width)
                        hashes[i], rows[i] = some[there], rows[i][there]
                    held = sum(map(len, rows))
            if before not in (None, digest):
                raise _changed()
            before = digest
            low += width
            if rows:
                yield _Sorted.of(np.concatenate(hashes), np.concatenate(rows), digest)

    def _hashes(self, person: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
        parts = [self._hash(chunk) for chunk in person.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, 2), np.uint64), *parts])

    def _hash(self, person: pa.Array) -> npt.NDArray[np.uint64]:
        if pa.types.is_dictionary(person.type):
            if not person.null_count and not person.dictionary.null_count:
                each: npt.NDArray[np.uint64] = self._hash(person.dictionary)[person.indices.to_numpy()]
                return each
            person = person.dictionary_decode()
        if pc.any(pc.is_null(person, nan_is_null=True)).as_py():
            raise SchemaError(
                f"column {self._name!r} has missing values; every row needs its person, so fill or drop those first"
            )
        self._check_kind(person.type)
        if pa.types.is_integer(person.type):
            signed = person if person.type == pa.uint64() else person.cast(pa.int64())
            return _core.id_hashes(self._key, signed.to_numpy(zero_copy_only=False).view(np.uint64))
        if pa.types.is_floating(person.type):
            # Adding zero makes -0.0 equal to 0.0.
            numbers = person.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
            return _core.id_hashes(self._key, numbers.view(np.uint64))
        return _core.id_hashes(self._key, texts=self._texts(person))

    def _texts(self, person: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        try:
            plain = pa.types.is_binary(person.type) or pa.types.is_large_binary(person.type)
            texts = (person if plain else person.cast(pa.large_string())).cast(pa.large_binary())
        except pa.ArrowException:
            raise SchemaError(
                f"column {self._name!r} holds no plain values; a person is a text, a number or a date"
            ) from None
        _, ends, letters = texts.buffers()
        if not len(texts):
            return np.zeros(1, np.int64), np.empty(0, np.uint8)
        offsets = np.frombuffer(ends, np.int64, len(texts) + 1, 8 * texts.offset)
        return offsets, np.empty(0, np.uint8) if letters is None else np.frombuffer(letters, np.uint8)

    def _check_kind(self, dtype: pa.DataType) -> None:
        """Raise if ids have another type than before, because one person would then count as two."""
        kind = arrow_kind(dtype)
        if pa.types.is_null(dtype):  # no rows
            return
        if kind not in ("text", "integers") or dtype == pa.uint64():
            kind = str(dtype)
        if self._kind not in (None, kind):
            raise SchemaError(
                f"column {self._name!r} holds {kind} here but {self._kind} before; a person must have the same id "
                "everywhere, so give the column one type in all files and batches"
            )
        self._kind = kind


class Kept:
    """A mask of the rows to keep, and a check that a later pass has the same persons in the same order."""

    def __init__(
        self, hashes: Callable[[pa.ChunkedArray], npt.NDArray[np.uint64]], mask: pa.Array, digest: _Digest
    ) -> None:
        self._hashes, self._mask, self._digest = hashes, mask, digest

    def again(self) -> tuple[Callable[[pa.ChunkedArray], pa.Array], Callable[[], None]]:
        """Return a function that masks the rows to keep of each batch of another pass, and one to call at the end."""
        met = _Digest()

        def keep(person: pa.ChunkedArray) -> pa.Array:
            kept = self._mask.slice(met.rows, len(person))
            met.add(self._hashes(person))
            if len(kept) < len(person):
                raise _changed()
            return kept

        def end() -> None:
            if met != self._digest:
                raise _changed()

        return keep, end


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Rows sorted by person, and in order for each person; where each person begins; and a digest of the whole pass."""

    hashes: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    digest: _Digest

    @classmethod
    def of(cls, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], digest: _Digest) -> _Sorted:
        order = np.lexsort((rows, hashes[:, 1], hashes[:, 0]))
        hashes = hashes[order]
        changes = (hashes[1:] != hashes[:-1]).any(axis=1)
        begins = np.flatnonzero(np.append(True, changes)) if len(hashes) else np.empty(0, dtype=np.int64)
        return cls(hashes, rows[order], begins, digest)


def _within(hashes: npt.NDArray[np.uint64], low: int, width: int) -> npt.NDArray[np.int64]:
    """Return the rows whose hashes are in a range."""
    return np.flatnonzero((hashes[:, 0] >= np.uint64(low)) & (hashes[:, 0] - np.uint64(low) <= np.uint64(width - 1)))


@dataclass
class _Digest:
    """A digest of the sequence of persons."""

    rows: int = 0
    value: int = 0

    def add(self, hashes: npt.NDArray[np.uint64]) -> None:
        weights = np.arange(2 * self.rows + 1, 2 * (self.rows + len(hashes)) + 1, 2, dtype=np.uint64)
        self.value = (self.value + int((hashes[:, 0] * weights).sum(dtype=np.uint64))) % 2**64
        self.rows += len(hashes)


def _changed() -> SchemaError:
    return SchemaError(
        "the table had other rows, or in another order, when it was read again; stop programs that write to it, or "
        "give batches that are the same every time"
    )


def first_rows(name: str, person: pa.ChunkedArray, k: int) -> pa.Array:
    """Return a mask of the first `k` rows of each person.

    Examples
    --------
    >>> first_rows("id", pa.chunked_array([["a", "b", "a", "a"]]), 2).to_pylist()
    [True, True, True, False]
    """
    return People(name, k).once()(person)
