"""Whoever is not the page itself is refused, before anything is looked up or done."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from chicle.errors import ParameterError
from chicle.ui.app import make_app
from chicle.ui.guard import new_token
from chicle.ui.server import serve
from chicle.ui.session import Session
from tests.ui.conftest import HOST, TOKEN

PATHS = ["/", "/open", "/review", "/job", "/job/state", "/results", "/report/1", "/download/1/table", "/static/ui.css"]


def asking(session: Session, client: str = "127.0.0.1") -> TestClient:
    app = make_app(session, TOKEN, [HOST])
    return TestClient(app, base_url=f"http://{HOST}", client=(client, 5000), follow_redirects=False)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "/wrong", f"/{TOKEN}x", f"/{TOKEN[:-1]}", f"/{TOKEN.upper()}", f"//{TOKEN}"])
def test_without_the_token(session: Session, path: str, token: str) -> None:
    answer = asking(session).get(f"http://{HOST}{token}{path}")
    assert answer.status_code == 403
    assert "<" not in answer.text


def test_a_token_that_leads_to_the_page_once(session: Session) -> None:
    """The browser is started with it, where other users of the machine can read it."""
    app = make_app(session, TOKEN, [HOST], "once")
    client = TestClient(app, base_url=f"http://{HOST}", client=("127.0.0.1", 5000), follow_redirects=False)
    assert client.get("/once/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/once/open").status_code == 403, "it opens nothing else"
    answer = client.get("/once/")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/{TOKEN}/")
    assert client.get("/once/").status_code == 403


@pytest.mark.parametrize("path", PATHS)
def test_with_the_token(session: Session, path: str) -> None:
    assert asking(session).get(f"/{TOKEN}{path}").status_code != 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:9999"},
        {"Host": "localhost.evil.example:8123"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": f"https://{HOST}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_from_another_page_or_by_another_name(session: Session, headers: Mapping[str, str]) -> None:
    assert asking(session).get(f"/{TOKEN}/open", headers=headers).status_code == 403
    given = {"Origin": f"http://{HOST}", **headers}
    assert asking(session).post(f"/{TOKEN}/open", headers=given, data={"given": "people.csv"}).status_code == 403
    assert session.job is None


@pytest.mark.parametrize("path", ["/open", "/upload", "/run", "/save", "/cancel", "/budget", "/persons", "/review/0"])
def test_a_change_must_say_where_it_comes_from(session: Session, path: str) -> None:
    assert asking(session).post(f"/{TOKEN}{path}", data={"given": "people.csv"}).status_code == 403
    assert session.job is None


@pytest.mark.parametrize("client", ["192.168.1.7", "10.0.0.1", "2001:db8::1", "unix"])
def test_from_another_machine(session: Session, client: str) -> None:
    assert asking(session, client).get(f"/{TOKEN}/open").status_code == 403


@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.8.8", "::1"])
def test_from_this_machine(session: Session, client: str) -> None:
    assert asking(session, client).get(f"/{TOKEN}/open").status_code == 200


def test_a_websocket_is_refused(session: Session) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    app = make_app(session, TOKEN, [HOST])
    scope = {"type": "websocket", "path": f"/{TOKEN}/", "headers": [(b"host", HOST.encode())], "client": ("::1", 1)}

    async def ask() -> None:
        await app(scope, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 403
    assert not any("accept" in message["type"] for message in sent)


def test_what_pages_may_do(session: Session) -> None:
    """No page may load or send anything elsewhere, be framed by another, or be kept by the browser."""
    answer = asking(session).get(f"/{TOKEN}/open")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert not any("http:" in part or "https:" in part for part in policy.split())
    for word in ("src=", "href=", "action="):
        for address in answer.text.split(word)[1:]:
            assert address.startswith((f'"/{TOKEN}/', '"#main"')), address[:40]


def test_tokens_are_long_and_differ() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 43 for token in tokens)


def test_a_port_that_is_taken(session: Session) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ParameterError, match="choose another with --port"):
            serve(session, port=taken.getsockname()[1], browser=False, say=lambda _: None)
