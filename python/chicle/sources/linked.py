"""Linked tables as one source of wide rows, and synthetic wide rows as linked tables.

Both tables are read once; the codes of their rows and the keys are in memory, and are dropped when the wide rows are
made. Whatever happens to a row depends on the rows of the same parent only, so a parent with all its children, of whom
at most `max_per_parent` are kept, is one row of the wide table: neighbours differ in one wide row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codecs import Codec
from chicle.columns import SyntheticRows
from chicle.counting.records import Records
from chicle.errors import ParameterError, SchemaError
from chicle.linked.join import Joined, join, sortable
from chicle.linked.narrow import narrow
from chicle.linked.wide import widen
from chicle.schema.layout import Layout
from chicle.schema.linked import LinkedSchema
from chicle.schema.tables import Child, Parent
from chicle.sources.engines.dask import is_dask
from chicle.sources.engines.spark import is_spark
from chicle.sources.frames import Form
from chicle.sources.local import LocalSource
from chicle.sources.source import Source
from chicle.sources.tasks import Columns, Task
from chicle.sources.tasks import join as joined_records

__all__ = ["LinkedSource", "check_named", "decode_linked"]

_Task = TypeVar("_Task", bound=Task[Any])


class LinkedSource(Source):
    """Linked tables as the wide rows of their schema.

    Parameters
    ----------
    given
        Each table by its name, of any kind that `chicle.sources.open_source` accepts on this machine.
    schema
        Their schema.
    threads
        How many threads encode.
    """

    once = True

    def __init__(self, given: Any, schema: LinkedSchema, *, threads: int | None = None) -> None:  # noqa: ANN401
        super().__init__(schema, threads=threads)
        self._schema = schema
        self._held: tuple[dict[str, Records], Joined] | None = None
        check_named(given, schema)
        self._tables = {}
        for name, one in schema.tables.items():
            with _at(name):
                self._tables[name] = LocalSource(given[name], one, threads=threads)
                types = self._tables[name].form.types
                for what, column in _joining(schema, name).items():
                    if column not in types:
                        raise SchemaError(f"column {column!r} is the `{what}`, but not in the table; add it")
                Codec(one).check_types(types)

    @property
    def layout(self) -> Layout:
        """Where the columns are in the wide rows."""
        return self._schema.layout

    @property
    def form(self) -> Form:
        """The form of each table."""
        return Form("tables", tables={name: one.form for name, one in self._tables.items()})

    @property
    def promise(self) -> str:
        """The privacy unit of a fit."""
        parent, child = self._schema.parent, self._schema.child
        order = "in the order of rows" if child.order is None else f"in the order of {child.order!r}"
        return (
            f"Protects every row of {parent.name!r} with all its rows of {child.name!r}: of each {parent.key!r} the "
            f"first {child.most} at most were kept, {order}. Rows of {child.name!r} without a row of {parent.name!r} "
            "were left out."
        )

    def reduce(self, task: _Task, columns: Sequence[str]) -> _Task:
        """Raise: wide rows are made once, and nothing else reads linked tables."""
        del task, columns
        raise SchemaError(
            "linked tables are read once, for their wide rows; what reads single rows needs a single table"
        )

    def joined(self) -> tuple[dict[str, Records], Joined]:
        """Return the records of both tables, and which child belongs where: private. They are kept until `close`."""
        if self._held is None:
            self._held = self._joined()
        return self._held

    def close(self) -> None:
        """Drop the codes of single rows."""
        self._held = None

    def _joined(self) -> tuple[dict[str, Records], Joined]:
        parent, child = self._schema.parent, self._schema.child
        own, theirs = self._read(parent), self._read(child)
        order = None if child.order is None else sortable(theirs.plain(child.order))
        linked = join(
            own.column(parent.key),
            theirs.column(child.key),
            order,
            tables=(parent.name, child.name),
            keys=(parent.key, child.key),
        )
        return {parent.name: own.records(), child.name: theirs.records()}, linked

    def records(self, codec: Codec) -> Records:
        """Return the wide rows; the codes of single rows are dropped."""
        self.check_unit(codec.schema)
        tables, linked = self.joined()
        self.close()
        own, theirs = tables[self._schema.parent.name], tables[self._schema.child.name]
        parents, children = ({name: one[name] for name in one} for one in (own, theirs))
        return widen(self._schema, parents, children, linked)

    def countable(self, codec: Codec) -> Records:
        """Return the wide rows over the codec's `base`."""
        return codec.extend(self.records(codec))

    def _read(self, table: Parent | Child) -> _Rows:
        schema = self._schema.tables[table.name]
        beside = list(dict.fromkeys(_joining(self._schema, table.name).values()))
        codec = Codec(schema)
        task = _Rows(codec, beside)
        with _at(table.name):
            return self._tables[table.name].reduce(
                task, list(dict.fromkeys([*codec.needed(list(codec.base)), *beside]))
            )


