"""Progress that shows itself: a line on a terminal, a bar in a notebook, for ``progress=True``.

rich draws on terminals. In notebooks it needs widgets that many installations lack, so there we update a line of HTML.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from rich.console import Console
from rich.progress import Progress as Display
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from chicle._html import tag
from chicle.errors import ParameterError

__all__ = ["Listener", "Listeners", "shown"]

Listener: TypeAlias = Callable[[int, float], None]
"""Called after each pass with its number and the current error."""


class Listeners(NamedTuple):
    """What is called while a fit or a draw goes on.

    Attributes
    ----------
    passes
        After each pass of a model.
    reading
        After each batch of a table, with the share that was read.
    """

    passes: Listener | None = None
    reading: Callable[[float], None] | None = None


@contextmanager
def shown(progress: Listener | bool | None, what: str) -> Iterator[Listeners]:
    """Yield what to call: the user's own function, a display of ours if `progress` is True, or nothing."""
    if not isinstance(progress, bool):
        if progress is not None and not callable(progress):
            raise ParameterError(f"progress must be True, False or a function, not {progress!r}")
        yield Listeners(progress)
    elif not progress:
        yield Listeners()
    elif (handle := _notebook()) is not None:
        yield _listeners(what, lambda text, share: handle.update(_Html(_bar(text, share))))
        handle.update(_Html(_bar(f"{what}: done", 1.0)))
    else:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        console = Console(stderr=True)
        with Display(*columns, console=console, transient=True, disable=not console.is_terminal) as display:
            task = display.add_task(what)
            yield _listeners(what, lambda text, _: display.update(task, description=text))


class _Html(str):
    """Text that a notebook takes as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def _listeners(what: str, say: Callable[[str, float | None], None]) -> Listeners:
    return Listeners(
        lambda number, error: say(f"{what}: pass {number}, error {error:.4f}", None),
        lambda share: say(f"{what}: reading", share),
    )


def _bar(text: str, share: float | None) -> str:
    bar = tag("progress", value=share, max=1, style="width:240px;vertical-align:middle;margin-right:10px")
    return tag("div", bar, text)


def _notebook() -> Any:  # noqa: ANN401 - IPython is no dependency
    """Return a place in the notebook that runs this, if one does."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # noqa: PLC0415 - it is there, since it runs us

    return display(_Html(""), display_id=True)  # type: ignore[no-untyped-call]
