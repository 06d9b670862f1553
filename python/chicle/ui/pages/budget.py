"""Steps 3 and 4: what a budget buys, and the one question before it is spent."""

from __future__ import annotations

from dataclasses import asdict

from chicle._html import Markup, Piece, table, tag
from chicle._text import percent
from chicle.ui.pages.layout import View, button, field
from chicle.ui.pictures import Offer, draw_offers
from chicle.ui.session import EPSILONS, MECHANISMS

__all__ = ["budget", "spend"]

_MEANINGS = {
    "prism": "the default: the best on most tables",
    "privsyn": "the published system",
    "aim": "measures in rounds what the table gets wrong",
    "mst": "one tree of pairs",
    "independent": "single columns only, no dependence",
}


def budget(view: View, message: str = "") -> str:
    """Return the page that shows what each epsilon buys."""
    session = view.session
    offers, choice = session.offers(), session.choice
    at = EPSILONS.index(choice.epsilon) if choice.epsilon in EPSILONS else EPSILONS.index(1.0)
    spent, total = session.balance()
    fixed = "readonly" if session.ledger is not None else None
    slider = tag(
        "input",
        type="range",
        name="at",
        id="epsilon",
        min=0,
        max=len(EPSILONS) - 1,
        step=1,
        value=at,
        aria_describedby="buys",
    )
    return view.page(
        "budget",
        "What does a budget buy?",
        tag(
            "p",
            "Epsilon is the price in privacy: smaller protects better, larger is more accurate. 1 is common; above 5 "
            "the promise is weak. These are expected errors from the schema alone; no data was counted for them.",
            class_="lead",
        ),
        view.form(
            "budget",
            tag(
                "div",
                field(["Epsilon of this run ", tag("output", f"{EPSILONS[at]:g}", id="shown")], slider),
                tag(
                    "div", [_words(i, offer, i == at) for i, offer in enumerate(offers)], id="buys", aria_live="polite"
                ),
                draw_offers(offers),
                _legend(),
                class_="card",
            ),
            tag(
                "details",
                tag("summary", "All epsilons in numbers"),
                table(
                    ("epsilon", "noise of a count, up to", "error of single columns", "error of pairs"),
                    [_row(offer) for offer in offers],
                ),
            ),
            tag(
                "details",
                tag("summary", "More choices"),
                tag(
                    "div",
                    field(
                        "Epsilon that this table may cost in all",
                        tag("input", name="total", value=f"{choice.total:g}", inputmode="decimal", readonly=fixed),
                        "The ledger holds it. Once something is spent it is fixed."
                        if fixed is None
                        else "Fixed: the ledger of this table was opened with it.",
                    ),
                    field(
                        "Delta",
                        tag("input", name="delta", value=f"{choice.delta:g}", readonly=fixed),
                        "Well below 1 / number of people.",
                    ),
                    field(
                        "About how many rows? A public guess",
                        tag("input", name="records", value=choice.records, inputmode="numeric"),
                        "Only for the errors shown here; the real number is private.",
                    ),
                    field(
                        "Mechanism",
                        tag(
                            "select",
                            [
                                tag(
                                    "option",
                                    f"{name}: {_MEANINGS[name]}",
                                    value=name,
                                    selected="selected" if name == choice.mechanism else None,
                                )
                                for name in MECHANISMS
                            ],
                            name="mechanism",
                        ),
                    ),
                    field(
                        "File of the synthetic table",
                        tag(
                            "select",
                            [
                                tag(
                                    "option",
                                    ending,
                                    value=ending,
                                    selected="selected" if ending == choice.ending else None,
                                )
                                for ending in (".csv", ".csv.gz", ".parquet", ".arrow")
                            ],
                            name="ending",
                        ),
                    ),
                    class_="fields",
                ),
                button("Show what this buys", main=False, name="then", value="budget"),
                open="open" if choice.records == 100_000 else None,
            ),
            tag("p", _spent(spent, total), class_="soft"),
            button("Go on", name="then", value="spend"),
        ),
        message=message,
    )


