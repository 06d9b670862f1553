"""Convert between (epsilon, delta)-DP, Gaussian DP (mu), zCDP (rho) and pure DP, always rounding against ourselves.

Three families of conversions, from exact to crude:

- `gdp_*`: Gaussian noise composes exactly to mu-GDP, and mu-GDP is exactly the curve
  delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)  (Balle and Wang 2018, Thm 8; Dong, Roth and Su 2022).
- `zcdp_*`: any rho-zCDP mechanism, also one with steps of the exponential mechanism ([A] Proposition 4).
- `zcdp_basic_*`: the closed form that PrivSyn uses ([P] Theorem 2), kept to reproduce it.

`pure_mu` and `choice_mu` give the mu at which a step joins a Gaussian composition: an epsilon-DP step, and a step of
the exponential mechanism, which costs less. `discovery_*` bound the probability that discovery releases a value which
only one person has.

Rounding rule: an epsilon, a delta, a threshold, and the mu of `pure_mu` and `choice_mu` are never below the true value;
a budget (mu, rho) is never above it. How that is ensured:

- `math` functions are trusted to 16 ulps (glibc's own tests fail above 9). Every formula below avoids harmful
  cancellation, so each of its terms is good to `_ROUNDING`; that error is added to the result.
- The GDP inverses return a point at which the rounded-up delta was *computed* and meets the target. This is safe
  for any path of the search. The zCDP bound holds at every Renyi order, so the search for the best order is safe too.

The price is a relative error below 1e-10 in the working range (epsilon from 1e-3 to 100, delta from 1e-15 to 1e-2); it
grows far outside, always to the safe side. Cost: at most 63 evaluations of a closed form, under a millisecond.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from chicle.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDING = 2.0**-46  # relative error granted to a term: 64 ulps
_SQRT_2PI = math.sqrt(2 * math.pi)
_ORDERS = (1e-150, 1e150)  # the range of x = alpha - 1; its square stays finite


def gdp_delta(*, epsilon: float, mu: float) -> float:
    """Return the smallest delta such that mu-GDP implies (epsilon, delta)-DP, rounded up.

    With a, b = eps/mu -+ mu/2 both terms have the same density, e^eps phi(b) = phi(a). So
    delta = phi(a) (R(a) - R(b)) with the Mills ratio R(x) = Phi(-x)/phi(x), and nothing overflows.
    """
    epsilon, mu = _at_least_0("epsilon", epsilon), _at_least_0("mu", mu)
    if mu == 0:
        return 0.0
    center = math.nextafter(epsilon / mu, 0.0)  # delta falls in epsilon, so rounding this down rounds delta up
    a = center - mu / 2
    if a < -9:
        return 1.0  # 1 - delta < 2 phi(9) < 1e-17
    if a > 39:
        return math.ulp(0.0)  # delta < phi(39) < 1e-330
    return _exp_up(_sum_up(math.log(_mills_drop(center, mu)), -math.log(_SQRT_2PI), -a * a / 2))


def gdp_epsilon(*, mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 such that mu-GDP implies (epsilon, delta)-DP, rounded up."""
    mu, delta = _at_least_0("mu", mu), _probability("delta", delta)
    if gdp_delta(epsilon=0.0, mu=mu) <= delta:
        return 0.0
    return _bisect(lambda epsilon: gdp_delta(epsilon=epsilon, mu=mu) <= delta, good=math.inf, bad=0.0)


