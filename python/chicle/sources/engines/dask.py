"""Dask frames: workers encode, keep the codes, and count; this process gets counts.

The rows of a person are not limited, so a schema with a `person` is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chicle.codecs.check import misfits
from chicle.errors import ArtefactError, ChicleError, SchemaError
from chicle.schema import Schema
from chicle.sources.engines.parts import Bytes, EngineSource, Parts, RowStep, Step
from chicle.sources.frames import Form, arrow_columns
from chicle.sources.readers import dropped

__all__ = ["DaskParts", "DaskSource", "is_dask"]


def is_dask(given: object) -> bool:
    """Return whether this is a Dask frame."""
    kind = type(given)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] in ("dask", "dask_expr")


class DaskParts(Parts):
    """Delayed lists of bytes.

    Parameters
    ----------
    parts
        A list of bytes for each part of the table, not computed yet.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = list(parts)

    def then(self, step: Step) -> DaskParts:
        """Return what a step makes of each part."""
        from dask.delayed import delayed  # noqa: PLC0415 - dask is optional

        work = delayed(lambda part: list(step(iter(part))), pure=False)
        return DaskParts([work(part) for part in self._parts])

    def joined(self, number: int) -> DaskParts:
        """Return the same bytes in at most so many parts."""
        from dask.delayed import delayed  # noqa: PLC0415 - dask is optional

        join = delayed(lambda parts: [one for part in parts for one in part], pure=False)
        return DaskParts([join(self._parts[i::number]) for i in range(min(number, len(self._parts)))])

    def keep(self) -> None:
        """Compute the bytes and keep them in the memory of the workers."""
        from dask.base import persist  # noqa: PLC0415 - dask is optional

        self._parts = list(_calm(persist, self._parts))

    def drop(self) -> None:
        """Drop what was kept: workers free what nobody refers to."""
        self._parts = []

    def collect(self) -> list[Bytes]:
        """Compute all parts and return their bytes."""
        from dask.base import compute  # noqa: PLC0415 - dask is optional

        return [one for part in _calm(compute, self._parts) for one in part]


class DaskSource(EngineSource):
    """A Dask frame as a source.

    Parameters
    ----------
    frame
        The frame; it must give the same rows each time.
    schema
        Its schema.
    """

    def __init__(self, frame: Any, schema: Schema) -> None:  # noqa: ANN401 - dask is optional
        super().__init__(schema)
        self._frame = frame
        none = frame._meta  # noqa: SLF001 - the documented way to the types of a Dask frame
        columns = arrow_columns(none, dropped(schema))
        for problem in misfits(schema, columns):
            raise SchemaError(problem)
        self._form = Form.of(none, columns)

    @property
    def form(self) -> Form:
        """The form of a pandas frame with the same types."""
        return self._form

    def _rows(self, columns: Sequence[str], step: RowStep) -> Parts:
        def work(frames: Iterator[Any]) -> Iterator[bytes]:
            return step(arrow_columns(frame) for frame in frames)

        return DaskParts([[part] for part in self._frame[list(columns)].to_delayed()]).then(work)

    @staticmethod
    def _dump(task: Any) -> bytes:  # noqa: ANN401
        import cloudpickle  # noqa: PLC0415 - dask depends on it

        found: bytes = cloudpickle.dumps(task)
        return found


def _calm(call: Any, parts: list[Any]) -> Any:  # noqa: ANN401
    """Compute parts; an error of Dask, or of what it runs, may quote values and is replaced."""
    try:
        return call(*parts)
    except ChicleError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the frame's own functions raise
        raise ArtefactError(
            f"Dask stopped with {type(error).__name__} in the frame itself; compute() it without chicle to see why"
        ) from None
