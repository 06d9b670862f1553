"""Runs one function of another environment: codes on stdin, codes on stdout. Needs numpy, and nothing of chicle."""

import importlib
import inspect
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np


class NoPersons(Exception):  # noqa: N818 - `foreign` knows it by this name
    """The function would protect rows, and persons have several."""


def _main() -> None:
    sys.path[0] = str(Path.cwd())  # not the folder of this file: its names are chicle's
    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as packed:
        head = json.loads(str(packed["head"]))
        columns = {name: packed[f"c{i}"] for i, name in enumerate(head["domain"])}
        more = head["more"]
        if "public" in more:
            more["public"] = {name: packed[f"p{i}"] for i, name in enumerate(more["public"])}
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    module, name = sys.argv[1:3]
    held = runpy.run_path(module) if module.endswith(".py") else vars(importlib.import_module(module))
    function = held[name]
    there = inspect.signature(function).parameters.values()
    every = any(one.kind is one.VAR_KEYWORD for one in there)
    taken = {name: value for name, value in more.items() if every or name in {one.name for one in there}}
    if more["max_records_per_person"] > 1 and "max_records_per_person" not in taken:
        raise NoPersons
    made = function(columns, head["domain"], **head["given"], **taken)
    filled = io.BytesIO()
    arrays: dict[str, Any] = {f"c{i}": np.asarray(made[name]) for i, name in enumerate(head["domain"])}
    np.savez(filled, **arrays)
    out.write(filled.getvalue())


if __name__ == "__main__":
    try:
        _main()
    except Exception as error:  # noqa: BLE001 - anything may be raised, and its text may quote values of the table
        sys.stderr.write(f"\n{type(error).__name__}\n")
        sys.exit(1)
