"""A column's declaration as the fields of a form, and back. Column types say themselves which keys they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

from chicle.columns import TYPES
from chicle.schema.files import read_value, written_value

__all__ = ["Field", "declaration_of", "fields_of"]

Kind = Literal["line", "lines", "tick", "outside"]

_HELP = {
    "min": "The least value that is possible, from public knowledge; not the least in this table.",
    "max": "The greatest value that is possible.",
    "bins": "Bins for counting: a width such as 5, a list of edges such as [0, 18, 65, 120], or a unit such as month.",
    "values": "One a line, in their order if they have one. Leave out what only this table could tell.",
    "other": "A value that stands for all others; if it is empty, another value is an error.",
    "outside": "What to do with values beyond the bounds.",
    "missing": "Missing is a value of its own. If not, a missing value is an error.",
    "most": "The most values that may be found, with budget.",
    "format": "How dates are written, such as DD/MM/YYYY.",
    "ordinal": "The codes have an order.",
    "values of coded": "The number of codes: 0 to that number, without it.",
}
_NOT_HERE = ("source", "coarse")  # the source has its own question; groups are rare, and in the text of the declaration


@dataclass(frozen=True)
class Field:
    """A field of the form.

    Attributes
    ----------
    key
        The key of the declaration.
    kind
        One line of text, several lines, a tick, or the rule for values outside the bounds.
    shown
        The value as text; ``"true"`` for a tick that is set.
    needed
        Whether it must be filled in.
    words
        What it means.
    """

    key: str
    kind: Kind
    shown: str
    needed: bool
    words: str


def fields_of(kind: str, declaration: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a type, filled in from a declaration of this or of another type."""
    column = TYPES[kind]
    made = []
    for field in fields(column):
        key = field.name
        if key in _NOT_HERE or (key == "missing" and not column.modelled):
            continue
        value = declaration.get(key, None if field.default is MISSING else field.default)
        how: Kind = "line"
        if isinstance(value, bool) or key in ("missing", "ordinal"):
            how = "line" if isinstance(value, (list, tuple)) else "tick"
        elif key == "values" and kind != "coded":
            how = "lines"
        elif key == "outside":
            how = "outside"
        words = _HELP.get(f"{key} of {kind}", _HELP.get(key, ""))
        made.append(Field(key, how, _shown(value, how), field.default is MISSING, words))
    return made


def declaration_of(form: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return the declaration that a form says.

    Parameters
    ----------
    form
        The fields by their keys, with `type` and `source`; a tick that is not set is absent.
    before
        The declaration until now: keys that the form does not have stay, if the type has them.

    Examples
    --------
    >>> declaration_of({"type": "integer", "min": "0", "max": "120", "outside": "clamp"}, {"type": "integer", "max": 9})
    {'type': 'integer', 'min': 0, 'max': 120, 'outside': 'clamp'}
    >>> declaration_of({"type": "categorical", "values": "06\n10"}, {})
    {'type': 'categorical', 'values': ['06', '10']}
    """
    kind = form.get("type", "")
    made: dict[str, Any] = {"type": kind}
    if kind not in TYPES:
        return made  # the schema says what is wrong with it
    known = fields_of(kind, before)
    if before.get("type") == kind and "coarse" in before:
        made["coarse"] = before["coarse"]
    for field in known:
        text = form.get(field.key, "").strip()
        if field.kind == "tick":
            if text:
                made[field.key] = True
        elif field.kind == "lines":
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            texts = all(isinstance(value, str) for value in before.get("values", ()) or ())
            made[field.key] = lines if texts else [read_value(line) for line in lines]
        elif text:
            made[field.key] = read_value(text)
    if source := form.get("source", "").strip():
        made["source"] = source
    default = {field.name: field.default for field in fields(TYPES[kind])}
    return {key: value for key, value in made.items() if key == "type" or value != default.get(key, MISSING)}


def _shown(value: object, how: Kind) -> str:
    if how == "tick":
        return "true" if value else ""
    if value is None:
        return ""
    if how == "lines":
        listed = value if isinstance(value, (list, tuple)) else []
        return "\n".join(item if isinstance(item, str) else written_value(item) for item in listed)
    return written_value(list(value) if isinstance(value, tuple) else value)
