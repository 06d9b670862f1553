"""Run the page until Ctrl-C: on the loopback address alone, with a new token each time, and no log of requests."""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from chicle.errors import ParameterError
from chicle.ui.app import make_app
from chicle.ui.guard import new_token
from chicle.ui.session import Session

__all__ = ["serve"]

_HOST = "127.0.0.1"


def serve(session: Session, *, port: int = 0, browser: bool = True, say: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted; then wait for the running job to end, and clean up.

    Parameters
    ----------
    session
        What the page shows.
    port
        The port; a free one by default.
    browser
        Whether to open the browser.
    say
        Called with the address.
    """
    token, once = new_token(), new_token()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, port))
        except OSError as error:
            raise ParameterError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from None
        listener.listen()  # a browser that is quicker than the server waits instead of being refused
        port = listener.getsockname()[1]
        app = make_app(session, token, [f"{_HOST}:{port}", f"localhost:{port}"], once)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="critical",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        address, opened = (f"http://{_HOST}:{port}/{one}/" for one in (token, once))
        server = uvicorn.Server(config)
        say(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(opened,), daemon=True).start()
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):  # both end the page as Ctrl-C does, so that uploads are removed
                signal.signal(getattr(signal, name), lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            server.run(sockets=[listener])
        finally:
            session.close()
