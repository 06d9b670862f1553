"""Contenders that live in a Python environment of their own: ``module:function@PYTHON``.

Other libraries pin versions that exclude each other, so each may have an environment with neither chicle nor anything
that chicle needs; only numpy. The function gets codes and gives codes::

    # peers.py, installed for that Python or in the working folder
    def mst(columns, domain, *, epsilon, delta, seed):
        ...  # columns: name -> array of codes; domain: name -> number of values
        return {name: codes for name, codes in made.items()}

``chicle compare people.csv -s people.yaml --mechanisms prism,peers:mst@envs/peers/bin/python``. Codes go in and out
through pipes: no copy of the table is written to disk. Functions for some packages are in `chicle.comparison.adapters`:
``smartnoise-mst@envs/smartnoise/bin/python``.

What the comparison knows more goes to parameters of these names, where the function has them: ``workload``, a list of
pairs of a clique and its weight; ``public``, a mapping like `columns`, of a public table; ``max_records_per_person``. A
function without the last is refused where persons have several rows, because it would protect rows.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from chicle._elsewhere import ElsewhereError, python_at, run_elsewhere
from chicle.comparison.adapters import ADAPTERS, PACKAGES
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.public import PublicData
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["Foreign"]

_RUNNER = Path(__file__).with_name("foreign_runner.py")
_ADAPTERS = Path(__file__).with_name("adapters.py")


class Foreign:
    """A contender in another environment.

    Parameters
    ----------
    name
        ``module:function@PYTHON``, or a name of `chicle.comparison.adapters` and ``@PYTHON``.
    """

    def __init__(self, name: str) -> None:
        function, _, python = name.rpartition("@")
        self._said, self._hint = function, ""
        if function in ADAPTERS:
            self._module, self._function = str(_ADAPTERS), ADAPTERS[function].__name__
            self._hint = f"pip install {PACKAGES[function.partition('-')[0]]} for that Python"
        else:
            self._module, _, self._function = function.partition(":")
        if not (self._module and self._function):
            known = ", ".join(ADAPTERS)
            raise ParameterError(
                f"{name!r} names no function; write module:function@PYTHON, or one of {known} and @PYTHON"
            )
        self._python = python_at(python, name)

    def __call__(
        self,
        records: Records,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        seed: int,
        threads: int | None,
        workload: Workload | None = None,
        public: PublicData | None = None,
        **parameters: Any,  # noqa: ANN401 - the function's own
    ) -> Records:
        """Return the synthetic records that the function makes."""
        del schema, threads
        domain = dict(records.domain)
        more: dict[str, Any] = {"max_records_per_person": records.max_records_per_person}
        arrays: dict[str, Any] = {f"c{i}": records[name] for i, name in enumerate(domain)}
        if workload is not None:
            more["workload"] = [[list(clique), weight] for clique, weight in workload.items()]
        if public is not None:
            more["public"] = list(public.table.domain)
            arrays |= {f"p{i}": public.table[name] for i, name in enumerate(public.table.domain)}
        asked = {"epsilon": epsilon, "delta": delta, "seed": seed, **parameters}
        packed = io.BytesIO()
        head = json.dumps({"domain": domain, "given": asked, "more": more})
        np.savez(packed, head=np.array(head), **arrays)
        try:
            written = run_elsewhere(self._python, _RUNNER, [self._module, self._function], packed.getvalue())
        except ElsewhereError as error:
            if str(error) == "NoPersons":
                raise ParameterError(
                    f"{self._said} has no parameter max_records_per_person, so it would protect rows, not persons; "
                    "give it one, or compare a table of one row a person"
                ) from None
            hint = f"; {self._hint}" if self._hint and "ModuleNotFound" in str(error) else ""
            raise ParameterError(f"{self._said} failed in its environment: {error}{hint}") from None
        with np.load(io.BytesIO(written), allow_pickle=False) as made:
            columns = {name: made[f"c{i}"] for i, name in enumerate(domain)}
        return Records(columns, records.domain)
