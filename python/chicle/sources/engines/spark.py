"""Spark frames: executors encode, keep the codes, and count; the driver gets counts.

Rows leave the JVM once, as Arrow batches. Where a frame is a plain scan of Parquet files, executors read the files
themselves, several times as fast. Codes are persisted by Spark after the first pass and dropped by `close`.

Persons: each row gets a hash of its values under a secret key, and the k rows with the lowest hashes of each person
stay. Spark applies the limit before it shuffles too (a window group limit), so only survivors are shuffled, by person.
The rule sees a person's own rows only, and does not depend on how the table is split.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from chicle.codecs.check import misfits
from chicle.columns.base import arrow_kind
from chicle.errors import ArtefactError, ChicleError, SchemaError
from chicle.schema import Schema
from chicle.sources.engines.parquet_parts import FilePart, file_parts, read_parts
from chicle.sources.engines.parts import Bytes, EngineSource, Parts, RowStep, Step
from chicle.sources.frames import Form
from chicle.sources.readers import dropped
from chicle.sources.tasks import Columns

__all__ = ["SparkParts", "SparkSource", "is_spark", "spark_errors", "spark_frame"]

_DATA = "data binary"
_ROWS = 2**17  # rows that are encoded at once
_PERSON, _PLACE = "chicle person", "chicle place"


def is_spark(given: object) -> bool:
    """Return whether this is a Spark frame, of a classic session or of Spark Connect."""
    kind = type(given)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


class SparkParts(Parts):
    """A frame of one binary column: what a step made of each partition.

    Parameters
    ----------
    frame
        The frame.
    """

    def __init__(self, frame: Any) -> None:  # noqa: ANN401 - pyspark is optional
        self._frame = frame

    def then(self, step: Step) -> SparkParts:
        """Return what a step makes of each partition."""
        return SparkParts(self._frame.mapInArrow(_on_bytes(step), _DATA))

    def joined(self, number: int) -> SparkParts:
        """Return the same bytes in so many partitions."""
        return SparkParts(self._frame.repartition(number))

    def keep(self) -> None:
        """Keep the bytes in the executors' memory, or on their disks."""
        from pyspark import StorageLevel  # noqa: PLC0415 - pyspark is optional

        self._frame.persist(StorageLevel.MEMORY_AND_DISK)

    def drop(self) -> None:
        """Drop what was kept."""
        with spark_errors():
            self._frame.unpersist(blocking=True)

    def collect(self) -> list[Bytes]:
        """Compute all partitions and return their bytes."""
        with spark_errors():
            return [memoryview(row[0]) for row in self._frame.collect()]


class SparkSource(EngineSource):
    """A Spark frame as a source.

    Parameters
    ----------
    frame
        The frame; it must give the same rows each time.
    schema
        Its schema.
    """

    limits_persons = True

    def __init__(self, frame: Any, schema: Schema) -> None:  # noqa: ANN401
        super().__init__(schema)
        self._frame, self._schema = frame, schema
        skip = dropped(schema)
        with spark_errors():
            names = [name for name in frame.columns if name not in skip]
            for problem in misfits(schema, names):
                raise SchemaError(problem)
            if len(set(names)) < len(names):
                raise SchemaError("two columns of the Spark frame have the same name; rename one of them")
            types = frame.select(*map(_quoted, names)).limit(0).toArrow().schema
            self._files = None if schema.person is not None else file_parts(frame, types)
        self._types = {name: types.field(name).type for name in names}
        self._key = secrets.token_hex(16)

    @property
    def form(self) -> Form:
        """The form of an Arrow table with the frame's types."""
        return Form("pyarrow", self._types)

    def _rows(self, columns: Sequence[str], step: RowStep) -> Parts:
        types = {name: self._types[name] for name in columns}
        with spark_errors():
            if self._files is not None:
                # A partition for each task, with its number as the only row.
                numbers = self._frame.sparkSession.range(0, len(self._files), 1, max(len(self._files), 1))
                return SparkParts(numbers.mapInArrow(_on_files(self._files, types, step), _DATA))
            frame = self._frame if self._schema.person is None else self._limited(self._schema.person)
            names = [*columns, *([] if self._schema.person is None else [_PERSON])]
            # `mapInArrow` misreads names with dots.
            frame = frame.select(*map(_quoted, names)).toDF(*(f"c{i}" for i in range(len(names))))
            return SparkParts(frame.mapInArrow(_on_rows(names, self._schema.person, step), _DATA))

    def _limited(self, person: str) -> Any:  # noqa: ANN401
        """Return the frame without the rows of a person above the maximum, and whether each row has its person."""
        from pyspark.sql import Window  # noqa: PLC0415 - pyspark is optional
        from pyspark.sql import functions as f  # noqa: PLC0415

        who = f.col(_quoted(person))
        floating = pa.types.is_floating(self._types[person])
        missing = who.isNull() | f.isnan(who) if floating else who.isNull()
        hashed = f.xxhash64(f.lit(self._key), *(f.col(_quoted(name)) for name in self._schema.domain))
        own = Window.partitionBy(who).orderBy(hashed)
        limited = self._frame.withColumn(_PERSON, missing).withColumn(_PLACE, f.row_number().over(own))
        return limited.where(f.col(_quoted(_PLACE)) <= self._schema.max_records_per_person)

    @staticmethod
    def _dump(task: Any) -> bytes:  # noqa: ANN401
        from pyspark import cloudpickle  # noqa: PLC0415 - pyspark is optional

        found: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
        return found


