"""Checks of arguments that are no matter of data or privacy."""

from __future__ import annotations

import math
import operator
import secrets

from chicle.errors import ParameterError

__all__ = ["check_seed", "integer", "memory_bytes", "number", "threads_or_all"]

_MOST = 2**63 - 1


def integer(name: str, value: object, least: int, most: int = _MOST) -> int:
    """Return an integer argument as an int, if it lies between `least` and `most`; numpy's integers will do."""
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
    """Return an argument as a float, if it is a finite number of at least 0; numpy's numbers will do."""
    fits = hasattr(value, "__float__") and not isinstance(value, bool)
    if not fits or not 0 <= (given := float(value)) < math.inf:  # type: ignore[arg-type]
        raise ParameterError(f"{name} must be finite and at least 0, not {value!r}")
    return given


def check_seed(seed: int | None) -> int:
    """Return a seed that the kernels take; a fresh one, if ``None``."""
    return secrets.randbits(64) if seed is None else integer("seed", seed, 0, 2**64 - 1)


def threads_or_all(threads: object) -> int | None:
    """Return a number of threads that the kernels take; None stands for all there are."""
    return None if threads is None else integer("threads", threads, 1, 1024)


def memory_bytes(memory_limit: object) -> int:
    """Return a memory limit that the kernels take."""
    return integer("memory_limit", memory_limit, 1)