def spend(view: View, message: str = "") -> str:
    """Return the page that asks once before it spends."""
    session = view.session
    choice = session.choice
    offer = session.offer(choice.epsilon)
    before, total = session.balance()
    if not offer.affordable:
        left: Piece = tag(
            "p",
            f"This run of epsilon {choice.epsilon:g} costs more than the ledger has left. Nothing was spent. ",
            "Choose less, or go on with what you have: more tables from a release cost nothing.",
            class_="alert",
        )
        return view.page(
            "job",
            "Not enough is left",
            left,
            _balance(before, before, total),
            view.link("budget", "Choose another budget", class_="button"),
            message=message,
        )
    after, _ = session.balance(offer.rho)
    return view.page(
        "job",
        "Spend it?",
        tag(
            "p",
            "This releases noisy counts of the private table and makes a synthetic table of them. What is spent "
            "stays spent: it can be neither refunded nor repeated with the same noise.",
            class_="lead",
        ),
        tag(
            "div",
            _balance(before, after, total),
            tag(
                "dl",
                [
                    [tag("dt", name), tag("dd", said)]
                    for name, said in (
                        ("Table", session.table.given if session.table is not None else ""),
                        ("Mechanism", choice.mechanism),
                        ("Files", f"{session.results_folder.name}/ in {session.folder}"),
                    )
                ],
            ),
            view.form(
                "run",
                tag("input", type="hidden", name="permit", value=session.permit()),
                button(f"Spend epsilon {choice.epsilon:g} and make the table"),
                view.link("budget", "Not yet", class_="button quiet"),
                class_="row",
            ),
            class_="card",
        ),
        message=message,
    )


def _balance(before: float, after: float, total: float) -> Markup:
    """Draw the ledger before and after."""
    wide = 560
    now, then = (min(part / total, 1.0) * wide for part in (before, after))
    words = f"Spent: epsilon {before:.3g} of {total:g} before, {after:.3g} after"
    picture = tag(
        "svg",
        tag("title", words),
        tag("rect", x=0, y=0, width=wide, height=18, rx=9, class_="all"),
        tag("rect", x=0, y=0, width=f"{then:.1f}", height=18, rx=9, class_="then") if then > now else None,
        tag("rect", x=0, y=0, width=f"{now:.1f}", height=18, rx=9, class_="now") if now else None,
        viewBox=f"0 0 {wide} 18",
        role="img",
        class_="balance",
    )
    cells = (("before", before), ("after", after))
    figures = [
        tag("div", tag("small", f"ledger {name}"), tag("b", f"{part:.3g}"), f" of {total:g}") for name, part in cells
    ]
    return tag("div", tag("div", figures, class_="figures"), picture)


def _spent(spent: float, total: float) -> str:
    if not spent:
        return f"Ledger: nothing is spent yet of epsilon {total:g}."
    return f"Ledger: epsilon {spent:.3g} of {total:g} is spent."


def _words(i: int, offer: Offer, shown: bool) -> Markup:
    said = []
    if offer.columns is not None:
        said.append(f"In single columns, noise moves {_span(offer.columns)} of the rows to another value.")
    if offer.pairs is not None:
        said.append(f"In pairs of columns it would move {_span(offer.pairs)}, if all pairs were measured alike.")
    if not offer.affordable:
        said.append("The ledger does not have that much left.")
    return tag(
        "p",
        " ".join(said) or "How large the errors are is up to the data.",
        class_="buys",
        data_at=i,
        data_epsilon=f"{offer.epsilon:g}",
        hidden=None if shown else "hidden",
    )


def _row(offer: Offer) -> list[str]:
    fields = asdict(offer)
    return [
        f"{offer.epsilon:g}",
        "by the data" if offer.sigma is None else f"± {offer.sigma:,.3g} rows",
        *("by the data" if fields[kind] is None else _span(fields[kind]) for kind in ("columns", "pairs")),
    ]


def _span(band: tuple[float, float]) -> str:
    low, high = (percent(part, 2 if part < 0.001 else 1 if part < 0.1 else 0) for part in band)
    return high if low == high else f"{low} to {high}"


def _legend() -> Markup:
    return tag(
        "p",
        tag("span", "single columns", class_="key columns"),
        tag("span", "pairs of columns", class_="key pairs"),
        tag("span", "share of rows that noise moves, against epsilon"),
        class_="legend",
    )
