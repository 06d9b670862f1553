"""Who may talk to the page: only the browser that was given its address, on this machine.

Every request must come from this machine, name this server as its host (so that no other name can be pointed here),
carry the token in its path, and come from the page itself if it says where it comes from; a request that changes
something must say so. The token is random, so another user or another page of the browser cannot guess it; a cookie
would be sent to every other server on this machine as well, and a header could not carry downloads.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "new_token"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # without it, a browser does not say that a form is from this page
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def new_token() -> str:
    """Return a token of 256 random bits."""
    return secrets.token_urlsafe(32)


class Guard:
    """Refuse what does not come from the page; give the rest to the app, without the token in its path.

    Parameters
    ----------
    app
        What is guarded.
    token
        What every path must begin with.
    hosts
        The names and port under which the page is reached, such as ``127.0.0.1:8123``.
    once
        A token that leads to the page once: what a browser is started with can be read by other users of the machine.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str], once: str | None = None) -> None:
        self._app, self._token, self._hosts, self._once = app, token, frozenset(hosts), once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        first = self._once is not None and scope["type"] == "http" and scope["path"] == f"/{self._once}/"
        refusal = self._refusal(scope, self._once if first and self._once is not None else self._token)
        if refusal is not None:
            await PlainTextResponse(refusal, 403, headers=_HEADERS)(scope, receive, send)
            return
        if first:
            self._once = None
            await RedirectResponse(f"/{self._token}/", 303, headers=_HEADERS)(scope, receive, send)
            return
        rest = scope["path"][len(self._token) + 1 :]
        framed = rest.startswith("/report/")

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers["Content-Security-Policy"] = _REPORT_POLICY if framed else _POLICY
            await send(message)

        await self._app({**scope, "path": rest or "/", "raw_path": None, "root_path": ""}, receive, guarded)

    def _refusal(self, scope: Scope, token: str) -> str | None:
        """Return why a request is refused; None if it is not."""
        headers = Headers(scope=scope)
        client, origin = scope.get("client"), headers.get("origin")
        given = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        origins = {f"http://{host}" for host in self._hosts}
        changes = scope["type"] != "http" or scope["method"] not in ("GET", "HEAD")
        rules = (
            (scope["type"] == "http", "This page speaks HTTP only."),
            (client is not None and _is_here(client[0]), "This page is for the machine that it runs on."),
            (headers.get("host") in self._hosts, "This page has another address."),
            (
                secrets.compare_digest(given.encode(), token.encode()),
                "This page needs the address that `chicle ui` printed, with its token.",
            ),
            (origin in origins or (origin is None and not changes), "This request comes from another page."),
            (
                headers.get("sec-fetch-site", "none") in ("same-origin", "none"),
                "This request comes from another page.",
            ),
        )
        return next((refusal for holds, refusal in rules if not holds), None)


def _is_here(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
