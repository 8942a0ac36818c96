"""The server of the page: on this computer only, for those who know the address with its token.

Every request must come to the loopback address under its own name (a foreign page cannot send it through
another host name), must not come from another page, and must begin with a token that is drawn at each start.
Pages of results have a token of their own, which gives access to nothing else, and run in a sandbox: a
report that was received from others cannot use the studio.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socketserver
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dynid.common.errors import DynidError, InputError, command_words
from dynid.report.page import scripted_page
from dynid.studio.session import Session

HOST = "127.0.0.1"
_MOST = 1 << 20  # bytes of a request
_CONNECTIONS = 100  # at a time; a browser opens six
_HTML = "text/html; charset=utf-8"
_SANDBOX = (  # also of a report that names no policy of its own
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; form-action 'none';"
    " base-uri 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
# The player of Viser builds scripts from text, and reads pictures from addresses that contain them.
_PLAYER = f"{_SANDBOX}; connect-src data:".replace("'unsafe-inline'", "'unsafe-inline' 'unsafe-eval'", 1)
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Studio(ThreadingHTTPServer):
    """The server of one session; `serve_forever` runs it, `close` ends it.

    Attributes:
        token: First part of every address of the page.
        reading: First part of the addresses of results, and of the robot as Viser draws it.
    """

    daemon_threads = True
    allow_reuse_address = os.name != "nt"

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self.token, self.reading = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used: {error.strerror}", remedy="choose another --port, 0 is any"
            ) from None

    def server_bind(self) -> None:
        """Bind without asking a name server for our own name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve it in a thread; close it beyond the limit: idle ones do not use up all files."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve it, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that left before its answer is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Of the page, with its token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def close(self) -> None:
        """Free the port and stop what runs."""
        self.server_close()
        self.session.close()

    def page(self) -> str:
        """The page itself; it asks for the state."""
        return scripted_page("studio.html", ("studio.js",), served=True, reading=self.reading)


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: Studio
    server_version, sys_version = "dynid", ""
    timeout = 20  # s of silence: a page on this computer sends at once

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed: addresses contain the token."""

    def _answer(self, work: Callable[[list[str]], None]) -> None:
        try:
            work(self._allowed())
        except ConnectionError:  # an answer has no reader; see handle_error
            raise
        except _Refused as refused:
            self._send(refused.status, f"{refused}\n".encode(), "text/plain; charset=utf-8")
        except (DynidError, OSError, MemoryError) as error:
            self._json({"error": command_words(error)}, HTTPStatus.BAD_REQUEST)
        except (TypeError, ValueError, KeyError) as error:
            self._json({"error": f"this cannot be done: {error}"}, HTTPStatus.BAD_REQUEST)
        except Exception as error:  # a bug: the page says so, and the studio goes on
            text = f"internal error, please report it: {type(error).__name__}: {error}"
            self._json({"error": text}, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _allowed(self) -> list[str]:
        """Parts of the address after the token, with the token's role first."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get_all("Host", []) not in [[place] for place in hosts]:
            raise _Refused(HTTPStatus.FORBIDDEN, "forbidden: this host")
        if not {f"http://{place}" for place in hosts}.issuperset(self.headers.get_all("Origin", [])):
            raise _Refused(HTTPStatus.FORBIDDEN, "forbidden: this origin")
        first, *parts = self.path.partition("?")[0].removeprefix("/").split("/")
        given = first.encode()
        if secrets.compare_digest(given, self.server.token.encode()):
            return ["studio", *parts]
        if secrets.compare_digest(given, self.server.reading.encode()):
            return ["results", *parts]
        raise _Refused(HTTPStatus.FORBIDDEN, "forbidden: use the address that `dynid studio` printed")

    def _get(self, parts: list[str]) -> None:
        session = self.server.session
        match parts:
            case ["studio", ""]:
                self._send(HTTPStatus.OK, self.server.page().encode(), _HTML, {"X-Frame-Options": "DENY"})
            case ["studio", "state"]:
                self._json(session.state())
            case ["studio", "view"]:
                self._send(HTTPStatus.OK, session.view().encode(), _HTML)
            case ["results", kind, index, "viser.html"]:
                page = session.in_webgl(kind, index)
                if page is None:
                    raise _Refused(HTTPStatus.NOT_FOUND, "not found")
                self._send(HTTPStatus.OK, page.encode(), _HTML, {"Content-Security-Policy": _PLAYER})
            case ["results", kind, index, name]:
                content = session.results.file(kind, index, name)
                if content is None:
                    raise _Refused(HTTPStatus.NOT_FOUND, "not found")
                self._send(HTTPStatus.OK, *content, {"Content-Security-Policy": _SANDBOX})
            case _:
                raise _Refused(HTTPStatus.NOT_FOUND, "not found")

    def _post(self, parts: list[str]) -> None:
        session = self.server.session
        actions: dict[str, Callable[..., None]] = {
            "load": session.load,
            "map": session.map,
            "settings": session.settings,
            "check": session.check,
            "excite": session.excite,
            "identify": session.identify,
            "cancel": session.cancel,
            "open": session.open_result,
            "compare": session.compare,
            "export": session.export,
        }
        if len(parts) != 2 or parts[0] != "studio" or parts[1] not in actions:
            raise _Refused(HTTPStatus.NOT_FOUND, "not found")
        asked = self._body()
        # Of all tabs, one after the other; a task is cancelled also while a request is at work.
        with contextlib.nullcontext() if parts[1] == "cancel" else session.requests:
            session.expect(asked.pop("revision", None))
            actions[parts[1]](**asked)
        self._json(session.state())

    def _body(self) -> dict[str, Any]:
        """The JSON object of a request; forms of other pages cannot send this type."""
        if self.headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "the length is missing")
        if len(length) > len(str(_MOST)) or int(length) > _MOST:
            self.close_connection = True
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
        try:
            asked = json.loads(self.rfile.read(int(length)) or b"{}")
        except RecursionError:
            raise _Refused(HTTPStatus.BAD_REQUEST, "too deep") from None
        if not isinstance(asked, dict):
            raise _Refused(HTTPStatus.BAD_REQUEST, "send a JSON object")
        json.dumps(asked, allow_nan=False)  # refuses numbers that are not finite
        return asked

    def _json(self, content: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(status, json.dumps(content, allow_nan=False).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS, **(more or {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
