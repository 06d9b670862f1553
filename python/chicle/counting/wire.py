"""Counts on the wire: one flat array of small integers, in as few bytes as they need.

Most counts of wide tables are small or zero, so the array is cut into its bytes: all lowest bytes, then all second
ones, up to the highest that any count has. zstd shrinks each run, and runs of zeros to almost nothing.
Cost: one pass over the cells for each byte.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["pack", "unpack"]

_HEAD = struct.Struct("<BQ")


def pack(counts: npt.NDArray[np.int64]) -> bytes:
    """Return a flat array of counts, none of them negative, as bytes.

    Examples
    --------
    >>> counts = np.zeros(100_000, dtype=np.int64)
    >>> counts[7] = 300
    >>> len(pack(counts)) < 100
    True
    """
    width = (int(counts.max(initial=0)).bit_length() + 7) // 8
    runs = np.empty((width, len(counts)), dtype=np.uint8)
    for place, run in enumerate(runs):
        run[:] = counts >> 8 * place
    body: bytes = pa.compress(runs, codec="zstd", asbytes=True)
    return _HEAD.pack(width, len(counts)) + body


def unpack(packed: bytes) -> npt.NDArray[np.int64]:
    """Return the counts that `pack` packed.

    Examples
    --------
    >>> unpack(pack(np.array([0, 255, 256, 2**40])))
    array([            0,           255,           256, 1099511627776])
    """
    width, cells = _HEAD.unpack_from(packed)
    body = pa.py_buffer(packed)[_HEAD.size :]
    runs = np.frombuffer(pa.decompress(body, width * cells, codec="zstd"), dtype=np.uint8)
    counts = np.zeros(cells, dtype=np.int64)
    for place, run in enumerate(runs.reshape(width, cells)):
        counts |= run.astype(np.int64) << 8 * place
    return counts
