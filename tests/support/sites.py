"""A small site for crawls: pages that link to each other, with what a crawl may meet on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

#: How many pages each page links to.
LINKS = 7


class Answer(NamedTuple):
    """Answer of a site."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class ListeningSite:
    """A site on a free port of this machine, which counts the hits of each path.

    A site says with :meth:`respond` what it answers; ``seen`` counts the hits of that path, this one included.
    """

    content_type = "text/html; charset=utf-8"

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.hits: Counter[str] = Counter()
        #: Names of the headers of each request.
        self.headers: list[list[str]] = []
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # The head and the body of an answer are two writes: without this the second waits for an acknowledgement.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with site._lock:
                    site.hits[self.path] += 1
                    site.headers.append(list(self.headers))
                    seen = site.hits[self.path]
                answer = site.respond(self.path, seen, body)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", site.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 100
            daemon_threads = True

            def handle_error(self, *arguments: object) -> None:
                """A crawl that is killed breaks its connections."""

        self._server = Server((address, 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        raise NotImplementedError


class Site(ListeningSite):
    """``/page/N`` for N below ``pages``, linked from ``/``; every page is one item.

    ``/moved/N`` redirects to page N; ``/flaky/N`` answers 503 the first time; ``/gone`` is a 404.
    """

    def __init__(self, pages: int = 60) -> None:
        self.pages = pages
        super().__init__()
        self.host = f"localhost:{self.port}"
        self.url = f"http://{self.host}"

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        kind, _, rest = path.partition("?")[0].strip("/").partition("/")
        if kind == "":
            return Answer(200, self.page(0))
        if kind == "page":
            return Answer(200, self.page(int(rest)))
        if kind == "moved":
            return Answer(302, headers={"Location": f"/page/{rest}"})
        if kind == "flaky":
            return Answer(503, b"later") if seen == 1 else Answer(200, self.page(int(rest)))
        return Answer(404, b"not here")

    def page(self, number: int) -> bytes:
        following = [(number * LINKS + step) % self.pages for step in range(1, LINKS + 1)]
        links = "".join(f'<a class="next" href="/page/{n}">{n}</a>' for n in following)
        return f"<html><head><title>Page {number}</title></head><body><h1>{number}</h1>{links}</body></html>".encode()
