"""Step 2: the draft, column by column: what was read, what to look at, and where it is publicly known."""

from __future__ import annotations

from collections.abc import Mapping

from chicle._html import Markup, Piece, lines, tag
from chicle.columns import TYPES
from chicle.schema.declared import described
from chicle.schema.files import written_value
from chicle.schema.sources import DATA, needs_source
from chicle.ui.declarations import Field, fields_of
from chicle.ui.pages.layout import View, button, field
from chicle.ui.pictures import draw_bars
from chicle.ui.session import Table

__all__ = ["first_open", "review"]

_OFFERED = ("categorical", "ordinal", "boolean", "integer", "number", "date", "datetime", "open", "identifier", "drop")
_MEANINGS = {
    "categorical": "some values, without an order",
    "ordinal": "some values, in an order",
    "boolean": "yes or no",
    "integer": "whole numbers",
    "number": "numbers",
    "date": "dates",
    "datetime": "dates with a time",
    "open": "texts that nobody can list: frequent ones are found with budget",
    "identifier": "ids of rows: new ones are made",
    "drop": "leave it out",
    "coded": "codes from 0",
    "determined": "follows from another column",
}


def first_open(table: Table) -> int:
    """Return the number of the first column that is not confirmed; 0 if all are."""
    return next((i for i, name in enumerate(table.schema.columns) if name not in table.confirmed), 0)


def review(
    view: View, index: int, *, kind: str | None = None, given: Mapping[str, str] | None = None, message: str = ""
) -> str:
    """Return the page of one column.

    Parameters
    ----------
    view
        The session.
    index
        The number of the column.
    kind
        Another type that the user looks at.
    given
        What the user filled in, if it was wrong.
    message
        What was wrong.
    """
    table = view.session.table
    if table is None:
        return view.page("review", "Review", tag("p", "Open a table first."), message=message)
    names = list(table.schema.columns)
    name = names[index]
    left = len(names) - len(table.confirmed & set(names))
    done = tag(
        "p",
        tag("b", f"{len(names) - left} of {len(names)}"),
        " columns confirmed",
        tag("progress", value=len(names) - left, max=len(names), aria_label="columns confirmed"),
        class_="done",
    )
    return view.page(
        "review",
        "What is public about this table?",
        tag(
            "p",
            "Everything below was read from the private table. Replace it by what is known without the table: the "
            "questionnaire, the code book, common knowledge. Then say where that stands.",
            class_="lead",
        ),
        _problems(table),
        tag(
            "div",
            tag("aside", done, _columns(view, table, index), _save(view, left), class_="columns"),
            tag("section", _column(view, table, index, kind, given), class_="card", aria_label=f"Column {name}"),
            class_="split",
        ),
        message=message,
    )


def _problems(table: Table) -> Markup | None:
    if not table.problems:
        return None
    return tag(
        "div",
        tag("p", "The table does not fit this schema yet. Nothing was spent."),
        tag("ul", [tag("li", problem) for problem in table.problems]),
        class_="alert",
        role="alert",
    )


def _columns(view: View, table: Table, index: int) -> Markup:
    items = []
    for i, (name, column) in enumerate(table.schema.columns.items()):
        confirmed = name in table.confirmed
        flagged = not confirmed and name in table.flags and bool(table.flags[name].sentences)
        state = "confirmed" if confirmed else "look" if flagged else "open"
        mark = tag("i", {"confirmed": "✓", "look": "!", "open": ""}[state], class_=state, aria_label=state)
        words = [mark, tag("bdi", name), tag("small", column.type)]
        current = "page" if i == index else None
        items.append(tag("li", view.link(f"review/{i}", words, aria_current=current)))
    return tag("ol", items, class_="list", id="columns")


def _save(view: View, left: int) -> Markup:
    if left:
        return tag("p", tag("small", f"When the other {left} are confirmed, you can save the schema."))
    return view.form("save", button("Save the schema, and check the table"))


def _column(view: View, table: Table, index: int, kind: str | None, given: Mapping[str, str] | None) -> list[Piece]:
    name, column = list(table.schema.columns.items())[index]
    shown = column.type if kind is None or kind not in TYPES else kind
    bars = table.pictures.get(name)
    picture: Piece = tag("p", "No picture: the column has no declared values to count.", class_="soft")
    if bars is not None:
        picture = draw_bars(bars, name)
    sampled = " From 200,000 of its rows." if bars is not None and bars.sampled else ""
    is_person = table.schema.person == name
    return [
        tag("h2", tag("bdi", name), tag("small", f" column {index + 1} of {len(table.schema.columns)}")),
        tag(
            "div",
            tag("p", tag("b", "NOT PRIVATE"), f" The private values, as they were drafted.{sampled}", class_="stamp"),
            picture,
            class_="picture",
        ),
        _flags(table, name),
        _person(view, table, name) if is_person else None,
        None if is_person else _form(view, table, index, shown, given),
        None if is_person else _as_text(view, index, column.to_dict()),
        None if is_person else _as_person(view, name),
        tag("p", tag("small", "Now declared as: ", tag("code", described(column)))),
    ]


