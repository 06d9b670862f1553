"""Work on the parts of a table where they are: what executors run, and what they send back.

A table is a collection of parts; each part is a sequence of bytes somewhere, and a step makes new bytes of it. So an
engine implements `Parts` and nothing else. Bytes are blocks of codes, or the outcome of a task: the finished task, or
a problem of the rows as text. Problems are data, not exceptions, because an engine would run a part with an exception
again; they name columns and rules and never quote a value.

Outcomes are merged in a tree, so the driver gets a few of them, whatever the number of parts. An engine may run a part
twice, after a failure or to be fast: it keeps one of the results, so nothing is counted twice.
"""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeAlias, TypeVar

import numpy as np

from chicle.codecs import Codec
from chicle.codes import Codes, code_dtype
from chicle.counting.countable import Countable
from chicle.counting.counts import Counts
from chicle.counting.passes import Passes
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import SchemaError
from chicle.sources.source import Source
from chicle.sources.tasks import Columns, Task

__all__ = ["EngineSource", "Parts", "Step"]

FAN_IN = 32
"""How many outcomes are merged into one."""

_FIRST = 8  # merges at once of outcomes whose number is not known
_BLOCK = 2**22  # bytes of codes in a block: engines keep and move whole blocks
_DONE, _PROBLEM = b"T", b"P"

Bytes: TypeAlias = "bytes | memoryview"
Step: TypeAlias = Callable[[Iterator[Bytes]], Iterator[bytes]]
RowStep: TypeAlias = Callable[[Iterator[Columns]], Iterator[bytes]]

Dump: TypeAlias = Callable[[Any], bytes]

_Task = TypeVar("_Task", bound=Task[Any])
_Mergeable: TypeAlias = "Task[Any] | Counts"


class Parts(ABC):
    """Bytes that lie on the machines of an engine, in parts. Private."""

    @abstractmethod
    def then(self, step: Step) -> Parts:
        """Return what a step makes of each part."""

    @abstractmethod
    def joined(self, number: int) -> Parts:
        """Return the same bytes in so many parts, in any order."""

    @abstractmethod
    def keep(self) -> None:
        """Keep the bytes where they are, once they are computed."""

    @abstractmethod
    def drop(self) -> None:
        """Drop what was kept."""

    @abstractmethod
    def collect(self) -> list[Bytes]:
        """Compute all parts and return their bytes to this process."""


class EngineSource(Source):
    """A table in an engine. Its rows stay there: this process gets counts.

    The first pass encodes the rows, and the engine keeps the codes until `close`; later passes count these.
    """

    _kept: Parts | None = None

    @abstractmethod
    def _rows(self, columns: Sequence[str], step: RowStep) -> Parts:
        """Return what a step makes of the rows of each part, without those of a person above the maximum."""

    @staticmethod
    @abstractmethod
    def _dump(task: Any) -> bytes:  # noqa: ANN401 - a task
        """Return a task as bytes for `pickle.loads`, even if its class is known to the session only."""

    def reduce(self, task: _Task, columns: Sequence[str]) -> _Task:
        """Work on all parts where they are, and merge the outcomes."""
        dump, merge = self._dump, _merging(self._dump)

        def work(batches: Iterator[Columns]) -> Iterator[bytes]:
            yield _outcome(deepcopy(task), map(task.prepare, batches), dump)

        outcomes = self._rows(columns, work)
        finished: _Task | None = _finished(merge(iter(outcomes.joined(_FIRST).then(merge).collect())))
        return task if finished is None else finished

    def records(self, codec: Codec) -> Records:
        """Raise: the rows stay in the engine."""
        del codec
        raise SchemaError(
            "this needs all rows in this process, but the table is in an engine; take a sample of it there, and give "
            "that as a pandas, polars or pyarrow frame"
        )

    def countable(self, codec: Codec) -> Countable:
        """Return the rows as codes that the engine keeps, counted anew for each list of queries."""
        self.check_unit(codec.schema)
        self.close()
        base = codec.base
        self._kept = codes = self._rows(list(codec.schema.domain), lambda batches: _encoded(codec, batches))
        codes.keep()
        first = Passes.first(base)
        # There is an outcome for each part, even without rows; none if the engine knows that there are no rows.
        outcomes = codes.then(_counting(first, base)).collect()
        counted: Counts | None = _finished(_merge(iter(outcomes)))

        def again(counts: Counts) -> Counts:
            done: Counts | None = _finished(_merged(codes.then(_counting(counts, base)), len(outcomes)))
            return counts if done is None else done

        return Passes(again, base, codec.max_records_per_person, first if counted is None else counted)

    def close(self) -> None:
        """Drop the codes that the engine keeps."""
        if self._kept is not None:
            self._kept.drop()
            self._kept = None


