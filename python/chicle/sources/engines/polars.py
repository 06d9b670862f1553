"""Polars lazy frames: each pass runs the query again and streams its rows to this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chicle.errors import SchemaError
from chicle.sources.frames import Form, arrow_columns
from chicle.sources.readers import Batch, Reader

__all__ = ["LazyFrame"]

_ROWS = 2**17


class LazyFrame(Reader):
    """A lazy frame; only the columns that a pass needs are computed.

    Parameters
    ----------
    frame
        The `polars.LazyFrame`.
    skip
        Columns that are not read.
    """

    streams = True

    def __init__(self, frame: Any, skip: Sequence[str] = ()) -> None:  # noqa: ANN401 - Polars is optional
        if not hasattr(frame, "collect_batches"):
            raise SchemaError("lazy frames need Polars 1.34 or later; upgrade it, or call collect() first")
        self._frame = frame.drop(skip, strict=False)
        with _Plain():
            self._none = self._frame.clear().collect()

    def layouts(self) -> Iterator[tuple[str | None, Sequence[str]]]:
        """Yield the names of the columns."""
        yield None, self._none.columns

    def form(self) -> Form:
        """Return the form of a Polars frame with the same types."""
        return Form.of(self._none, arrow_columns(self._none))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Run the query and yield its rows, in the same order each time."""
        chosen = self._frame.select(names)
        with _Plain():
            for frame in chosen.collect_batches(chunk_size=_ROWS, maintain_order=True):
                columns = arrow_columns(frame)
                yield Batch({name: columns[name] for name in names})


class _Plain:
    """Replaces the errors of Polars, which may quote values."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is not None and kind.__module__.partition(".")[0] == "polars":
            raise SchemaError(
                f"the lazy frame cannot be computed: Polars raises {kind.__name__}; call collect() to see why"
            ) from None
