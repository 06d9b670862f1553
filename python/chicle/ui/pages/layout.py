"""What all pages share: the head, the way in five steps, a message, and links and forms that carry the token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chicle._html import Markup, Piece, tag
from chicle.ui.session import Session

__all__ = ["STEPS", "View", "button", "field"]

STEPS = (
    ("open", "Open", "a table"),
    ("review", "Review", "what is public"),
    ("budget", "Budget", "what it buys"),
    ("job", "Make", "the table"),
    ("results", "Results", "take them along"),
)
"""The way: the address of each step, its name, and a word more."""


@dataclass(frozen=True)
class View:
    """A session as pages draw it.

    Attributes
    ----------
    session
        What is shown.
    base
        What every address begins with: the token.
    """

    session: Session
    base: str

    def link(self, to: str, *words: Piece, class_: str | None = None, **more: Any) -> Markup:  # noqa: ANN401
        """Return a link to an address of the page."""
        return tag("a", *words, href=f"{self.base}/{to}", class_=class_, **more)

    def form(self, to: str, *pieces: Piece, class_: str | None = None, **more: Any) -> Markup:  # noqa: ANN401
        """Return a form that is sent to an address of the page."""
        return tag("form", *pieces, method="post", action=f"{self.base}/{to}", class_=class_, **more)

    def page(self, at: str, title: str, *pieces: Piece, message: str = "") -> str:
        """Return a whole page.

        Parameters
        ----------
        at
            The step that it belongs to.
        title
            Its heading.
        pieces
            What is on it.
        message
            What went wrong, in one line.
        """
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", f"{title} · chicle"),
            tag("link", rel="icon", href=f"{self.base}/static/icon.svg"),
            tag("link", rel="stylesheet", href=f"{self.base}/static/ui.css"),
            tag("script", src=f"{self.base}/static/ui.js", defer="defer"),
        )
        alert = tag("p", message, class_="alert", role="alert", id="message") if message else None
        body = tag(
            "body",
            tag("a", "Skip to the content", href="#main", class_="skip"),
            tag("header", self._name(), self._way(at)),
            tag("main", tag("h1", title), alert, pieces, id="main", data_base=self.base),
            tag("footer", "This page runs on your machine. Nothing leaves it, and it ends with the program (Ctrl-C)."),
        )
        return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"

    def _name(self) -> Markup:
        table = self.session.table
        shown = None if table is None else tag("bdi", table.given, class_="table", title="The private table")
        return tag("div", tag("strong", "chicle"), shown, class_="name")

    def _way(self, at: str) -> Markup:
        reached = self._reached()
        items = []
        for number, (to, name, more) in enumerate(STEPS, start=1):
            words = [tag("b", str(number)), tag("span", name, tag("small", more))]
            if to == at:
                items.append(tag("li", tag("span", words, aria_current="step", class_="step")))
            elif to in reached:
                items.append(tag("li", self.link(to, words, class_="step")))
            else:
                items.append(tag("li", tag("span", words, class_="step later")))
        return tag("nav", tag("ol", items), aria_label="Steps")

    def _reached(self) -> set[str]:
        session = self.session
        reached = {"open"}
        if session.table is not None:
            reached.add("review")
            if session.table.saved:
                reached.add("budget")
        if session.running:
            reached.add("job")
        if session.results:
            reached.add("results")
        return reached


def field(label: Piece, control: Piece, words: Piece = None, **more: Any) -> Markup:  # noqa: ANN401
    """Return a labelled control of a form, with a sentence below it."""
    return tag("label", tag("span", label), control, tag("small", words) if words else None, class_="field", **more)


def button(words: str, *, main: bool = True, **more: Any) -> Markup:  # noqa: ANN401
    """Return a button that sends its form."""
    return tag("button", words, type="submit", class_="main" if main else "quiet", **more)
