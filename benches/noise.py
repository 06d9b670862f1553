"""Exact integer noise: chicle, OpenDP's discrete Gaussian, and numpy's inexact floats for scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp
from side_by_side import Goal, Part, Row, Settings, Table, check, in_turns

from chicle import _core, privacy

SIGMAS = (1.0, 100.0, 1e4)


@dataclass(frozen=True)
class Sampler:
    """A source of Gaussian noise; `prepare(sigma, draws)` gives what is measured."""

    name: str
    threads: str
    draws: int
    prepare: Callable[[float, int], Callable[[], Any]]
    rounding_variance: float = 0.0


def chicle_one_thread(sigma: float, draws: int) -> Callable[[], Any]:
    # The public function uses all threads.
    return partial(_core.rounded_gaussian, [sigma], [draws], threads=1)


def chicle_all_threads(sigma: float, draws: int) -> Callable[[], Any]:
    return partial(privacy.rounded_gaussian, sigma, draws)


def opendp(sigma: float, draws: int) -> Callable[[], Any]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return partial(dp.m.make_gaussian(*space, scale=sigma), [0] * draws)


def numpy_normal(sigma: float, draws: int) -> Callable[[], Any]:
    return partial(np.random.default_rng().normal, 0.0, sigma, draws)


SAMPLERS = (
    Sampler("chicle rounded_gaussian", "1", 500_000, chicle_one_thread, 1 / 12),
    Sampler("chicle rounded_gaussian", "all", 500_000, chicle_all_threads, 1 / 12),
    Sampler("OpenDP make_gaussian, i64", "1", 4_000, opendp),
    Sampler("numpy normal, float, not private", "1", 500_000, numpy_normal),
)


def gaussian(settings: Settings) -> Part:
    measured: list[Row] = []
    goals: list[Goal] = []
    for sigma in SIGMAS:
        jobs = {str(i): sampler.prepare(sigma, sampler.draws) for i, sampler in enumerate(SAMPLERS)}
        timed = list(in_turns(jobs, settings.rounds).values())
        nanoseconds = [result.seconds / sampler.draws * 1e9 for sampler, result in zip(SAMPLERS, timed, strict=True)]
        for sampler, result, cost in zip(SAMPLERS, timed, nanoseconds, strict=True):
            check_moments(sampler, sigma, np.asarray(result.answer, float))
            measured.append(
                {
                    "method": sampler.name,
                    "threads": sampler.threads,
                    "sigma": sigma,
                    "ns per draw": cost,
                    "ratio to chicle, 1 thread": cost / nanoseconds[0],
                    "draws": sampler.draws,
                }
            )
        goals.append(
            Goal(f"rounded_gaussian, sigma {sigma:g}, 1 thread: times OpenDP", 50, nanoseconds[2] / nanoseconds[0])
        )
    return Part([Table("Gaussian noise", measured)], goals)


def check_moments(sampler: Sampler, sigma: float, draws: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    """Mean and standard deviation lie within six standard errors of what they must be."""
    expected = (sigma**2 + sampler.rounding_variance) ** 0.5
    error = expected / draws.size**0.5
    check(draws.size == sampler.draws, f"{sampler.name} gave {draws.size} draws")
    check(abs(draws.mean()) < 6 * error, f"{sampler.name} at sigma {sigma:g} has mean {draws.mean():.4g}")
    off = abs(draws.std() - expected)
    check(off < 6 * error / 2**0.5, f"{sampler.name} at sigma {sigma:g} has deviation {draws.std():.6g}")


NOISE = (gaussian,)
