"""Public rows at a desk: what everybody may see, over some or all of its attributes. Not paid for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from chicle.counting.records import Records

__all__ = ["PublicRows", "Role"]

Role: TypeAlias = Literal["evidence", "trusted"]


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Public rows as mechanisms see them: over some attributes of a desk, or over all, in its order.

    Attributes
    ----------
    records
        The rows; free to count and to copy.
    role
        What they may be used for; see `chicle.PublicData`.
    """

    records: Records
    role: Role

    @property
    def note(self) -> str:
        """What was used, for the plan and for readers of the release."""
        names = ", ".join(repr(name) for name in self.records.domain)
        return f"public data are used as {self.role}: {len(self.records):,} rows of {names}"

    def __repr__(self) -> str:
        return f"PublicRows of {len(self.records):,} rows, as {self.role}, over {self.records.domain!r}"