def _flags(table: Table, name: str) -> Markup | None:
    flags = table.flags.get(name)
    if flags is None:
        return None
    said = [tag("li", f"read from the data: {flags.read}")] if flags.needs_source else []
    said += [tag("li", sentence, class_="look") for sentence in flags.sentences]
    return tag("ul", said, class_="flags") if said else None


def _form(view: View, table: Table, index: int, kind: str, given: Mapping[str, str] | None) -> Markup:
    declaration = list(table.schema.columns.values())[index].to_dict()
    offered = [*_OFFERED, *([kind] if kind not in _OFFERED else [])]
    options = [
        tag(
            "option",
            f"{one}: {_MEANINGS.get(one, 'a type of your own')}",
            value=one,
            selected="selected" if one == kind else None,
        )
        for one in offered
    ]
    controls = [_control(one, given) for one in fields_of(kind, declaration)]
    source = str(declaration.get("source", "") or "")
    source = "" if source == DATA else source
    known = [str(column.source) for column in table.schema.columns.values() if column.source not in (None, DATA)]
    if given is not None:
        source = given.get("source", source)
    asked = TYPES[kind].modelled and kind not in ("boolean", "open")
    where = field(
        "Where is this publicly known?",
        tag(
            "input",
            name="source",
            value=source,
            list="sources",
            autocomplete="off",
            required="required" if asked and _lacks(table, index) else None,
            placeholder="questionnaire 2019, item 4",
        ),
        "Reviewers read it. It is written into the schema.",
    )
    return view.form(
        f"review/{index}",
        field("Type", tag("select", options, name="type", id="type", data_at=f"review/{index}")),
        controls,
        where if asked else None,
        tag("datalist", [tag("option", value=one) for one in dict.fromkeys(known)], id="sources"),
        button("This is public: confirm", accesskey="c"),
        class_="declaration",
        id="declaration",
    )


def _lacks(table: Table, index: int) -> bool:
    return needs_source(list(table.schema.columns.values())[index])


def _control(one: Field, given: Mapping[str, str] | None) -> Markup:
    shown = one.shown if given is None else given.get(one.key, "")
    needed = "required" if one.needed else None
    if one.kind == "tick":
        tick = tag("input", type="checkbox", name=one.key, value="true", checked="checked" if shown else None)
        return tag("label", tick, tag("span", one.key), tag("small", one.words), class_="field tick")
    if one.kind == "outside":
        rules = {"refuse": "an error", "clamp": "take the nearest bound"}
        options = [
            tag("option", f"{rule}: {words}", value=rule, selected="selected" if rule == shown else None)
            for rule, words in rules.items()
        ]
        return field(one.key, tag("select", options, name=one.key), one.words)
    if one.kind == "lines":
        rows = min(max(shown.count("\n") + 2, 3), 14)
        return field(
            one.key,
            tag("textarea", lines(shown), name=one.key, rows=rows, required=needed, spellcheck="false"),
            one.words,
        )
    return field(
        one.key,
        tag("input", name=one.key, value=shown, required=needed, autocomplete="off", spellcheck="false"),
        one.words,
    )


def _as_text(view: View, index: int, declaration: Mapping[str, object]) -> Markup:
    area = tag("textarea", lines(written_value(dict(declaration))), name="text", rows=3, spellcheck="false")
    return tag(
        "details",
        tag("summary", "As a line of the schema file"),
        view.form(
            f"review/{index}/text",
            field(
                "Declaration", area, "All options are in the reference of schemas, also those without a field above."
            ),
            button("Confirm this line", main=False),
        ),
    )


def _as_person(view: View, name: str) -> Markup:
    return tag(
        "details",
        tag("summary", "Does this column identify persons?"),
        tag("p", "Then a person with several rows is protected with all of them. The column itself is left out."),
        view.form(
            "persons",
            tag("input", type="hidden", name="person", value=name),
            field(
                "Rows that a person may have at most",
                tag("input", type="number", name="most", min=1, value=1, required="required"),
                "Further rows of a person are not read. Noise grows with this number.",
            ),
            button("It identifies persons", main=False),
        ),
    )


def _person(view: View, table: Table, name: str) -> Markup:
    return tag(
        "div",
        tag(
            "p",
            f"This column identifies persons. At most {table.schema.max_records_per_person} rows of each are read, "
            "and each person is protected with all of them.",
        ),
        view.form(
            "persons",
            tag("input", type="hidden", name="person", value=name),
            field(
                "Rows that a person may have at most",
                tag("input", type="number", name="most", min=1, value=table.schema.max_records_per_person),
            ),
            button("Confirm"),
        ),
        view.form(
            "persons",
            tag("input", type="hidden", name="person", value=""),
            tag("input", type="hidden", name="most", value="1"),
            button("No, it does not identify persons", main=False),
        ),
        class_="declaration",
    )
