"""A counter and a digest of the same rows: what a pass over a source brings back. As private as the rows."""

from __future__ import annotations

from chicle.counting.counter import Counter
from chicle.counting.digest import Digest
from chicle.counting.records import Records

__all__ = ["Counts"]


class Counts:
    """Counts and the digest of rows that come in batches, or in parts that are counted separately and merged.

    It can be pickled, in few bytes.

    Parameters
    ----------
    counter
        The counter.
    digest
        The digest, over the attributes of the counter.
    threads
        How many threads digest; all there are, if ``None``.
    """

    def __init__(self, counter: Counter, digest: Digest, threads: int | None = None) -> None:
        self.counter, self.digest, self._threads = counter, digest, threads

    def add(self, records: Records) -> None:
        """Count the next batch."""
        self.counter.update(records)
        self.digest.add(records, self._threads)

    def merge(self, other: Counts) -> None:
        """Add the counts of other rows."""
        self.counter.merge(other.counter)
        self.digest.merge(other.digest)

    def fresh(self, threads: int | None = None) -> Counts:
        """Return the same without any rows."""
        return Counts(self.counter.fresh(threads), self.digest.fresh(), threads)
