"""The first screen: may the page be published, what is guaranteed, how good is the table, and where is it worst."""

from __future__ import annotations

import math

import numpy as np

from chicle._html import Markup, Piece, cut, tag
from chicle._text import percent
from chicle.evaluation.result import Evaluation, Score
from chicle.reports import charts
from chicle.reports.facts import Facts

__all__ = ["headline", "verdict"]

_WORDS = (
    (0.9, "Very good", "nearly as good as a table can be"),
    (0.7, "Good", "most relations were learnt"),
    (0.4, "Fair", "about half of the relations were learnt"),
    (0.1, "Weak", "few relations were learnt"),
    (-math.inf, "Poor", "no better than a table of independent attributes"),
)


def headline(facts: Facts) -> Markup:
    """Return the banner, the cards and, if the real table was given, the errors between their baselines."""
    return tag("header", _banner(facts), tag("h1", tag("bdi", cut(facts.title, 200))), _cards(facts), _scales(facts))


# The best word for a table by its worst amount: the errors of its mean and SD beyond which the word is lower.
_CAPS = (("Good", 0.05, 0.1), ("Fair", 0.15, 0.3), ("Weak", 0.3, 0.75))


def verdict(evaluation: Evaluation) -> tuple[str, str]:
    """Return a word and a sentence: by pairs of attributes (`pairs_verdict`), lowered by the worst amount.

    If the mean of a column is off by more than 5 % or its SD by more than 10 %, the word is good at most; by 15 or
    30 %, fair; by 30 or 75 %, weak. Errors of at most twice those of the floor do not count.
    """
    word, why = pairs_verdict(evaluation)
    words = [known for _, known, _ in _WORDS]
    for cap, most_mean, most_sd in reversed(_CAPS):
        for one in evaluation.amounts:
            (mean, sd), (floor_mean, floor_sd) = one.errors(), one.errors("floor")
            bad = mean > max(most_mean, 2 * floor_mean) or sd > max(most_sd, 2 * floor_sd)
            if bad and not one.coded:
                said = f"{why}. The mean of {one.name!r} is off by {percent(mean, 0)}, its SD by {percent(sd, 0)}"
                return (cap if word in words and words.index(word) < words.index(cap) else word), said
    return word, why


def pairs_verdict(evaluation: Evaluation) -> tuple[str, str]:
    """Return a word and a sentence: how far the table came on the way from Independent to the floor.

    The share is (Independent - this table) / (Independent - floor), by the mean distance of pairs. 90 % and more is
    very good, 70 % good, 40 % fair, 10 % weak, less is poor. If attributes hardly depend on each other, Independent is
    close to the floor, and the table is compared with the floor alone.
    """
    size = min(2, len(evaluation.domain))
    score = evaluation[f"tvd_{size}"]
    what = "pairs of attributes are" if size == 2 else "the attribute is"
    if score.value is None or score.floor is None:
        return "Not known", "the distance to the real table could not be computed"
    off = f"{what} off by {score.value:.4f} on average (total variation distance, 0 to 1)"
    independent = score.independent
    if size == 1 or independent is None or independent <= 2 * score.floor:
        near = score.value <= 2 * max(score.floor, 1e-4)
        word = "Very good" if near else "Fair" if score.value <= 5 * max(score.floor, 1e-4) else "Weak"
        return word, f"{off}; sampling alone gives {score.floor:.4f}"
    way = (independent - score.value) / (independent - score.floor)
    word, meaning = next((word, meaning) for least, word, meaning in _WORDS if way >= least)
    share = f"{percent(max(min(way, 1), 0), 0)} of the way from Independent ({independent:.4f}) to the floor"
    return word, f"{off}, {share} ({score.floor:.4f}): {meaning}"


def _banner(facts: Facts) -> Markup:
    release = facts.release
    if facts.evaluation is not None or facts.real is not None:
        said = "NOT PRIVATE: this page shows exact comparisons with the real table. Do not publish it."
        return tag("p", said, class_="banner bad", role="alert")
    if release is not None and not release.ledger.protected:
        said = "NOT PRIVATE: the release was made with test noise, which protects nobody. Do not publish it."
        return tag("p", said, class_="banner bad", role="alert")
    said = "Safe to publish: this page was computed from the released noisy counts, without the real table."
    if not facts.drawn:
        said = (
            "Safe to publish if the synthetic table is: this page was computed from that table and the released noisy "
            "counts, without the real table."
        )
    caveat = "" if release is None else release.ledger.terms(facts.schema.max_records_per_person).caveat
    weak = [] if release is None else release.weakness
    if weak:
        said = f"WEAK: {'; '.join(weak)}. This page was computed from the released noisy counts alone."
    elif release is not None and not caveat and facts.schema.assumption is not None:
        said = f"Safe to publish IF this holds: {facts.schema.assumption}. {said.partition(': ')[2].capitalize()}"
    return tag("p", caveat or said, class_="banner bad" if weak else "banner good")


