"""Elements of a page. Text is escaped unless it is already markup, since labels come from tables that nobody vetted."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TypeAlias, Union

__all__ = ["Markup", "Piece", "cut", "table", "tag", "text"]


class Markup(str):
    """Text that is markup, made by `tag` and `text`; never what a user gave."""

    __slots__ = ()


Piece: TypeAlias = Union[str, "Iterable[Piece]", None]


def text(piece: Piece) -> Markup:
    """Return a piece as markup: text is escaped, None is empty, and several pieces are joined.

    Examples
    --------
    >>> text(["a < b", None, tag("br")])
    'a &lt; b<br>'
    """
    if piece is None:
        return Markup("")
    if isinstance(piece, Markup):
        return piece
    if isinstance(piece, str):
        return Markup(html.escape(_visible(piece)))
    return Markup("".join(text(part) for part in piece))


def tag(name: str, /, *pieces: Piece, **attributes: object) -> Markup:
    """Return an element; in attribute names a trailing underscore is dropped and other underscores become hyphens.

    Examples
    --------
    >>> tag("p", "a & b", class_="x", title='"quoted"', hidden=None)
    '<p class="x" title="&quot;quoted&quot;">a &amp; b</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{text(pieces)}</{name}>")


def table(head: Sequence[Piece], rows: Sequence[Sequence[Piece]], numbers: int = 1, until: int = 99) -> Markup:
    """Return a table; columns from `numbers` to before `until` are aligned to the right."""

    def cells(kind: str, row: Sequence[Piece]) -> Markup:
        return tag("tr", [tag(kind, cell, class_="n" if numbers <= i < until else None) for i, cell in enumerate(row)])

    body = tag("tbody", [cells("td", row) for row in rows])
    return tag("div", tag("table", tag("thead", cells("th", head)), body), class_="scroll")


def cut(label: str, most: int) -> str:
    """Return a label of at most so many characters, with an ellipsis if something was cut off.

    Examples
    --------
    >>> cut("a rather long label", 10)
    'a rather …'
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"


_VOID = frozenset({"br", "meta"})


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _visible(given: str) -> str:
    """Return text with control characters, direction overrides and lone surrogates replaced."""
    if given.isascii() and given.isprintable():
        return given
    return "".join(
        " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}" if _unseen(letter) else letter for letter in given
    )


def _unseen(letter: str) -> bool:
    return unicodedata.category(letter) in _UNSEEN or unicodedata.bidirectional(letter) in _TURNING


_UNSEEN = frozenset({"Cc", "Cs", "Cn", "Co"})
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
