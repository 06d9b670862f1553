"""Checks of arguments that concern neither data nor privacy."""

from __future__ import annotations

import math
import operator
import secrets

from chicle import _core
from chicle.errors import ParameterError

__all__ = ["MEMORY_LIMIT", "check_seed", "check_size", "integer", "memory_bytes", "number", "threads_or_all"]

MEMORY_LIMIT: int = _core.MEMORY_LIMIT
"""Bytes that the tables of one call may take by default: 4 GiB."""

_MOST = 2**63 - 1


def integer(name: str, value: object, least: int, most: int = _MOST) -> int:
    """Return an integer argument as an int; it must be from `least` to `most`. numpy's integers are accepted."""
    rule = f"{name} must be an integer of at least {least}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ParameterError(f"{rule}, not {value!r}")
    number = operator.index(value)
    if number < least:
        raise ParameterError(f"{rule}, not {number}")
    if number > most:
        raise ParameterError(f"{name} must be at most {most}")
    return number


def number(name: str, value: object) -> float:
    """Return an argument as a float; it must be finite and at least 0. numpy's numbers are accepted."""
    fits = hasattr(value, "__float__") and not isinstance(value, bool)
    if not fits or not 0 <= (given := float(value)) < math.inf:  # type: ignore[arg-type]
        raise ParameterError(f"{name} must be finite and at least 0, not {value!r}")
    return given


def check_seed(seed: int | None) -> int:
    """Return a valid seed for the kernels; a fresh one if ``None``."""
    return secrets.randbits(64) if seed is None else integer("seed", seed, 0, 2**64 - 1)


def check_size(n: int | None) -> None:
    """Raise unless this is a valid number of records for the kernels, or ``None``."""
    if n is not None:
        integer("n", n, 0, 2**31 - 1)


def threads_or_all(threads: object) -> int | None:
    """Return a valid number of threads for the kernels; None uses all."""
    return None if threads is None else integer("threads", threads, 1, 1024)


def memory_bytes(memory_limit: object) -> int:
    """Return a valid memory limit for the kernels."""
    return integer("memory_limit", memory_limit, 1)
