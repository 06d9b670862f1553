"""The answers to declared analyses: the only numbers on the page to be quoted as if they came from the real table."""

from __future__ import annotations

from chicle._html import Markup, cut, table, tag
from chicle.analyses import Coefficients
from chicle.releases.release import Release

__all__ = ["answers"]

_SAID = (
    "These analyses were declared before the fit and answered from the real table, with noise. Their intervals count "
    "the sampling of persons and the noise. Coefficients that are computed from the synthetic table have no valid "
    "interval. Widening is how much wider the noise makes an interval; 1 is not at all."
)


def answers(release: Release, confidence: float) -> Markup | None:
    """Return the section on declared analyses; None if there are none."""
    if not release.analyses:
        return None
    tables = [_answer(one, confidence) for one in release.analyses]
    return tag("section", tag("h2", "Answers"), tag("p", _SAID), tables, id="answers")


def _answer(one: Coefficients, confidence: float) -> list[Markup]:
    head, *rows = one.rows(confidence)
    named = [[tag("bdi", cut(name, 80)), *figures] for name, *figures in rows]
    return [tag("h3", cut(one.title, 300)), table(head, named)]
