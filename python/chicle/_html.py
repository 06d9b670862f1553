"""Elements of a page. Text is escaped unless it is already markup, since labels come from tables that nobody vetted."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TypeAlias, Union

__all__ = ["Markup", "Piece", "card", "cut", "lines", "table", "tag", "text"]


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


def lines(given: str) -> Markup:
    r"""Return text as markup that keeps its line breaks, for ``pre`` and ``textarea``.

    Examples
    --------
    >>> lines("a < b\nc")
    'a &lt; b\nc'
    """
    return Markup("\n".join(text(line) for line in given.split("\n")))


def card(title: str, *parts: Piece | Sequence[Sequence[str]], warning: str = "") -> Markup:
    """Return what a notebook shows of an object: a heading, and texts and tables below it.

    Styles stand inside the elements, because notebooks drop style sheets; colours are those of the notebook's theme.

    Parameters
    ----------
    title
        The heading.
    parts
        Texts, and tables as lists of rows, the head first; of a long table the middle is left out.
    warning
        A line that must not be overlooked.

    Examples
    --------
    >>> card("Ledger", "spent 1 of 2", [("of", "rho"), ("age", "1")]).count("<td")
    2
    """
    shown: list[Piece] = [tag("div", warning, style=_WARNING)] if warning else []
    shown.append(tag("div", title, style="font-weight:600;margin:4px 0"))
    for part in parts:
        if isinstance(part, (list, tuple)) and part and isinstance(part[0], (list, tuple)):
            shown.append(_small_table([[str(cell) for cell in row] for row in part]))
        elif isinstance(part, Markup):
            shown.append(part)
        elif part:
            shown.append(tag("div", part, style="opacity:.75;white-space:pre-line;margin:4px 0"))
    return tag("div", shown, style="max-width:960px;overflow-x:auto")


def _small_table(rows: list[list[str]]) -> Markup:
    head, *body = rows
    if len(body) > _MOST_ROWS:
        left_out = len(body) - _MOST_ROWS + 1
        body[_MOST_ROWS // 2 : -(_MOST_ROWS // 2 - 1)] = [[f"… {left_out} more", *[""] * (len(head) - 1)]]
    numeric = [bool(body) and all(row[i][:1] in _NUMBER_BEGINS for row in body) for i in range(len(head))]

    def cells(kind: str, row: Sequence[str]) -> Markup:
        aligned = ("right" if right else "left" for right in numeric)
        return tag("tr", [tag(kind, cell, style=f"text-align:{side}") for cell, side in zip(row, aligned, strict=True)])

    return tag("table", tag("thead", cells("th", head)), tag("tbody", [cells("td", row) for row in body]))


_WARNING = "border-left:4px solid #c0392b;padding:2px 10px;font-weight:600"
_MOST_ROWS = 30
_NUMBER_BEGINS = (*"0123456789-<", "")


def cut(label: str, most: int) -> str:
    """Return a label of at most so many characters, with an ellipsis if something was cut off.

    Examples
    --------
    >>> cut("a rather long label", 10)
    'a rather …'
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"


_VOID = frozenset({"br", "input", "link", "meta"})


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
