"""Records by descent towards tables of wide rows: what is expected of independent attributes is so given presence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chicle.denoising.tables import denoise
from chicle.errors import ParameterError
from chicle.measurements.measurement import Measurement, average_repeats
from chicle.models.base import register_model
from chicle.models.denoised import DenoisedModel
from chicle.presence import Presence

__all__ = ["PresenceModel"]


@register_model("presence")
@dataclass(kw_only=True, eq=False)
class PresenceModel(DenoisedModel):
    """A denoised model of wide rows, whose slots are there only if a number says so.

    Attributes
    ----------
    presence
        Which attributes are there when, as plain data of `chicle.presence.Presence`.
    """

    presence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            self._presence = Presence.from_plain(self.presence)
        except (KeyError, TypeError, ValueError):
            raise ParameterError("presence must be the plain data of a Presence; see `Presence.to_plain`") from None

    def denoise(
        self, singles: list[Measurement], tables: list[Measurement], margins: list[Measurement] | None = None
    ) -> list[Measurement]:
        """Return the targets of descent: 1-ways and tables that correct each other, and who is there when."""
        targets = denoise(
            singles,
            average_repeats(tables),
            self.merge,
            self._total,
            absorbing=self.absorb,
            sharing=self.low_rank,
            pull=self.pull,
            presence=self._presence,
            margins=margins,
        )
        return [*targets, *self._who_is_there(targets[: len(singles)])]

    def _who_is_there(self, singles: list[Measurement]) -> list[Measurement]:
        """Return for each optional attribute the table of the number and of whether it is there.

        It follows from the 1-way of the number, so it is free. With it, records agree on who is there, whichever other
        tables were measured.
        """
        presence = self._presence
        by_name = {one.clique[0]: one for one in singles}
        number = by_name[presence.number]
        shares = {name: one.floats / self._total for name, one in by_name.items()}
        tables = []
        for name in (name for name in by_name if presence.optional(name)):
            clique = self.merge.domain.clique((presence.number, name))
            buckets = {name: (np.arange(self.merge.domain[name]) == self.merge.domain[name] - 1).astype(np.uint32)}
            values = presence.expected(clique, shares, self._total, buckets)
            tables.append(Measurement(clique, values, number.sigma, number.protected, buckets))
        return tables
