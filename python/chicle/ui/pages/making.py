"""Steps 4 and 5: the job while it runs, and what it made."""

from __future__ import annotations

from chicle._html import Markup, Piece, lines, table, tag
from chicle.privacy import Ledger
from chicle.privacy.describe import ledger_rows
from chicle.ui.job import Job
from chicle.ui.pages.layout import View, button
from chicle.ui.pictures import draw_trace
from chicle.ui.script import as_commands, as_python
from chicle.ui.session import Results

__all__ = ["DOWNLOADS", "outcome", "progress", "progress_page"]

DOWNLOADS = ("table", "release", "report", "dossier", "schema", "ledger", "commands", "python")
"""What can be downloaded of a run."""

_SAID = {
    "done": "Done.",
    "cancelled": "Cancelled. Nothing half written is left.",
    "failed": "It ended with an error. Nothing half written is left.",
}


def progress_page(view: View, message: str = "") -> str:
    """Return the page of the running job."""
    job = view.session.job
    if job is None:
        return view.page(
            "job", "Nothing is running", view.link("open", "Open a table", class_="button"), message=message
        )
    return view.page(
        "job",
        job.title,
        tag("div", progress(view, job), id="progress", class_="card", data_state=job.state),
        tag("p", role="status", id="step", class_="hidden"),
        tag("noscript", tag("p", view.link("job", "Look again"))),
        message=message,
    )


def progress(view: View, job: Job) -> list[Piece]:
    """Return how far a job is; the page asks for it again and again."""
    steps = [
        tag("li", step, class_="now" if job.state == "running" and i == len(job.steps) - 1 else "past")
        for i, step in enumerate(job.steps)
    ]
    bar = tag("progress", value=job.done, max=1, aria_label="share done") if job.state == "running" else None
    pieces: list[Piece] = [tag("ol", steps, class_="steps"), bar, draw_trace(job.trace)]
    if job.state == "running":
        ending = "Ending after this step …" if job.cancelling else f"{job.seconds:.0f} s"
        pieces.append(tag("p", ending, class_="soft"))
        pieces.append(
            view.form(
                "cancel",
                button(
                    "Cancel",
                    main=False,
                    disabled="disabled" if job.cancelling else None,
                    data_off="" if job.cancelling else None,
                ),
            )
        )
        return pieces
    pieces.append(tag("p", _SAID[job.state], class_="said"))
    if job.error:
        pieces.append(tag("p", job.error, class_="alert", role="alert"))
    if view.session.ledger is not None:
        pieces.append(tag("p", view.session.ledger.summary(), class_="soft"))
    if job.state == "done":
        pieces.append(view.link(job.then, "Go on", class_="button", id="then"))
    elif view.session.results and not view.session.results[-1].complete:
        pieces.append(tag("p", "What was paid for is kept in memory until this program ends."))
        pieces.append(view.form("again", button("Write the files again, at no cost")))
    else:
        pieces.append(view.link(job.back, "Back", class_="button"))
    return pieces


def outcome(view: View, number: int | None = None, message: str = "") -> str:
    """Return the page of what was made."""
    session = view.session
    if not session.results or session.table is None:
        return view.page("results", "There is nothing yet", view.link("open", "Open a table", class_="button"))
    made = next((one for one in session.results if one.number == number), session.results[-1])
    others = [
        view.link(f"results/{one.number}", f"run {one.number}", aria_current="page" if one is made else None)
        for one in session.results
    ]
    script = as_commands(session.table.given, session.schema_path, made, session.folder)
    python = as_python(session.table.given, session.schema_path, made, session.folder)
    return view.page(
        "results",
        "Your synthetic table",
        tag(
            "p",
            f"All files are in {session.results_folder}. The table, the release, the report, the dossier and the "
            "ledger may be published.",
            class_="lead",
        ),
        tag("p", others, class_="runs") if len(others) > 1 else None,
        tag(
            "div",
            [
                _download(view, made, *one)
                for one in (
                    ("table", "Synthetic table", made.table_path.name),
                    ("release", "Release", "draw more tables from it, at no cost"),
                    ("report", "Report", "one page that opens offline"),
                    ("dossier", "Dossier", "for a review board"),
                    ("schema", "Schema", "what you declared as public"),
                    ("ledger", "Ledger", "what was spent on what"),
                )
            ],
            class_="downloads",
        ),
        tag("div", tag("p", session.ledger.summary() if session.ledger is not None else ""), class_="card"),
        view.link("budget", "Make another table with what is left", class_="button quiet"),
        tag("h2", "The report"),
        tag("iframe", src=f"{view.base}/report/{made.number}", title="Report", sandbox="", loading="lazy"),
        tag("h2", "What the page did, as a script"),
        tag(
            "p",
            "The same way without the page. Running it spends a new budget, except for ",
            tag("code", "sample"),
            ".",
        ),
        _code("commands", "Commands", script, view, made),
        _code("python", "Python", python, view, made),
        _releases(session.ledger),
        message=message,
    )


def _releases(ledger: Ledger | None) -> Markup | None:
    rows = [] if ledger is None else ledger_rows(ledger)
    if not rows:
        return None
    return tag("details", tag("summary", "Every release, as the ledger has it"), table(rows[0], rows[1:], 2))


def _download(view: View, made: Results, what: str, name: str, words: str) -> Markup:
    return view.link(
        f"download/{made.number}/{what}", tag("b", name), tag("small", words), class_="download", download="download"
    )


def _code(what: str, name: str, code: str, view: View, made: Results) -> Markup:
    link = view.link(f"download/{made.number}/{what}", "Download", download="download")
    return tag("details", tag("summary", name), tag("pre", tag("code", lines(code))), tag("p", link), open="open")
