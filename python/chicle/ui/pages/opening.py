"""Step 1: open a table, by its path, from the folder, or dragged onto the page."""

from __future__ import annotations

from chicle._html import tag
from chicle.ui.pages.layout import View, button, field

__all__ = ["opening"]

_MOST = 60


def opening(view: View, given: str = "", message: str = "") -> str:
    """Return the page."""
    found = view.session.tables()
    listed = [
        tag("li", view.form("open", tag("button", tag("bdi", path.name), name="given", value=path.name, class_="file")))
        for path in found[:_MOST]
    ]
    more = f"… and {len(found) - _MOST} more; write the name of one above." if len(found) > _MOST else None
    path = tag(
        "input",
        name="given",
        value=given,
        required="required",
        autocomplete="off",
        spellcheck="false",
        placeholder="people.csv, or part-*.parquet",
    )
    return view.page(
        "open",
        "Open a private table",
        tag(
            "p",
            "The table is read where it is: CSV, Parquet or Arrow. From it, chicle drafts a schema and draws each "
            "column, for you to review. Both are NOT PRIVATE: they stay in the memory of this program.",
            class_="lead",
        ),
        view.form(
            "open",
            field("File, or a pattern of files", path, f"Names are looked up in {view.session.folder}."),
            button("Open"),
            class_="card row",
        ),
        tag(
            "div",
            tag("p", "Or drop a file here"),
            tag(
                "p", tag("label", "choose one", tag("input", type="file", id="file", class_="hidden")), class_="choose"
            ),
            tag("progress", id="sent", max=1, value=0, hidden="hidden"),
            tag("p", "", id="sending", role="status"),
            tag("small", "It is copied to a private temporary folder, which is removed when the program ends."),
            class_="drop",
            id="drop",
        ),
        [tag("h2", "Tables in this folder"), tag("ul", listed, class_="files"), more] if listed else None,
        message=message,
    )