def _outcome(whole: _Mergeable, prepared: Iterable[Any], dump: Dump) -> bytes:
    """Return the outcome of adding prepared rows to a task or to counts; a SchemaError becomes a problem."""
    try:
        for each in prepared:
            whole.add(each)
    except SchemaError as problem:
        return _PROBLEM + str(problem).encode()
    return _DONE + dump(whole)


def _merging(dump: Dump) -> Step:
    """Return the step that makes one outcome of several; none of none."""

    def merge(outcomes: Iterator[Bytes]) -> Iterator[bytes]:
        whole: _Mergeable | None = None
        problems = []
        for outcome in outcomes:
            if outcome[:1] == _PROBLEM:
                problems.append(bytes(outcome))
            elif whole is None:
                whole = _loaded(outcome)
            else:
                whole.merge(_loaded(outcome))
        if problems:
            yield min(problems)  # the same one however parts are merged
        elif whole is not None:
            yield _DONE + dump(whole)

    return merge


_merge = _merging(pickle.dumps)


def _merged(outcomes: Parts, number: int) -> Iterator[bytes]:
    """Merge so many outcomes in a tree."""
    while number > FAN_IN:
        number = math.ceil(number / FAN_IN)
        outcomes = outcomes.joined(number).then(_merge)
    return _merge(iter(outcomes.collect()))


def _finished(outcome: Iterator[bytes]) -> Any:  # noqa: ANN401 - the task that was given
    """Return the task of the last outcome, or raise its problem; None without an outcome."""
    found = next(outcome, None)
    if found is None:
        return None
    if found[:1] == _PROBLEM:
        raise SchemaError(found[1:].decode())
    return _loaded(found)


def _loaded(outcome: Bytes) -> Any:  # noqa: ANN401 - whatever task
    return pickle.loads(memoryview(outcome)[1:])  # noqa: S301 - written by our own executors


def _encoded(codec: Codec, batches: Iterator[Columns]) -> Iterator[bytes]:
    """Yield blocks with the codes of all rows, after a check; a problem ends them."""
    width = sum(code_dtype(size).itemsize for size in codec.base.values())
    held: list[dict[str, Codes]] = []
    rows = 0
    try:
        for batch in batches:
            codes = codec.codes(batch, list(codec.base))
            codec.check_codes(codes)
            held.append(codes)
            rows += len(next(iter(codes.values())))
            if rows * width >= _BLOCK:
                yield _block(codec.base, held)
                held, rows = [], 0
    except SchemaError as problem:
        yield _PROBLEM + str(problem).encode()
        return
    if rows:
        yield _block(codec.base, held)


def _block(base: Domain, held: Sequence[dict[str, Codes]]) -> bytes:
    """Return codes as bytes: the number of rows, then one attribute after the other."""
    rows = sum(len(next(iter(codes.values()))) for codes in held)
    columns = (codes[name].astype(code_dtype(base[name]), copy=False).tobytes() for name in base for codes in held)
    return b"".join([_DONE, rows.to_bytes(8, "little"), *columns])


def _counting(counts: Counts, base: Domain) -> Step:
    """Return the step that counts blocks."""

    def records(blocks: Iterator[Bytes]) -> Iterator[Records]:
        for block in blocks:
            if block[:1] == _PROBLEM:
                raise SchemaError(bytes(block[1:]).decode())
            yield _records(base, counts.counter.domain, block)

    return lambda blocks: iter([_outcome(counts.fresh(threads=1), records(blocks), pickle.dumps)])


def _records(base: Domain, domain: Domain, block: Bytes) -> Records:
    """Return some attributes of a block."""
    rows, place = int.from_bytes(block[1:9], "little"), 9
    columns = {}
    for name, size in base.items():
        dtype = code_dtype(size)
        if name in domain:
            columns[name] = np.frombuffer(block, dtype, rows, place)
        place += rows * dtype.itemsize
    return Records(columns, domain)
