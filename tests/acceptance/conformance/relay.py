"""A relay before the extraction service, which notes what each crawl sends."""

from __future__ import annotations

import http.client
import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

BAN: Final[dict[str, Any]] = {
    "type": "/download/temporary-error",
    "title": "Website Ban",
    "status": 520,
    "detail": "No ban-free response in reasonable time.",
}
SUSPENDED: Final[dict[str, Any]] = {
    "type": "/auth/account-suspended",
    "title": "Account Suspended",
    "status": 403,
    "detail": "The account is suspended.",
}


class Relay:
    """``<url>/<side>/<crawl>/v1`` is the service for one crawl of one side.

    A page with ``banned`` in its address is answered as one that bans, and every one of the crawl ``suspended`` as for
    a suspended account: no site and no key of the tests is such a one.
    """

    def __init__(self, service: str) -> None:
        #: Bodies of the POSTs by side and crawl, in their order.
        self.bodies: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        relay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                _, side, crawl, path = self.path.split("/", 3)
                relay.bodies[side, crawl].append(json.loads(body))
                if b"banned" in body:
                    return self._problem(BAN)
                if crawl == "suspended":
                    return self._problem(SUSPENDED)
                connection = http.client.HTTPConnection(service.removeprefix("http://"), timeout=100)
                kept = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
                connection.request("POST", f"/{path}", body, kept)
                answer = connection.getresponse()
                self._answer(answer.status, answer.headers["Content-Type"], answer.read())
                connection.close()
                return None

            def _problem(self, problem: dict[str, Any]) -> None:
                self._answer(problem["status"], "application/problem+json", json.dumps(problem).encode())

            def _answer(self, status: int, content_type: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