def gdp_mu(*, epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded down."""
    epsilon, delta = _above_0("epsilon", epsilon), _probability("delta", delta)
    return _bisect(lambda mu: gdp_delta(epsilon=epsilon, mu=mu) <= delta, good=0.0, bad=math.inf)


def zcdp_delta(*, epsilon: float, rho: float) -> float:
    """Return the delta of [A] Proposition 4 for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    With x = alpha - 1, log delta = x((1 + x) rho - eps) - x log(1 + 1/x) - log(1 + x) at every x > 0. This is convex
    in x with derivative (1 + 2x) rho - eps - log(1 + 1/x); the minimum is where the derivative changes sign.
    """
    epsilon, rho = _at_least_0("epsilon", epsilon), _at_least_0("rho", rho)
    if rho == 0:
        return 0.0
    x = _bisect(lambda x: (1 + 2 * x) * rho - epsilon < math.log1p(1 / x), *_ORDERS)
    return _exp_up(_sum_up(x * (1 + x) * rho, -x * epsilon, -x * math.log1p(1 / x), -math.log1p(x)))


def zcdp_epsilon(*, rho: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 that [A] Proposition 4 gives a rho-zCDP mechanism at delta, rounded up.

    `zcdp_delta`, solved for epsilon at fixed x; the best x is where x^2 rho + log(1 + x) = log(1/delta).
    """
    rho, delta = _at_least_0("rho", rho), _probability("delta", delta)
    if rho == 0:
        return 0.0
    log = -math.log(delta)
    x = _bisect(lambda x: x * x * rho + math.log1p(x) < log, *_ORDERS)
    return max(0.0, _sum_up((1 + x) * rho, log / x, -math.log1p(x) / x, -math.log1p(1 / x)))


def zcdp_rho(*, epsilon: float, delta: float) -> float:
    """Return the largest rho that [A] Proposition 4 allows for (epsilon, delta)-DP, rounded down.

    `zcdp_delta`, solved for rho at fixed x. At the best x both (1 + 2x) rho = eps + log(1 + 1/x) and
    x^2 rho + log(1 + x) = log(1/delta) hold; eliminating rho gives one equation in x with one root.
    """
    epsilon, delta = _above_0("epsilon", epsilon), _probability("delta", delta)
    log = -math.log(delta)
    x = _bisect(lambda x: x * x / (1 + 2 * x) * (epsilon + math.log1p(1 / x)) + math.log1p(x) < log, *_ORDERS)
    return _down(-_sum_up(-epsilon, -math.log1p(1 / x), log / x, -math.log1p(x) / x) / (1 + x))


def zcdp_basic_epsilon(*, rho: float, delta: float) -> float:
    """Return the epsilon of [P] Theorem 2, rho + 2 sqrt(rho log(1/delta)), rounded up."""
    rho, delta = _at_least_0("rho", rho), _probability("delta", delta)
    return _sum_up(rho, 2 * math.sqrt(rho) * math.sqrt(-math.log(delta)))


def zcdp_basic_rho(*, epsilon: float, delta: float) -> float:
    """Return the rho at which [P] Theorem 2 gives epsilon, rounded down.

    sqrt(rho) = sqrt(log(1/delta) + eps) - sqrt(log(1/delta)), rearranged to avoid the difference.
    """
    epsilon, delta = _above_0("epsilon", epsilon), _probability("delta", delta)
    log = -math.log(delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
    return _down(root * root)


def pure_mu(*, epsilon: float) -> float:
    """Return the smallest mu such that every epsilon-DP mechanism is mu-GDP, 2 Phi^-1(e^eps / (1 + e^eps)), rounded up.

    The trade-off function of epsilon-DP is two straight lines, from (0, 1) and from (1, 0) to a kink on the diagonal at
    1/(1 + e^eps). G_mu has the same ends and, with this mu, passes through the kink. It is convex, so it lies below
    both lines and bounds every epsilon-DP mechanism. With a smaller mu it would pass above the kink.
    """
    epsilon = _above_0("epsilon", epsilon)
    return _bisect(lambda mu: _normal_logit(mu / 2) * (1 - 4 * _ROUNDING) >= epsilon, good=math.inf, bad=0.0)


def choice_mu(*, epsilon: float) -> float:
    """Return the smallest mu such that every exponential mechanism of epsilon is mu-GDP, rounded up.

    That is `pure_mu` of epsilon / 2. Between neighbours all log-likelihood ratios lie in some interval [t - eps, t]
    ("bounded range", Durfee and Rogers 2019), 0 <= t <= eps. The trade-off function is convex, runs from (0, 1) to
    (1, 0), and its slopes lie between -e^t and -e^(t - eps); so it is nowhere below the two straight lines of these
    slopes, which meet at (q, 1 - p) with p = e^t q and 1 - p = e^(t - eps) (1 - q). G_mu lies below both lines if it
    passes below that kink: mu >= Phi^-1(p) - Phi^-1(q). Now logit p - logit q = eps for every t. Of all intervals
    of that length in logits the one around 0 is the longest in normal quantiles: their derivative in logits is
    h(z) = Phi(z) Phi(-z) / phi(z) at z = Phi^-1(q), even in z and falling in abs(z). (h' < 0 for z > 0 says
    R(z) < 1 / (z + phi(z)/Phi(z)) of the Mills ratio R; Boyd's bound, R(z) <= pi / (2 z + sqrt((pi-2)^2 z^2 + 2 pi)),
    gives it.) So t = eps / 2 is the worst case, and there p = 1 - q = 1 / (1 + e^(-eps/2)).
    """
    return pure_mu(epsilon=_above_0("epsilon", epsilon) / 2)


def choice_epsilon(*, mu: float) -> float:
    """Return the largest epsilon at which `choice_mu` is at most mu, rounded down: 2 log(Phi(mu/2) / Phi(-mu/2))."""
    return 2 * _normal_logit(_above_0("mu", mu) / 2) * (1 - 16 * _ROUNDING)


def discovery_delta(*, sigma: float, threshold: int, rows: int) -> float:
    """Return the probability that discovery releases a value which only one person has, rounded up.

    A value is discovered if its count plus rounded Gaussian noise reaches the threshold t. A count c does so with
    probability g(c) = P(c + round(sigma z) >= t) = P(sigma z >= t - c - 1/2). The person's rows may be spread over
    several values that nobody else has. The probability is then at most the sum of g(c_i), where the c_i are at least 1
    and add up to at most `rows`. g is convex below t, so the sum is greatest at one of two extremes: all rows have the
    same value, or each row has a value of its own.
    """
    _above_0("sigma", sigma)
    if not 1 <= rows < threshold:
        raise PrivacyError(f"the threshold must be above {rows}, the rows of one person, not {threshold}")
    one_value = _tail((threshold - rows - 0.5) / sigma)
    own_values = math.nextafter(rows * _tail((threshold - 1.5) / sigma), math.inf)
    return min(1.0, max(one_value, own_values))


def discovery_threshold(*, sigma: float, delta: float, rows: int) -> int:
    """Return the least threshold at which `discovery_delta` is at most delta."""
    _above_0("sigma", sigma)
    delta = _probability("delta", delta)
    low, high = rows, rows + 1
    while discovery_delta(sigma=sigma, threshold=high, rows=rows) > delta:
        low, high = high, rows + 2 * (high - rows)
    while high - low > 1:
        middle = (low + high) // 2
        if discovery_delta(sigma=sigma, threshold=middle, rows=rows) <= delta:
            high = middle
        else:
            low = middle
    return high


def _tail(x: float) -> float:
    """Return the probability that a standard normal deviate is at least x >= 0, rounded up."""
    x = math.nextafter(x, 0.0)
    return _exp_up(_sum_up(math.log(_mills(x)), -math.log(_SQRT_2PI), -x * x / 2))


def _mills(x: float) -> float:
    """Return the Mills ratio Phi(-x)/phi(x) for x >= -9, good to `_ROUNDING`."""
    if x < 4:
        return _SQRT_2PI / 2 * math.erfc(x / math.sqrt(2)) * math.exp(x * x / 2)
    tail = 0.0  # Laplace's continued fraction 1/(x + 1/(x + 2/(x + ...))); 40 levels leave 1e-18 at x = 4
    for level in range(40, 0, -1):
        tail = level / (x + tail)
    return 1 / (x + tail)


def _mills_drop(center: float, mu: float) -> float:
    """Return R(center - mu/2) - R(center + mu/2) for the Mills ratio R, center >= 0, rounded up.

    For small mu the difference would cancel, so its Taylor series is used. It is 2 sum_{k odd} I_k (mu/2)^k, with the
    positive coefficients I_k = integral of t^k/k! exp(-t^2/2 - center t) over t > 0. By parts,
    k I_k = I_{k-2} - center I_{k-1} with I_0 = R and I_{-1} = 1. So I_{k+2} <= I_k/(k + 2), and a geometric series
    bounds everything after I_3.
    """
    if mu > 0.01:
        return _mills(center - mu / 2) * (1 + 2 * _ROUNDING) - _mills(center + mu / 2) * (1 - 2 * _ROUNDING)
    product = center * _mills(center) * (1 - 2 * _ROUNDING)
    first = 1 - product
    third = ((2 + center * center) * first - product) / 6
    return math.nextafter(mu * (first + mu * mu / 4 * third / (1 - mu * mu / 20)), 1.0)


def _normal_logit(x: float) -> float:
    """Return log(Phi(x)/Phi(-x)) for x > 0, to a relative 2 `_ROUNDING` at any scale.

    The odds are 1 + erf(x/sqrt 2)/Phi(-x); exp(-x^2/2) is factored out of both terms, so large odds do not overflow.
    """
    square = x * (x / 2)  # above every epsilon before it can reach inf
    return square + math.log1p(math.expm1(-square) + _SQRT_2PI * math.erf(x / math.sqrt(2)) / _mills(x))


def _sum_up(*terms: float) -> float:
    """Return the sum of terms that are each good to `_ROUNDING`, rounded up."""
    return sum(terms) + 2 * _ROUNDING * sum(map(abs, terms))


def _exp_up(log: float) -> float:
    """Return exp(log), rounded up but at most 1; a sum that overflowed to nan counts as 1."""
    return math.nextafter(math.exp(min(0.0, log + _ROUNDING)), 1.0)


def _down(budget: float) -> float:
    """Return a budget rounded down, but at least 0."""
    return max(0.0, math.nextafter(budget * (1 - 2 * _ROUNDING), 0.0))


def _bisect(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """Return the last float on the way from `good` to `bad` at which `holds` was true, or `good` itself.

    Non-negative floats sort like their bit patterns. Bisecting the patterns takes at most 63 steps at any scale.
    """
    low, high = _bits(good), _bits(bad)
    while abs(high - low) > 1:
        middle = (low + high) // 2
        if holds(_float(middle)):
            low = middle
        else:
            high = middle
    return _float(low)


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


def _float(bits: int) -> float:
    (value,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    return float(value)


def _above_0(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise PrivacyError(f"{name} must be finite and above 0, not {value!r}; values from 0.1 to 10 are usual")
    return float(value)


def _at_least_0(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise PrivacyError(f"{name} must be finite and at least 0, not {value!r}; 0 means that nothing is spent")
    return float(value)


def _probability(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise PrivacyError(f"{name} must lie between 0 and 1, not {value!r}; choose far below 1/people, such as 1e-9")
    return float(value)
