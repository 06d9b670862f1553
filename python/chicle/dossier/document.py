"""A document of headings, paragraphs, lists and tables, as Markdown and as one HTML page.

Its texts come from schemas, which people write: both forms escape them, and the page has no scripts and fetches
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TypeAlias

from chicle._html import Markup, lines, tag
from chicle._html import table as html_table

__all__ = ["Block", "Code", "Document", "Items", "Section", "Table"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table; columns from `numbers` on hold numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: int = 99


@dataclass(frozen=True)
class Code:
    """Commands or text that keep their lines."""

    text: str


Block: TypeAlias = str | Items | Table | Code


@dataclass(frozen=True)
class Section:
    """A heading, what stands below it, and sections inside it."""

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = field(default_factory=tuple)


@dataclass(frozen=True)
class Document:
    """A title, a line that must not be overlooked or nothing, and sections."""

    title: str
    warning: str
    sections: Sequence[Section]

    def markdown(self) -> str:
        """Return the document as Markdown."""
        parts = [f"# {_plain(self.title)}"]
        if self.warning:
            parts.append(f"**{_plain(self.warning)}**")
        for section in self.sections:
            parts += _markdown(section, 2)
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """Return the document as one page."""
        style = Markup(files("chicle.reports").joinpath("style.css").read_text(encoding="utf-8"))
        head = [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", self.title),
            tag("style", style),
        ]
        warned = tag("p", tag("strong", self.warning)) if self.warning else None
        header = tag("header", tag("h1", self.title), warned)
        body = tag("body", header, tag("main", [tag("section", _html(section, 2)) for section in self.sections]))
        return f"<!DOCTYPE html>\n{tag('html', tag('head', head), body, lang='en')}\n"


def _markdown(section: Section, level: int) -> list[str]:
    parts = [f"{'#' * level} {_plain(section.title)}"]
    for block in section.blocks:
        if isinstance(block, str):
            parts.append(_plain(block))
        elif isinstance(block, Items):
            parts.append("\n".join(f"- {_plain(item)}" for item in block.items))
        elif isinstance(block, Code):
            parts.append("\n".join(f"    {line}" for line in block.text.split("\n")))
        else:
            ruler = ["---:" if i >= block.numbers else "---" for i in range(len(block.head))]
            rows = [[_plain(cell) for cell in row] for row in (block.head, *block.rows)]
            rows.insert(1, ruler)
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    for inner in section.sections:
        parts += _markdown(inner, level + 1)
    return parts


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    marked = re.sub(r"([\\`*_{}\[\]|#])", r"\\\1", " ".join(text.split()))
    return marked.replace("<", "&lt;").replace(">", "&gt;")


def _html(section: Section, level: int) -> list[Markup]:
    parts = [tag(f"h{level}", section.title)]
    for block in section.blocks:
        if isinstance(block, str):
            parts.append(tag("p", block))
        elif isinstance(block, Items):
            parts.append(tag("ul", [tag("li", item) for item in block.items]))
        elif isinstance(block, Code):
            parts.append(tag("pre", lines(block.text)))
        else:
            parts.append(html_table(block.head, block.rows, block.numbers))
    for inner in section.sections:
        parts += _html(inner, level + 1)
    return parts
