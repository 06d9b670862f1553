"""What a budget means for one person: what an attacker may come to believe, and how often a test can be right."""

from __future__ import annotations

import math
from statistics import NormalDist

from chicle._text import percent
from chicle.dossier.document import Block, Table
from chicle.privacy.budget import Budget
from chicle.privacy.strength import in_words

__all__ = ["meaning"]

_PRIORS = (0.001, 0.01, 0.1, 0.5)
_FALSE = (0.01, 0.05, 0.1)
_AT_DELTA = 1e-9


def meaning(budget: Budget) -> list[Block]:
    """Return a budget in words, in odds and as the power of a test.

    Examples
    --------
    >>> blocks = meaning(Budget(epsilon=1, delta=1e-9))
    >>> blocks[1].rows[2]
    ['10.0 %', '23.2 %', '3.9 %']
    """
    epsilon = budget.epsilon if budget.epsilon is not None else budget.epsilon_at(_AT_DELTA + (budget.discovery or 0.0))
    factor = math.exp(min(epsilon, 700.0))
    beliefs = [[percent(p), percent(_after(p, factor)), percent(_after(p, 1 / factor))] for p in _PRIORS]
    mu = math.sqrt(2 * budget.rho)
    normal = NormalDist()
    tests = [[percent(a), percent(1 - normal.cdf(normal.inv_cdf(1 - a) - mu))] for a in _FALSE]
    blocks: list[Block] = [
        f"In words: {in_words(budget)}. This holds whatever else the attacker knows.",
        Table(["what an attacker believes before", "at most after", "at least after"], beliefs, 0),
    ]
    if budget.accounting == "gdp":
        blocks += [
            (
                "As a test: somebody who knows all other rows tries to tell from the release whether one person's rows "
                "are in the table. Whoever is wrong about absent persons as often as the left column says finds "
                f"present ones no more often than the right one does (mu = {mu:.4g} of Gaussian DP)."
            ),
            Table(["wrong about absent persons", "right about present persons, at most"], tests, 0),
        ]
    return blocks


def _after(belief: float, factor: float) -> float:
    """Return a belief whose odds were multiplied by a factor."""
    return belief * factor / (1 - belief + belief * factor)
