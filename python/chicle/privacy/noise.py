"""Exact integer noise from the operating system's random generator.

`rust/core/src/noise` draws it; the headers there prove that it is exact. There is no seed here, because noise that
somebody can repeat protects nobody. `TestNoise` is repeatable and for tests only; a ledger that uses it is marked as
not protected for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import integer, threads_or_all
from chicle.errors import PrivacyError
from chicle.privacy.budget import real

__all__ = ["MAX_SCALE", "MIN_SCALE", "TestNoise", "discrete_laplace", "rounded_gaussian"]

MIN_SCALE: float = _core.MIN_SCALE
MAX_SCALE: float = _core.MAX_SCALE


def rounded_gaussian(
    sigma: float, size: SupportsIndex | tuple[SupportsIndex, ...], *, threads: int | None = None
) -> npt.NDArray[np.int64]:
    """Draw ``round(sigma * z)`` for independent standard normal deviates ``z``, exactly.

    An integer count plus this noise is the rounded true Gaussian mechanism, so exact Gaussian-DP accounting holds.

    Parameters
    ----------
    sigma
        Standard deviation before rounding, from about 1e-3 to 1e12; the float is taken as an exact binary number.
    size
        Number of draws, or the shape of the array.
    threads
        How many threads to use; all there are, if ``None``.
    """
    shape = _shape(size)
    return _core.rounded_gaussian([check_scale("sigma", sigma)], [_size(shape)], None, threads_or_all(threads)).reshape(
        shape
    )


def discrete_laplace(
    scale: float, size: SupportsIndex | tuple[SupportsIndex, ...], *, threads: int | None = None
) -> npt.NDArray[np.int64]:
    """Draw integers ``y`` with probability proportional to ``exp(-|y| / scale)``, exactly.

    Parameters
    ----------
    scale
        From about 1e-3 to 1e12; the float is taken as an exact binary number.
    size
        Number of draws, or the shape of the array.
    threads
        How many threads to use; all there are, if ``None``.
    """
    shape = _shape(size)
    return _core.discrete_laplace([check_scale("scale", scale)], [_size(shape)], None, threads_or_all(threads)).reshape(
        shape
    )


class SystemNoise:
    """Noise for releases, with several scales in one call."""

    def rounded_gaussian(self, sigmas: Sequence[float], sizes: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return ``sizes[0]`` draws with ``sigmas[0]``, then ``sizes[1]`` draws with ``sigmas[1]``, and so on."""
        return _core.rounded_gaussian(sigmas, sizes, self._next_seed())

    def discrete_laplace(self, scales: Sequence[float], sizes: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return ``sizes[0]`` draws with ``scales[0]``, then ``sizes[1]`` draws with ``scales[1]``, and so on."""
        return _core.discrete_laplace(scales, sizes, self._next_seed())

    def choose(self, gaps: npt.NDArray[np.uint64], scale: float) -> int:
        """Draw a position with probability proportional to ``exp(-gaps[i] / scale)``."""
        return _core.choose(gaps, scale, self._next_seed())

    def _next_seed(self) -> int | None:
        return None


@dataclass
class TestNoise(SystemNoise):
    """Noise that repeats, for tests only: it does not protect what is released with it."""

    __test__ = False  # pytest: this is no test class

    seed: int

    def _next_seed(self) -> int:
        seed = self.seed
        self.seed = (self.seed + 1) % 2**64
        return seed


def check_scale(name: str, scale: float) -> float:
    """Return a scale, if the samplers accept it."""
    number = real(name, scale)
    if not MIN_SCALE <= number <= MAX_SCALE:
        raise PrivacyError(f"{name} must lie between {MIN_SCALE:.3g} and {MAX_SCALE:.3g}, not {number!r}")
    return number


def _shape(size: SupportsIndex | tuple[SupportsIndex, ...]) -> tuple[int, ...]:
    lengths = size if isinstance(size, tuple) else (size,)
    return tuple(integer("size", length, 0) for length in lengths)


def _size(shape: tuple[int, ...]) -> int:
    return integer("the product of size", prod(shape), 0, 2**48)
