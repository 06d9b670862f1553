"""Budgets: a privacy promise, and the rho that may be spent under it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle.errors import PrivacyError
from chicle.privacy import accounting as _conversions

__all__ = ["Accounting", "Budget", "budget_shares", "calibrate", "calibrate_choice"]

Accounting: TypeAlias = Literal["gdp", "zcdp", "zcdp-basic"]

# Sigma is rounded up by this share, so that the parts of a budget never add up to more than the whole.
_SLACK = 1e-12


@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """A privacy promise in one of three forms: (epsilon, delta), rho of zCDP, or mu of Gaussian DP.

    In every form, the costs of releases are added up in rho. Gaussian noise of standard deviation sigma on values of L2
    sensitivity s costs ``rho = s^2 / (2 sigma^2)``, which under Gaussian DP is ``mu^2 / 2``.

    Parameters
    ----------
    epsilon, delta
        A promise in (epsilon, delta)-DP.
    rho
        A promise in zero-concentrated DP, instead of epsilon and delta.
    mu
        A promise in Gaussian DP, instead of epsilon and delta.
    discovery
        The part of delta that is set aside for discovering values that are not declared; rho follows from the rest of
        delta. With rho or mu, which have no delta, the promise holds except with this probability.
    pure
        The part of epsilon that is set aside for pure releases (discrete Laplace noise); rho follows from the rest of
        epsilon, and is 0 if all of it is pure: then the promise is pure epsilon-DP.
    accounting
        How (epsilon, delta) is converted to rho. ``"gdp"``, the default, is exact for Gaussian noise. ``"zcdp"`` is the
        tight conversion of [A] Proposition 4, for mechanisms with many steps of the exponential mechanism.
        ``"zcdp-basic"`` is the conversion of [P] Theorem 2, to reproduce the paper.

    Examples
    --------
    >>> Budget(epsilon=1, delta=1e-9)
    Budget(epsilon=1, delta=1e-09, accounting='gdp') of rho 0.01656
    >>> round(Budget(epsilon=1, delta=1e-9, accounting="zcdp-basic").rho, 5)
    0.01178
    """

    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float
    accounting: Accounting
    discovery: float | None
    pure: float | None

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        accounting: Accounting | None = None,
        discovery: float | None = None,
        pure: float | None = None,
    ) -> None:
        given = {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
        promise = {name: real(name, value) for name, value in given.items() if value is not None}
        default = _FORMS.get(tuple(promise))
        if default is None:
            named = " and ".join(promise) or "nothing"
            raise PrivacyError(f"a budget is epsilon= with delta=, or rho=, or mu=; this one was given {named}")
        how = default if accounting is None else accounting
        if how not in get_args(Accounting):
            raise PrivacyError(f"accounting must be one of {get_args(Accounting)}, not {accounting!r}")
        if "epsilon" not in promise and how != default:
            raise PrivacyError(f"a budget in {next(iter(promise))} is accounted in {default!r}, not {accounting!r}")
        for name in ("epsilon", "delta", "mu"):
            object.__setattr__(self, name, promise.get(name))
        if discovery is not None:
            discovery = _probability("discovery", discovery)
            if "delta" in promise:
                promise["delta"] = _rest(promise["delta"], discovery)
        if pure is not None:
            pure = positive("pure", pure)
            if not pure <= promise.get("epsilon", 0.0):
                raise PrivacyError(f"pure must be a part of epsilon, not {pure!r}; rho and mu have no such part")
            promise["epsilon"] = math.nextafter(promise["epsilon"] - pure, 0.0)
        # All of epsilon may be pure: then nothing may cost rho, and delta is not needed.
        all_pure = pure is not None and not promise["epsilon"]
        object.__setattr__(self, "rho", 0.0 if all_pure else _rho(promise, how))
        object.__setattr__(self, "accounting", how)
        object.__setattr__(self, "discovery", discovery)
        object.__setattr__(self, "pure", pure)

    def with_pure(self, pure: float) -> Budget:
        """Return the same promise with another part of epsilon set aside for pure releases."""
        return Budget(**{**self.promise(), "pure": pure})

    @property
    def undivided(self) -> Budget:
        """The same promise with nothing set aside for pure releases."""
        return Budget(**{name: value for name, value in self.promise().items() if name != "pure"})

    def of_rest(self, epsilon: float) -> Budget:
        """Return the same promise with all but this much of epsilon set aside for pure releases."""
        whole = self.epsilon or 0.0
        return self if epsilon >= whole else self.with_pure(whole - epsilon)

    def epsilon_at(
        self, delta: float, rho: float | None = None, discovery: float | None = None, pure: float | None = None
    ) -> float:
        """Return the epsilon of this budget at some delta, rounded up.

        With `rho`, `discovery` and `pure`, return the epsilon of a budget of which only this much was spent.
        """
        pure = (self.pure or 0.0) if pure is None else pure
        rest = self._epsilon_of_rest(delta, rho, discovery)
        return math.nextafter(rest + pure, math.inf) if pure else rest

    def _epsilon_of_rest(self, delta: float, rho: float | None, discovery: float | None) -> float:
        """Return the epsilon at some delta of everything but pure releases, rounded up."""
        rho = self.rho if rho is None else rho
        discovery = (self.discovery or 0.0) if discovery is None else discovery
        if discovery:
            delta = _rest(delta, discovery)
        if self.accounting == "gdp":
            return _conversions.gdp_epsilon(mu=math.sqrt(2 * rho), delta=delta)
        if self.accounting == "zcdp":
            return _conversions.zcdp_epsilon(rho=rho, delta=delta)
        return _conversions.zcdp_basic_epsilon(rho=rho, delta=delta)

    def promise(self) -> dict[str, Any]:
        """Return the arguments that make an equal budget."""
        named = {name: value for name in ("epsilon", "delta", "mu") if (value := getattr(self, name)) is not None}
        aside = {name: value for name in ("discovery", "pure") if (value := getattr(self, name)) is not None}
        return {**(named or {"rho": self.rho}), **aside, "accounting": self.accounting}

    def __repr__(self) -> str:
        shown = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v!r}" for k, v in self.promise().items())
        return f"Budget({', '.join(shown)}) of rho {self.rho:.4g}"


_FORMS: dict[tuple[str, ...], Accounting] = {("epsilon", "delta"): "gdp", ("rho",): "zcdp", ("mu",): "gdp"}


def _rho(promise: dict[str, float], how: Accounting) -> float:
    if "rho" in promise:
        return positive("rho", promise["rho"])
    if "mu" in promise:
        return _half_square(positive("mu", promise["mu"]))
    if how == "gdp":
        return _half_square(_conversions.gdp_mu(**promise))
    if how == "zcdp":
        return _conversions.zcdp_rho(**promise)
    return _conversions.zcdp_basic_rho(**promise)


def calibrate(rho: float | Budget, *, l2_sensitivity: float = 1) -> float:
    """Return the sigma at which Gaussian noise on values of this sensitivity costs rho, rounded up.

    Examples
    --------
    >>> round(calibrate(Budget(epsilon=1, delta=1e-9)), 3)
    5.495
    """
    rho = positive("rho", rho.rho if isinstance(rho, Budget) else rho)
    return positive("l2_sensitivity", l2_sensitivity) / math.sqrt(2 * rho) * (1 + _SLACK)


def calibrate_choice(rho: float, *, accounting: Accounting) -> float:
    """Return the epsilon at which a choice by the exponential mechanism costs rho, rounded down.

    Examples
    --------
    >>> round(calibrate_choice(0.02, accounting="zcdp"), 6), round(calibrate_choice(0.02, accounting="gdp"), 3)
    (0.4, 0.319)
    """
    rho = positive("rho", rho)
    if accounting == "gdp":
        return _conversions.choice_epsilon(mu=math.sqrt(2 * rho)) * (1 - _SLACK)
    return math.sqrt(8 * rho) * (1 - _SLACK)


def budget_shares(cells: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the shares of a budget that give tables of so many cells the least noise in all ([P] equation 1).

    They are ~ cells^(2/3).

    Examples
    --------
    >>> budget_shares([8, 27]).round(3).tolist()
    [0.308, 0.692]
    """
    # In logarithms, since the cells of a clique may be more than a float holds.
    logs = np.array([math.log(number) for number in cells])
    weights: npt.NDArray[np.float64] = np.exp((logs - logs.max(initial=0.0)) * (2 / 3))
    shares: npt.NDArray[np.float64] = weights / max(weights.sum(), 1.0)
    return shares


def real(name: str, value: object) -> float:
    """Return a number as a Python float; numpy numbers are accepted, text is not."""
    if isinstance(value, (bool, str, bytes)):
        raise PrivacyError(f"{name} must be a number, not {value!r}")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise PrivacyError(f"{name} must be a number that a float can hold, not {value!r}") from None


def positive(name: str, value: object) -> float:
    """Return a number as a Python float, if it is finite and above 0."""
    number = real(name, value)
    if not 0 < number < math.inf:
        raise PrivacyError(f"{name} must be finite and above 0, not {number!r}")
    return number


def _probability(name: str, value: object) -> float:
    number = real(name, value)
    if not 0 < number < 1:
        raise PrivacyError(f"{name} is a part of delta and lies between 0 and 1, not {number!r}")
    return number


def _rest(delta: float, discovery: float) -> float:
    """Return the rest of delta, rounded down."""
    rest = math.nextafter(delta - discovery, 0.0)
    if rest <= 0:
        raise PrivacyError(
            f"delta {delta:g} must be larger than the {discovery:g} that discovery takes of it; give a larger delta"
        )
    return rest


def _half_square(mu: float) -> float:
    """Return mu^2 / 2, rounded down."""
    return math.nextafter(mu * mu / 2, 0.0)
