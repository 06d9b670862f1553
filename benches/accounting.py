"""From (epsilon, delta) to a budget: chicle's three conversions, and dp_accounting where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import get_args

from side_by_side import Goal, Part, Row, Settings, Table, check, in_turns

from chicle import Budget
from chicle.privacy import Accounting

if find_spec("dp_accounting"):
    from dp_accounting import get_sigma_gaussian

    PEER: Callable[[float, float], float] | None = get_sigma_gaussian
else:
    PEER = None

CALLS = 100

# rho by (epsilon, delta), to the digits known: exact Gaussian DP, [A] Proposition 4, [P] Theorem 2.
EXPECTED: dict[tuple[float, float], dict[Accounting, str]] = {
    (0.2, 1e-9): {"gdp": "0.00075", "zcdp": "0.00068", "zcdp-basic": "0.00048"},
    (1, 1e-9): {"gdp": "0.01656", "zcdp": "0.01497", "zcdp-basic": "0.01178"},
    (5, 1e-9): {"gdp": "0.3405", "zcdp": "0.3117", "zcdp-basic": "0.2699"},
    (1, 1e-5): {"gdp": "0.0359", "zcdp": "0.0306", "zcdp-basic": "0.0208"},
}


def repeated(call: Callable[[], float]) -> float:
    """One call takes too little time to measure."""
    for _ in range(CALLS - 1):
        call()
    return call()


def budget_rho(epsilon: float, delta: float, accounting: Accounting) -> float:
    return Budget(epsilon=epsilon, delta=delta, accounting=accounting).rho


def peer_rho(epsilon: float, delta: float, sigma: Callable[[float, float], float]) -> float:
    return 0.5 / sigma(epsilon, delta) ** 2


def calibration(settings: Settings) -> Part:
    measured: list[Row] = []
    for (epsilon, delta), expected in EXPECTED.items():
        calls = {f"chicle Budget, {name}": partial(budget_rho, epsilon, delta, name) for name in get_args(Accounting)}
        calls |= {"dp_accounting get_sigma_gaussian": partial(peer_rho, epsilon, delta, PEER)} if PEER else {}
        timed = in_turns({name: partial(repeated, call) for name, call in calls.items()}, settings.rounds)
        for name, known in expected.items():
            rho = timed[f"chicle Budget, {name}"].answer
            places = len(known.partition(".")[2])
            check(f"{rho:.{places}f}" == known, f"rho at ({epsilon:g}, {delta:g}) by {name} is {rho:.6g}, not {known}")
        measured += [
            {
                "method": name,
                "epsilon": epsilon,
                "delta": f"{delta:g}",
                "rho": result.answer,
                "microseconds": result.seconds / CALLS * 1e6,
            }
            for name, result in timed.items()
        ]
    worst = max(float(row["microseconds"]) for row in measured if str(row["method"]).startswith("chicle"))
    goal = Goal("Budget(epsilon, delta): milliseconds at worst", 5, worst / 1e3, smaller_is_better=True)
    return Part([Table("Calibration", measured)], [goal])


ACCOUNTING = (calibration,)
