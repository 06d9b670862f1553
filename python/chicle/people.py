"""Several rows a person: which of them are kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chicle.errors import SchemaError

__all__ = ["first_rows"]


def first_rows(name: str, person: pa.ChunkedArray, k: int) -> pa.Array | None:
    """Return a mask of the first `k` rows of each person, or None where all are kept.

    Whether a row is kept depends on that person's own rows only, so whoever joins or leaves moves nobody else's.

    Examples
    --------
    >>> first_rows("id", pa.chunked_array([["a", "b", "a", "a"]]), 2).to_pylist()
    [True, True, True, False]
    """
    if pa.types.is_dictionary(person.type):
        person = person.cast(person.type.value_type)
    if pc.any(pc.is_null(person, nan_is_null=True)).as_py():
        raise SchemaError(
            f"column {name!r} has missing values; every row needs its person, so fill or drop those first"
        )
    if pa.types.is_floating(person.type):
        person = pc.add(person.cast(pa.float64()), 0.0)  # one of the two zeros that floats have
    try:
        whose = person.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    except pa.ArrowNotImplementedError:
        raise SchemaError(f"column {name!r} holds no plain values; a person is a text, a number or a date") from None
    order = np.argsort(whose, kind="stable")
    ranked = whose[order]
    begins = np.flatnonzero(np.diff(ranked, prepend=-1))
    rank = np.arange(len(ranked)) - np.repeat(begins, np.diff(begins, append=len(ranked)))
    if not (rank >= k).any():
        return None
    kept = np.empty(len(ranked), dtype=np.bool_)
    kept[order] = rank < k
    return pa.array(kept)
