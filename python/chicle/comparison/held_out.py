"""Which tables constants may be set on, and which only judge: by a hash of the table's name.

Whoever tunes a mechanism on a table that it is judged on measures the tuning. The split is fixed by the names alone, so
nobody chooses it, and a new table has its role before anybody has seen its figures.
"""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

__all__ = ["Role", "role_of"]

Role: TypeAlias = Literal["develop", "judge"]


def role_of(table: str) -> Role:
    """Return what a table of this name is for; case and spaces do not matter.

    Examples
    --------
    >>> role_of("Adult"), role_of("adult "), role_of("MSNBC")
    ('judge', 'judge', 'judge')
    """
    name = "".join(table.lower().split())
    return "develop" if hashlib.sha256(name.encode()).digest()[0] % 2 == 0 else "judge"
