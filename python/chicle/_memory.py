"""How much memory this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from chicle._checks import MEMORY_LIMIT

__all__ = ["memory_limit"]

_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> int:
    """Return the bytes that the tables of a fit may take: 4 GiB, or less if the system gives less.

    The memory of the machine, the limit of its container, and what `ulimit -v` leaves of address space are asked for,
    where the system tells.
    """
    return min(MEMORY_LIMIT, *_system())


def _system() -> list[int]:
    found = [limit for path in _CGROUPS if (limit := _number(Path(path))) is not None]
    with suppress(AttributeError, OSError, ValueError):  # not on Windows
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return [*found, *_address_space()]


def _address_space() -> list[int]:
    """Return what is left of the address space, if it is limited."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return []
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return []
    used = _number(Path("/proc/self/statm"))
    return [max(limit - (used or 0) * resource.getpagesize(), 0)]


def _number(path: Path) -> int | None:
    """Return the number with which a file of the system begins; None if there is none."""
    try:
        return int(path.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
