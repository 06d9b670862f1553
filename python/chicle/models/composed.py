"""Tables made consistent, and records of them by a record kernel: how PrivSyn generates ([P] sections 4.3 to 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy.typing as npt

from chicle.counting.records import Records
from chicle.denoising.consistency import project
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, check_all
from chicle.models.base import CountedModel, Model, State, register_model
from chicle.models.compose import compose
from chicle.models.descent import descend
from chicle.models.gum import gum
from chicle.models.mcf import mcf

__all__ = ["KERNELS", "ComposedModel", "check_options"]

KERNELS: Mapping[str, Callable[..., Records]] = {"gum": gum, "descent": descend, "mcf": mcf}
"""The kernels that make records of consistent tables."""


def check_options(kernel: Callable[..., Any], name: str, options: Mapping[str, Any]) -> None:
    """Raise unless a kernel takes these keyword arguments."""
    taken = [p.name for p in signature(kernel).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [option for option in taken if option not in ("amounts", "seed", "threads", "progress", "zeros")]
    for option in options:
        if option not in known:
            raise ParameterError(f"{name!r} has no option {option!r}; it has {', '.join(known)}")


@register_model("composed")
@dataclass(kw_only=True, eq=False)
class ComposedModel(CountedModel):
    """Consistent tables, and a kernel that makes records of each part of the marginal graph.

    Attributes
    ----------
    kernel
        ``"gum"``, ``"descent"`` or ``"mcf"``.
    options
        Keyword arguments of the kernel.
    separate, append
        Whether unconnected parts, and attributes in one table only, are made without the kernel ([P] 5.3).
    """

    kernel: str = "gum"
    options: Mapping[str, Any] = field(default_factory=dict)
    separate: bool = True
    append: bool = True

    def params(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {**super().params(), "options": dict(self.options)}

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise ParameterError(f"kernel must be one of {', '.join(map(repr, KERNELS))}, not {self.kernel!r}")
        check_options(KERNELS[self.kernel], self.kernel, self.options)

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""
        del start, progress
        domain = self.merge.domain
        merged = check_all([self.merge.over(one) for one in measurements], domain, buckets=False)
        self._tables = project(merged, domain, threads=threads)

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        make, amounts = KERNELS[self.kernel], self.amounts

        def kernel(targets: Sequence[Measurement], domain: Domain, rows: int, seed: int) -> Records:
            given = dict(self.options)
            if make is descend:
                given["amounts"] = {name: amounts[name] for name in domain if name in amounts}
            return make(targets, domain, rows, seed=seed, threads=threads, progress=progress, **given)

        parts = {"separate": self.separate, "append": self.append}
        return compose(kernel, self._tables, self.merge.domain, n, seed, **parts)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        return measurements_to_arrays(self._tables, self.merge.domain)

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        self._tables = measurements_from_arrays(state, self.merge.domain)
