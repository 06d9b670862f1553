"""Requests to the session, and pages back. Forms are answered by a redirect, so that a reload repeats nothing.

Errors are shown on the page that the form is on, in one line and without private values. Handlers are plain functions,
which Starlette runs in threads: a page stays quick while a job works.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from chicle._html import text
from chicle.errors import ChicleError, ParameterError, SchemaError, explained
from chicle.schema.files import read_value
from chicle.ui.declarations import declaration_of
from chicle.ui.guard import Guard
from chicle.ui.pages.budget import budget, spend
from chicle.ui.pages.layout import View
from chicle.ui.pages.making import DOWNLOADS, outcome, progress, progress_page
from chicle.ui.pages.opening import opening
from chicle.ui.pages.review import first_open, review
from chicle.ui.script import as_commands, as_python
from chicle.ui.session import EPSILONS, Choice, Results, Session

__all__ = ["make_app"]

_MOST_BYTES = 2**22  # of a form; uploads are streamed
_STATIC = {"ui.css": "text/css", "ui.js": "text/javascript", "icon.svg": "image/svg+xml"}

Form: TypeAlias = Mapping[str, str]


def make_app(session: Session, token: str, hosts: Collection[str], once: str | None = None) -> ASGIApp:
    """Return the whole page as an ASGI application.

    Parameters
    ----------
    session
        What it shows.
    token
        What every address begins with.
    hosts
        The names and port under which it is reached.
    once
        A token that leads to the page once.
    """
    pages = _Pages(View(session, f"/{token}"))
    routes = [
        Route("/", pages.begin),
        Route("/static/{name}", pages.static),
        Route("/open", pages.show_open),
        Route("/open", pages.open, methods=["POST"]),
        Route("/upload", pages.upload, methods=["POST"]),
        Route("/review", pages.show_review),
        Route("/review/{index:int}", pages.show_review),
        Route("/review/{index:int}", pages.declare, methods=["POST"]),
        Route("/review/{index:int}/text", pages.declare_text, methods=["POST"]),
        Route("/persons", pages.persons, methods=["POST"]),
        Route("/save", pages.save, methods=["POST"]),
        Route("/budget", pages.show_budget),
        Route("/budget", pages.choose, methods=["POST"]),
        Route("/spend", pages.show_spend),
        Route("/run", pages.run, methods=["POST"]),
        Route("/job", pages.show_job),
        Route("/job/state", pages.state),
        Route("/cancel", pages.cancel, methods=["POST"]),
        Route("/again", pages.again, methods=["POST"]),
        Route("/results", pages.show_results),
        Route("/results/{number:int}", pages.show_results),
        Route("/report/{number:int}", pages.report),
        Route("/download/{number:int}/{what}", pages.download),
    ]
    app = Starlette(routes=routes, exception_handlers={Exception: _unforeseen})
    return Guard(app, token, hosts, once)


class _Pages:
    """The handlers of requests."""

    def __init__(self, view: View) -> None:
        self._view, self._session = view, view.session

    def begin(self, _: Request) -> Response:
        session = self._session
        if session.running:
            return self._to("job")
        if session.results:
            return self._to("results")
        return self._to("open" if session.table is None else "review")

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.", 404)
        return Response(files("chicle.ui").joinpath("static", name).read_bytes(), media_type=_STATIC[name])

    # Step 1.

    def show_open(self, _: Request) -> Response:
        return HTMLResponse(opening(self._view))

    async def open(self, request: Request) -> Response:
        form = await _form(request)
        given = form.get("given", "").strip()

        def work() -> Response:
            self._session.open(given)
            return self._to("job")

        return await self._tried(work, lambda message: opening(self._view, given, message))

    async def upload(self, request: Request) -> Response:
        """Take a file that was dropped on the page; one that did not arrive whole is removed."""
        beside: Path | None = None
        try:
            size = int(request.headers.get("x-size", "-1"))
            place = self._session.upload(unquote(request.headers.get("x-name", "")))
            beside = place.with_name(f".{place.name}.part")
            received = 0
            with beside.open("wb") as file:
                async for chunk in request.stream():
                    received += len(chunk)
                    await run_in_threadpool(file.write, chunk)
            if received != size:
                raise ParameterError("the file did not arrive whole; drop it again")
            beside.replace(place)
            await run_in_threadpool(self._session.open, str(place))
        except ClientDisconnect:
            return PlainTextResponse("The browser went away.", 400)
        except OSError as error:
            message = f"the file cannot be kept: {os.strerror(error.errno or 0)}; make room, or open it by its path"
            return PlainTextResponse(message, 507)
        except (ChicleError, ValueError) as error:
            return PlainTextResponse(explained(error), 422)
        finally:
            if beside is not None and beside.exists():
                beside.unlink()
        return PlainTextResponse(f"{self._view.base}/job")

    # Step 2.

    def show_review(self, request: Request) -> Response:
        table = self._session.table
        if table is None:
            return self._to("open")
        if "index" not in request.path_params:
            return self._to(f"review/{first_open(table)}")
        index = request.path_params["index"]
        if index >= len(table.schema.columns):
            return self._to("review")
        return HTMLResponse(review(self._view, index, kind=request.query_params.get("type")))

    async def declare(self, request: Request) -> Response:
        form = await _form(request)

        def read(index: int) -> Mapping[str, Any]:
            column = list(self._opened().columns.values())[index]
            return declaration_of(form, column.to_dict())

        return await self._declared(request, form, read)

    async def declare_text(self, request: Request) -> Response:
        form = await _form(request)

        def read(_: int) -> Mapping[str, Any]:
            declaration = read_value(form.get("text", ""))
            if not isinstance(declaration, Mapping):
                raise SchemaError("a declaration is a mapping such as {type: integer, min: 0, max: 99}")
            return declaration

        return await self._declared(request, None, read)

    async def _declared(
        self, request: Request, form: Form | None, read: Callable[[int], Mapping[str, Any]]
    ) -> Response:
        index = request.path_params["index"]

        def work() -> Response:
            if index >= len(self._opened().columns):
                raise SchemaError("there is no such column; another tab may have opened another table")
            self._session.declare(index, read(index))
            return self._next_column()

        def again(message: str) -> str:
            if self._session.table is None or index >= len(self._session.table.schema.columns):
                return opening(self._view, message=message)
            kind = None if form is None else form.get("type")
            return review(self._view, index, kind=kind, given=form, message=message)

        return await self._tried(work, again)

    def _next_column(self) -> Response:
        table = self._session.table
        return self._to("review" if table is None else f"review/{first_open(table)}")

    async def persons(self, request: Request) -> Response:
        form = await _form(request)

        def work() -> Response:
            self._session.persons(form.get("person") or None, _whole("rows of a person", form.get("most", "1")))
            return self._next_column()

        return await self._tried(work, self._again_review)

    async def save(self, _: Request) -> Response:
        def work() -> Response:
            self._session.save_schema()
            return self._to("job")

        return await self._tried(work, self._again_review)

    def _again_review(self, message: str) -> str:
        table = self._session.table
        return (
            opening(self._view, message=message)
            if table is None
            else review(self._view, first_open(table), message=message)
        )

    def _opened(self) -> Any:  # noqa: ANN401 - a schema
        if self._session.table is None:
            raise ParameterError("open a table first")
        return self._session.table.schema

    # Steps 3 and 4.

    def show_budget(self, _: Request) -> Response:
        if self._session.table is None or not self._session.table.saved:
            return self._to("review")
        return HTMLResponse(budget(self._view))

    async def choose(self, request: Request) -> Response:
        form = await _form(request)

        def work() -> Response:
            at = _whole("epsilon", form.get("at", "0"))
            if not 0 <= at < len(EPSILONS):
                raise ParameterError("move the slider to one of its places")
            then = form.get("then", "spend")
            epsilon = EPSILONS[at]
            total = _number("the epsilon of the table", form.get("total", ""))
            self._session.choose(
                Choice(
                    epsilon=epsilon if then == "spend" else min(epsilon, total),
                    total=total,
                    delta=_number("delta", form.get("delta", "")),
                    records=_whole("the number of rows", form.get("records", "")),
                    mechanism=form.get("mechanism", ""),
                    ending=form.get("ending", ""),
                )
            )
            return self._to("spend" if then == "spend" else "budget")

        return await self._tried(work, lambda message: budget(self._view, message))

    def show_spend(self, _: Request) -> Response:
        if self._session.table is None or not self._session.table.saved:
            return self._to("review")
        return HTMLResponse(spend(self._view))

    async def run(self, request: Request) -> Response:
        form = await _form(request)

        def work() -> Response:
            self._session.run(form.get("permit", ""))
            return self._to("job")

        return await self._tried(work, lambda message: spend(self._view, message))

    def show_job(self, _: Request) -> Response:
        return HTMLResponse(progress_page(self._view))

    def state(self, _: Request) -> Response:
        job = self._session.job
        if job is None:
            return PlainTextResponse("", 404)
        state = job.state
        return HTMLResponse(text(progress(self._view, job)), headers={"X-State": state})

    async def cancel(self, _: Request) -> Response:
        self._session.cancel()
        return self._to("job")

    async def again(self, _: Request) -> Response:
        def work() -> Response:
            self._session.write_again()
            return self._to("job")

        return await self._tried(work, lambda message: progress_page(self._view, message))

    # Step 5.

    def show_results(self, request: Request) -> Response:
        return HTMLResponse(outcome(self._view, request.path_params.get("number")))

    def report(self, request: Request) -> Response:
        made = self._made(request)
        if made is None or not made.report_path.exists():
            return PlainTextResponse("There is no report of this run.", 404)
        return FileResponse(made.report_path, media_type="text/html")

    def download(self, request: Request) -> Response:
        made, what = self._made(request), request.path_params["what"]
        if made is None or what not in DOWNLOADS:
            return PlainTextResponse("There is no such file.", 404)
        session, table = self._session, self._session.table
        paths = {
            "table": made.table_path,
            "release": made.release_path,
            "report": made.report_path,
            "dossier": made.dossier_path,
            "schema": session.schema_path,
            "ledger": session.ledger_path,
        }
        if what not in paths:
            write = as_commands if what == "commands" else as_python
            given = "" if table is None else table.given
            code = write(given, session.schema_path, made, session.folder)
            name = f"what-the-page-did.{'sh' if what == 'commands' else 'py'}"
            return PlainTextResponse(code, headers={"Content-Disposition": f'attachment; filename="{name}"'})
        if not paths[what].exists():
            return PlainTextResponse("This file is no longer there.", 404)
        return FileResponse(paths[what], filename=paths[what].name, media_type="application/octet-stream")

    def _made(self, request: Request) -> Results | None:
        number = request.path_params["number"]
        return next((made for made in self._session.results if made.number == number), None)

    def _to(self, where: str) -> Response:
        return RedirectResponse(f"{self._view.base}/{where}", 303)

    async def _tried(self, work: Callable[[], Response], again: Callable[[str], str]) -> Response:
        """Do what a form asks; if that is wrong, show its page again, with the message."""
        try:
            return await run_in_threadpool(work)
        except (ChicleError, MemoryError, OSError) as error:
            return HTMLResponse(await run_in_threadpool(again, explained(error)), 422)


async def _form(request: Request) -> Form:
    """Return the fields of a form; values never stand in the address."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ParameterError("this form is too large")
    return dict(parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True))


def _whole(name: str, given: str) -> int:
    try:
        return int(given.replace(",", ""))
    except ValueError:
        raise ParameterError(f"{name} must be a whole number") from None


def _number(name: str, given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ParameterError(f"{name} must be a number, such as 1 or 1e-9") from None


def _unforeseen(_: Request, error: Exception) -> Response:
    """Answer an error that nobody expected, without what it says: that may be private."""
    return PlainTextResponse(explained(error), 500)
