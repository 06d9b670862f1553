"""Limit the rows of each person: keep the first k.

Rows are kept in order, across batches and files, until a person has k of them. Whether a row is kept depends only on
the rows of the same person, so adding or removing one person changes nobody else's rows.

Persons are identified by a 128-bit hash of their id, with a random key for each source from the system's generator. The
probability that any two of n ids share a hash is below n^2 / 2^129 (2^-59 for 2^35 rows), for any ids. Two persons who
share a hash count as one, so even then no more than k rows of a person are kept.

Cost: a hash and a look-up for each row (`rust/core/src/people.rs`), and a bit for each row in the mask.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
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


class People:
    """Finds the first k rows of each person.

    Parameters
    ----------
    name
        The column that identifies persons.
    k
        How many rows of a person to keep.
    persons
        About how many persons are held in memory at a time; more persons take more passes.
    """

    def __init__(self, name: str, k: int, persons: int = _PERSONS) -> None:
        self._name, self._k, self._persons = name, k, persons
        self._key = (secrets.randbits(64), secrets.randbits(64))
        self._kind: str | None = None

    def once(self) -> Callable[[pa.ChunkedArray], pa.Array]:
        """Return a function that masks the rows to keep of each batch of a single pass; it holds all persons so far."""
        first = _core.FirstRows(self._k, _UNLIMITED)
        return lambda person: pa.array(first.update(self._hashes(person)))

    def kept(self, passes: Callable[[], Iterable[pa.ChunkedArray]]) -> Kept:
        """Return the rows to keep of a table that can be read several times, in bounded memory."""
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
