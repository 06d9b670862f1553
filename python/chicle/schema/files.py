"""Declarations in YAML and JSON files.

YAML is read by the rules of YAML 1.2, which are safer for values of a table: only ``true`` and ``false`` are booleans
(``no`` is a country), and values with a leading zero or a colon, or that look like a date, are texts. Duplicate keys
are errors. What other tools read otherwise is written in quotes, so that they agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from chicle.errors import SchemaError

__all__ = ["read_declaration", "read_value", "write_declaration", "written_value"]

_MOST_BYTES = 64 * 2**20

_RESOLVERS: tuple[tuple[str, str, str], ...] = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN"),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
)


# Texts that tools of YAML 1.1 read as booleans, numbers or dates: No, on, 012, 1e5, 2024-12-31, 12:30.
_OTHERWISE = re.compile(
    r"y|n|yes|no|on|off|true|false|null|~|=|[-+]?\.(inf|nan)|0[xob][\da-f_]+|"
    r"[-+.]?[\d_]+([.:eE_+-][\d_+-]*)*( [\d:. ]+)?",
    re.IGNORECASE,
)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - as PyYAML has it


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - as PyYAML has it

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # The character "next line" is escaped only inside double quotes; without them it is read as a line break.
    style = '"' if "\x85" in text else "'" if _OTHERWISE.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)

for _tag, _pattern, _first in _RESOLVERS:
    for _class in (_Loader, _Dumper):
        _letters = [*_first, ""] if _tag.endswith("null") else list(_first)
        _class.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), _letters)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise SchemaError(f"line {key_node.start_mark.line + 1}: `<<` is not supported; write its lines out")
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise SchemaError(f"line {key_node.start_mark.line + 1}: a key must be a plain word")
        if key in made:
            raise SchemaError(f"line {key_node.start_mark.line + 1}: {key!r} occurs twice; keep one")
        made[key] = loader.construct_object(value_node, deep=True)
    return made


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read_declaration(path: str | Path) -> Any:  # noqa: ANN401 - to be validated
    """Return the content of a YAML or JSON file as plain data."""
    place = Path(path)
    try:
        if place.stat().st_size > _MOST_BYTES:
            raise SchemaError(f"{place} is too large for a schema")
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise SchemaError(f"{place} cannot be read: {error.strerror}; is the path right?") from None
    except UnicodeDecodeError:
        raise SchemaError(f"{place} is not UTF-8 text; save it as UTF-8") from None
    try:
        if place.suffix.lower() == ".json":
            return json.loads(text, object_pairs_hook=_once)
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except json.JSONDecodeError as error:
        raise SchemaError(f"{place} is not valid JSON: line {error.lineno}: {error.msg}") from None
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise SchemaError(f"{place} is not valid YAML: {line}{error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, SchemaError):
            raise SchemaError(f"{place}: {error}") from None
        raise SchemaError(f"{place} cannot be read as a schema; is it the right file?") from None


def read_value(text: str) -> Any:  # noqa: ANN401 - to be validated
    """Return one value as a line of a schema file has it.

    Examples
    --------
    >>> read_value("[0, 18, 65]"), read_value("06"), read_value("2024-12-31")
    ([0, 18, 65], '06', '2024-12-31')
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("this is no value as in a schema file; quote texts that hold : { } [ ] , or #") from None


def written_value(value: object) -> str:
    """Return one value as a line of a schema file has it.

    Examples
    --------
    >>> written_value({"type": "integer", "min": 0}), written_value("no"), written_value(True)
    ('{type: integer, min: 0}', "'no'", 'true')
    """
    return _dump(value, flow=True).removesuffix("\n").removesuffix("\n...")


def write_declaration(
    path: str | Path, declaration: Mapping[str, Any], *, header: str | None = None, comments: Mapping[str, str]
) -> None:
    """Write a declaration as JSON or YAML, by the file's ending. YAML has comments, and a line for each column."""
    place = Path(path)
    if place.suffix.lower() == ".json":
        text = json.dumps(declaration, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        text = _yaml(declaration, header, comments)
    place.write_text(text, encoding="utf-8")


def _yaml(declaration: Mapping[str, Any], header: str | None, comments: Mapping[str, str]) -> str:
    lines = [] if header is None else _commented(header, "")
    for key, value in declaration.items():
        if isinstance(value, Mapping):
            lines.append(f"{key}:\n")
            for name, item in value.items():
                if key == "columns" and name in comments:
                    lines += _commented(comments[name], "  ")
                lines += _line(name, item)
        elif isinstance(value, list):
            lines += [f"{key}:\n", *(f"  - {_dump(item, flow=True)}" for item in value)]
        else:
            lines.append(_dump({key: value}, flow=False))
    return "".join(lines)


def _line(name: str, item: object) -> list[str]:
    key = _dump({name: 0}, flow=False)[: -len(": 0\n")]
    # YAML writes a very long name as a complex key.
    return [f"  {key}\n  : " if key.startswith("? ") else f"  {key}: ", _dump(item, flow=True)]


def _dump(data: object, *, flow: bool) -> str:
    text: str = yaml.dump(
        data, Dumper=_Dumper, default_flow_style=flow, sort_keys=False, allow_unicode=True, width=2**30
    )
    return text.removesuffix("...\n")


def _commented(text: str, indent: str) -> list[str]:
    words, lines = text.split(), [f"{indent}#"]
    for word in words:
        if len(lines[-1]) + len(word) > 118:
            lines.append(f"{indent}#")
        lines[-1] += f" {word}"
    return [f"{line}\n" for line in lines]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise SchemaError(f"{key!r} occurs twice; keep one")
        made[key] = value
    return made