def _cards(facts: Facts) -> Markup:
    cards: list[Piece] = [_privacy_card(facts)]
    if facts.evaluation is not None:
        word, why = verdict(facts.evaluation)
        cards += [_card("Verdict", word, why, "wide"), _worst_card(facts, facts.evaluation)]
    else:
        cards += [_bounds_card(facts), _worst_bound_card(facts)]
    rows = f"{len(facts.synthetic):,} rows"
    real = "" if facts.evaluation is None else f", compared with {facts.evaluation.rows:,} real ones"
    count = len(facts.domain)
    cards.append(_card("Synthetic table", rows, f"{count} attribute{'s' if count > 1 else ''}{real}"))
    return tag("div", cards, class_="cards")


def _card(head: str, large: Piece, small: str, kind: str = "") -> Markup:
    said = f"{small[:1].upper()}{small[1:]}."
    return tag("section", tag("h2", head), tag("b", large), tag("p", said), class_=f"card {kind}".strip())


def _privacy_card(facts: Facts) -> Markup:
    if facts.release is None:
        return _card("Privacy", "not known", "no release was given: nothing is known about how this table was made")
    terms = facts.release.ledger.terms(facts.schema.max_records_per_person)
    promise: Piece = [terms.promise, tag("small", terms.condition)] if terms.condition else terms.promise
    return _card("Privacy", promise, cut(terms.detail, 300))


def _worst_card(facts: Facts, evaluation: Evaluation) -> Markup:
    size = min(2, len(facts.domain))
    errors = evaluation.errors[size]
    place = errors.worst(1)[0]
    baselines = f"floor {errors.floor[place]:.4f}, Independent {errors.independent[place]:.4f}"
    said = f"distance {errors.tvd[place]:.4f}; {baselines}"
    return _card("Worst pair" if size == 2 else "Worst attribute", _names(errors.cliques[place]), said)


def _bounds_card(facts: Facts) -> Markup:
    sure = f"{facts.sure} sure"
    singles = [bound.distance for clique, bound in facts.bounds.items() if len(clique) == 1 and bound.supported]
    pairs = [bound for clique, bound in facts.bounds.items() if len(clique) == 2]
    known = [bound.distance for bound in pairs if bound.supported]
    others = [bound.distance for bound in pairs if bound.known and not bound.supported]
    if not singles:
        return _card("What is certain", "nothing by itself", "all columns were combined with others", "wide")
    said = f"of the truth, half of them within {np.median(singles):.4f} (total variation distance, 0 to 1; each {sure})"
    if known:
        said += (
            f". {len(known):,} of {len(pairs):,} pairs were measured: half of them within {np.median(known):.4f}, "
            f"all within {max(known):.4f}"
        )
    elif pairs:
        said += ". No pair was measured"
    if others:
        said += f". The selection of tables bounds {len(others):,} other pairs: half within {np.median(others):.4f}"
    return _card("What is certain", f"attributes within {max(singles):.4f}", said, "wide")


def _worst_bound_card(facts: Facts) -> Markup | None:
    known = {clique: bound for clique, bound in facts.bounds.items() if bound.supported}
    if not known:
        return None
    size = max(len(clique) for clique in known)
    worst = max((clique for clique in known if len(clique) == size), key=lambda clique: known[clique].distance)
    head = "Least certain pair" if size == 2 else "Least certain attribute"
    buckets = ", in buckets" if known[worst].buckets else ""
    distance = known[worst].distance
    said = (
        f"within {distance:.4f} of the truth{buckets}"
        if distance < 1
        else "noise is too large to say anything about it"
    )
    return _card(head, _names(worst), said)


def _names(clique: tuple[str, ...]) -> Markup:
    return tag("span", [[" × " if i else None, tag("bdi", cut(name, 40))] for i, name in enumerate(clique)])


def _scales(facts: Facts) -> Markup | None:
    evaluation = facts.evaluation
    if evaluation is None:
        return None
    rows = [_scale(evaluation[f"tvd_{size}"], size) for size in evaluation.errors]
    same = facts.release is not None and facts.release.ledger.budget is not None
    budget = "at the same budget" if same else evaluation.budget
    legend = [
        tag("span", "this table", class_="key made"),
        tag("span", "floor: the real table resampled; sampling error alone", class_="key floor"),
        tag("span", f"Independent: no relation between attributes; {budget}", class_="key independent"),
    ]
    head = tag("h2", "Mean distance to the real table (0: equal; 1: nothing in common)")
    return tag("section", head, tag("table", rows, class_="scales"), tag("p", legend, class_="legend"))


def _scale(score: Score, size: int) -> Markup:
    if score.value is None:
        return tag("tr", tag("th", f"{size}-way"), tag("td", "not computed"))
    words = [f"this table {score.shown(score.value)}", f"floor {score.shown(score.floor)}"]
    words.append(f"Independent {score.shown(score.independent)}")
    said = tag("td", tag("b", score.shown(score.value)), f" floor {score.shown(score.floor)}", tag("br"), words[-1])
    return tag(
        "tr",
        tag("th", f"{size}-way"),
        tag("td", charts.scale(score.value, score.floor, score.independent, words)),
        said,
    )