def spark_frame(
    spark: Any,  # noqa: ANN401
    number: int,
    make: Callable[[int], Iterator[pa.Table]],
    types: pa.Schema,
) -> Any:  # noqa: ANN401
    """Return a frame of so many partitions, each made by a function of its number on an executor.

    Parameters
    ----------
    spark
        The session.
    number
        The number of partitions.
    make
        Returns the rows of a partition; the same ones each time.
    types
        The columns and their Arrow types.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - pyspark is optional

    plain = pa.schema([pa.field(field.name, _spark_type(field.type)) for field in types])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for shard in batch.column(0):
                for table in make(shard.as_py()):
                    yield from table.cast(plain).to_batches()

    with spark_errors():
        return spark.range(0, number, 1, number).mapInArrow(run, from_arrow_schema(plain))


_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}


def _spark_type(dtype: pa.DataType) -> pa.DataType:
    """Return the nearest Arrow type that Spark has."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", dtype.tz)
    if pa.types.is_date(dtype):
        return pa.date32()
    if pa.types.is_float16(dtype):
        return pa.float32()
    if pa.types.is_null(dtype) or arrow_kind(dtype) == "text":
        return pa.string()
    return _UNSIGNED.get(dtype, dtype)


def _quoted(name: str) -> str:
    """Return a column's name so that Spark reads dots and spaces in it as they are."""
    return "`" + name.replace("`", "``") + "`"


ArrowStep = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _on_bytes(step: Step) -> ArrowStep:
    """Return a step on bytes as a function for `mapInArrow`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _as_batches(step(memoryview(one.as_buffer()) for batch in batches for one in batch.column(0)))

    return run


def _on_rows(names: Sequence[str], person: str | None, step: RowStep) -> ArrowStep:
    """Return a step on rows as a function for `mapInArrow`, whose columns get these names again."""

    def columns(batches: Iterator[pa.RecordBatch]) -> Iterator[Columns]:
        for numbered in _larger(batches):
            table = numbered.rename_columns(list(names))
            if person is not None and any(one.true_count for one in table.column(_PERSON).chunks):
                raise SchemaError(
                    f"column {person!r} has missing values; every row needs its person, so fill or drop those first"
                )
            yield {name: table.column(name) for name in table.column_names if name != _PERSON}

    return lambda batches: _as_batches(step(columns(batches)))


def _on_files(files: Sequence[Sequence[FilePart]], types: dict[str, pa.DataType], step: RowStep) -> ArrowStep:
    """Return a step on rows as a function for `mapInArrow` over the numbers of tasks."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number.as_py() for batch in batches for number in batch.column(0))
        return _as_batches(step(columns for number in numbers for columns in read_parts(files[number], types, _ROWS)))

    return run


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches joined to about as many rows as are encoded well at once: Spark's own are small."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        if rows >= _ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _as_batches(found: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    for one in found:
        yield pa.RecordBatch.from_arrays([pa.array([one], pa.binary())], ["data"])


class spark_errors:  # noqa: N801 - used like a function
    """Replaces errors of Spark, whose messages may quote values, by one line without any."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, ChicleError):
            return
        package = type(error).__module__.partition(".")[0]
        if package not in ("pyspark", "py4j", "grpc"):
            return
        text = str(error)
        if "No module named 'chicle'" in text:
            raise ArtefactError(
                "Spark's executors cannot import chicle; install the same version of it on all of them"
            ) from None
        if "cancelled" in text.lower() or "canceled" in text.lower():
            raise ArtefactError("the Spark job was cancelled; start again when you are ready") from None
        condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        raise ArtefactError(f"Spark stopped the job ({condition}); its log says why, and may quote values") from None
