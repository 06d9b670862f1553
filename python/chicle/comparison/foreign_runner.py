"""Runs one function of another environment: codes on stdin, codes on stdout. Needs numpy, and nothing of chicle."""

import importlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np


def _main() -> None:
    sys.path[0] = str(Path.cwd())  # not the folder of this file: its names are chicle's
    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as packed:
        head = json.loads(str(packed["head"]))
        columns = {name: packed[f"c{i}"] for i, name in enumerate(head["domain"])}
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    module, name = sys.argv[1:3]
    held = runpy.run_path(module) if module.endswith(".py") else vars(importlib.import_module(module))
    function = held[name]
    made = function(columns, head["domain"], **head["given"])
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
