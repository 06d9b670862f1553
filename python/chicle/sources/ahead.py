"""Prepare the next batches while the current one is counted.

One thread reads batches, others prepare them, and they are returned in order. Only a few are in progress at a time, so
memory is bounded. An error or Ctrl-C in the consumer stops all threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

__all__ = ["ahead"]

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

_MOST_THREADS = 8  # more would wait for the reader


def ahead(
    items: Iterator[_Item], work: Callable[[_Item], _Made], threads: int | None = None
) -> Generator[_Made, None, None]:
    """Yield the result of `work` for each item, in order, with up to `threads` items in progress.

    Examples
    --------
    >>> list(ahead(iter([3, 1, 2]), lambda number: 10 * number, threads=2))
    [30, 10, 20]
    """
    begun = [item for item in (next(items, None), next(items, None)) if item is not None]
    if len(begun) < 2:  # not worth a thread
        yield from map(work, begun)
        return
    number = min(threads or os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(number) as workers:
        rest = chain(begun, items)
        under_way: deque[Future[_Made]] = deque()
        coming: Future[_Item | None] | None = reader.submit(next, rest, None)
        try:
            while coming is not None or under_way:
                while coming is not None and len(under_way) <= number:
                    item = coming.result()
                    coming = None if item is None else reader.submit(next, rest, None)
                    if item is not None:
                        under_way.append(workers.submit(work, item))
                if under_way:
                    yield under_way.popleft().result()
        finally:
            for left in under_way:
                left.cancel()
