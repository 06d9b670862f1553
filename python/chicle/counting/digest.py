"""A keyed digest of rows, in any order, that tells whether a source gave the same rows again. As private as the rows.

It holds the number of rows, a sum for each attribute, and one for whole rows (`rust/core/src/digest.rs`). Digests of
parts of a table add up. The key is drawn from the system for each fit.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hashlib import blake2b

from chicle import _core
from chicle.counting.records import Records

__all__ = ["Digest"]

_WORD = 2**64


@dataclass(repr=False, kw_only=True)
class Digest:
    """The digest of some rows.

    Attributes
    ----------
    key
        The secret key.
    rows
        The number of rows.
    attributes
        The digest of each attribute.
    whole
        The digest of the rows over all these attributes: it also sees values that changed places between rows.

    Examples
    --------
    >>> table, turned = ({"a": a, "b": [0, 0, 1]} for a in ([0, 1, 1], [1, 1, 0]))
    >>> one = Digest()
    >>> digests = [one.fresh().add(Records(rows, {"a": 2, "b": 2})) for rows in (table, turned, table)]
    >>> digests[0] == digests[2], digests[0] == digests[1], digests[0].attributes == digests[1].attributes
    (True, False, True)
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    rows: int = 0
    attributes: dict[str, int] = field(default_factory=dict)
    whole: int = 0

    def fresh(self) -> Digest:
        """Return a digest of no rows, with the same key."""
        return Digest(key=self.key)

    def add(self, records: Records, threads: int | None = None) -> Digest:
        """Add rows; return the digest itself."""
        names = list(records.domain)
        keys = [
            int.from_bytes(blake2b(name.encode(), key=self.key, digest_size=8).digest(), "little") for name in names
        ]
        sizes = list(records.domain.values())
        sums, whole = _core.digest([records[name] for name in names], names, sizes, keys, threads)
        return self._plus(len(records), dict(zip(names, sums, strict=True)), whole)

    def merge(self, other: Digest) -> Digest:
        """Add the rows of another digest with the same key; return the digest itself."""
        return self._plus(other.rows, other.attributes, other.whole)

    def _plus(self, rows: int, attributes: dict[str, int], whole: int) -> Digest:
        self.rows += rows
        for name, more in attributes.items():
            self.attributes[name] = (self.attributes.get(name, 0) + more) % _WORD
        self.whole = (self.whole + whole) % _WORD
        return self
