"""Public rows at a desk: what everybody may see, over some or all of its attributes. Not paid for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from chicle.counting.records import Records

__all__ = ["PublicRows", "Role"]

_SHOWN = 12  # columns that a note names

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
    name
        What the table is called.
    """

    records: Records
    role: Role
    name: str = "a table"

    @cached_property
    def digest(self) -> str:
        """The first digits of the SHA-256 of the codes: whoever has the table can tell that it was this one."""
        found = hashlib.sha256()
        for name, size in self.records.domain.items():
            found.update(f"{name}\0{size}\0".encode())
            found.update(self.records[name].astype("<u4").tobytes())
        return found.hexdigest()[:16]

    @property
    def note(self) -> str:
        """What was used, for the plan and for readers of the release."""
        names = [repr(name) for name in self.records.domain]
        more = [*names[:_SHOWN], f"and {len(names) - _SHOWN} more columns"] if len(names) > _SHOWN + 1 else names
        return (
            f"public data are used as {self.role}: {self.name} (digest {self.digest}), {len(self.records):,} rows of "
            + ", ".join(more)
        )

    def __repr__(self) -> str:
        return f"PublicRows of {len(self.records):,} rows, as {self.role}, over {self.records.domain!r}"
