"""The page: one file without scripts that fetches nothing; its content policy forbids both, whatever a label says."""

from __future__ import annotations

from importlib.resources import files

from chicle._html import Markup, cut, tag
from chicle.reports.answers import answers
from chicle.reports.attributes import attributes
from chicle.reports.facts import Facts
from chicle.reports.headline import headline
from chicle.reports.making import amounts, making, measured, reading, scores
from chicle.reports.pairs import bounded_pairs, compared_pairs
from chicle.reports.partitions import partitions
from chicle.reports.privacy import privacy
from chicle.reports.workload import workload_answers

__all__ = ["page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(facts: Facts) -> str:
    """Return the whole page."""
    release, evaluation = facts.release, facts.evaluation
    sections = [
        None if release is None else privacy(release),
        None if release is None else answers(release, facts.confidence),
        None if release is None else workload_answers(release, facts.confidence),
        None if evaluation is None else scores(evaluation),
        None if evaluation is None else amounts(evaluation),
        None if release is None or evaluation is not None else bounded_pairs(facts, release),
        None if evaluation is None else compared_pairs(facts, evaluation),
        partitions(facts),
        attributes(facts),
        None if release is None else measured(facts, release),
        making(facts),
        reading(facts),
    ]
    kept = [section for section in sections if section is not None]
    style = Markup(files("chicle.reports").joinpath("style.css").read_text(encoding="utf-8"))
    prefix = "" if facts.publishable else "NOT PRIVATE: "
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{prefix}{cut(facts.title, 200)}"),
        tag("style", style),
    ]
    body = tag("body", headline(facts), tag("main", kept))
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), body, lang='en')}\n"