class _Rows(Task[tuple[Records, dict[str, pa.ChunkedArray]]]):
    """Encode and check all rows; keep their codes, and some columns as they are."""

    def __init__(self, codec: Codec, beside: list[str]) -> None:
        self._codec, self._beside = codec, beside
        self._codes: list[Records] = []
        self._kept: dict[str, list[pa.Array]] = {name: [] for name in beside}

    def prepare(self, batch: Columns) -> tuple[Records, dict[str, pa.ChunkedArray]]:
        codes = self._codec.codes(batch, list(self._codec.base))
        self._codec.check_codes(codes)
        return Records(codes, self._codec.base), {name: batch[name] for name in self._beside}

    def add(self, prepared: tuple[Records, dict[str, pa.ChunkedArray]]) -> None:
        records, columns = prepared
        self._codes.append(records)
        for name, values in columns.items():
            self._kept[name] += values.chunks

    def merge(self, other: _Rows) -> None:
        self._codes += other._codes
        for name, chunks in other._kept.items():
            self._kept[name] += chunks

    def records(self) -> Records:
        """Return the codes of all rows; they are released here."""
        return joined_records(self._codes, self._codec.base, 1)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a kept column; batches may have read an empty one as of another type."""
        chunks = [chunk for chunk in self._kept[name] if len(chunk)]
        return pa.chunked_array(chunks or [pa.array([], pa.null())])

    def plain(self, name: str) -> pa.ChunkedArray:
        """Return a kept column in its declared type."""
        return self._codec.schema.columns[name].plain(self.column(name))


def _joining(schema: LinkedSchema, name: str) -> dict[str, str]:
    """Return the columns by which a table is joined and ordered."""
    table = schema.parent if name == schema.parent.name else schema.child
    order = {"order": table.order} if isinstance(table, Child) and table.order is not None else {}
    return {"key": table.key, **order}


@contextmanager
def _at(table: str) -> Iterator[None]:
    """Name the table in the error of a schema."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"table {table!r}: {error}") from None


def check_named(given: Any, schema: LinkedSchema) -> None:  # noqa: ANN401
    """Raise unless linked tables are given by name, each that the schema declares and no other."""
    names = ", ".join(map(repr, schema.tables))
    if not isinstance(given, Mapping) or isinstance(given, Records):
        raise SchemaError(f"linked tables are given by name, as a mapping with {names}, not as {type(given).__name__}")
    for name in schema.tables:
        if name not in given:
            raise SchemaError(f"table {name!r} is declared but not given; give {names}")
    for name, table in given.items():
        if name not in schema.tables:
            raise SchemaError(f"table {name!r} is given but not declared; the schema has {names}")
        if is_spark(table) or is_dask(table):
            raise SchemaError(f"table {name!r}: linked tables are read on this machine; give a frame or files")


def decode_linked(
    wide: Records,
    schema: LinkedSchema,
    form: Form,
    rng: np.random.Generator,
    known: Mapping[str, pa.Array] | None = None,
) -> dict[str, Any]:
    """Return synthetic wide rows as linked tables: keys match, and children of a parent stand together, in order.

    Parameters
    ----------
    wide
        Records over the schema's domain.
    schema
        The schema of both tables.
    form
        The form of each table.
    rng
        Draws donors, and numbers and dates inside their bins.
    known
        Columns of the parents whose values are known, not only their codes.
    """
    for name in known or {}:
        if name not in schema.layout.parents:
            raise ParameterError(f"{name!r} is no column of {schema.parent.name!r}; only its columns can be given")
    families = narrow(schema, wide, rng, tuple(known or ()))
    parent, child = schema.parent, schema.child
    own, theirs = (Codec(schema.tables[one.name]) for one in (parent, child))
    forms = {one.name: form.tables.get(one.name, Form("pyarrow")) for one in (parent, child)}
    types = {name: one.types for name, one in forms.items()}
    parents = own.decode(families.parents, types[parent.name], rng, known=known)
    given = {child.key: parents[parent.key].take(pa.array(families.parent))}
    if child.order is not None and child.order in theirs.schema.domain:
        given[child.order] = _in_order(
            theirs, child.order, families.children, families.parent, types=types[child.name], rng=rng
        )
    children = theirs.decode(families.children, types[child.name], rng, known=given)
    made = {parent.name: parents, child.name: children}
    return {name: _framed(forms[name], schema, name, columns) for name, columns in made.items()}


def _in_order(
    codec: Codec,
    name: str,
    children: Records,
    parent: npt.NDArray[np.int64],
    *,
    types: Mapping[str, pa.DataType | None],
    rng: np.random.Generator,
) -> pa.Array:
    """Return the values of the order column, which rise inside each family: their codes do already."""
    column = codec.schema.columns[name]
    rows = SyntheticRows(
        codes={each: children[each] for each in children},
        columns=codec.schema.columns,
        numbers=range(len(children)),
        total=len(children),
        rng=rng,
        counts=codec.counts_of(children),
    )
    values = column.make(name, rows, types.get(name))
    assert values is not None  # noqa: S101 - it is modelled
    plain = column.plain(pa.chunked_array([values]))
    return values.take(pa.array(np.lexsort((sortable(plain), parent))))


def _framed(form: Form, schema: LinkedSchema, name: str, columns: dict[str, pa.Array]) -> Any:  # noqa: ANN401
    declared = schema.tables[name].columns
    return form.frame(columns, nullable=[each for each in columns if declared[each].missing])
