"""Pieces of a page. Whatever is not markup already is escaped: labels come from tables, and nobody has vetted them."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from typing import TypeAlias, Union

__all__ = ["Markup", "Piece", "cut", "tag", "text"]


class Markup(str):
    """Text that is markup: made by `tag` and `text`, never of what a user gave."""

    __slots__ = ()


Piece: TypeAlias = Union[str, "Iterable[Piece]", None]


def text(piece: Piece) -> Markup:
    """Return a piece as markup, escaped unless it is already; None is nothing, and several are joined.

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
    """Return an element; a trailing underscore of an attribute's name is dropped, others become hyphens.

    Examples
    --------
    >>> tag("p", "a & b", class_="x", title='"quoted"', hidden=None)
    '<p class="x" title="&quot;quoted&quot;">a &amp; b</p>'
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{text(pieces)}</{name}>")


def cut(label: str, most: int) -> str:
    """Return a label of limited length, with an ellipsis where something was cut off.

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
    """Return text without control characters, overrides of its direction and halves of pairs."""
    if given.isascii() and given.isprintable():
        return given
    return "".join(
        " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}" if _unseen(letter) else letter for letter in given
    )


def _unseen(letter: str) -> bool:
    return unicodedata.category(letter) in _UNSEEN or unicodedata.bidirectional(letter) in _TURNING


_UNSEEN = frozenset({"Cc", "Cs", "Cn", "Co"})
_TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
