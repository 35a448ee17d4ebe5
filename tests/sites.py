"""A small site for crawls: pages that link to each other, with what a crawl may meet on the way."""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: How many pages each page links to.
LINKS = 7


class Site:
    """``/page/N`` for N below ``pages``, linked from ``/``; every page is one item.

    ``/moved/N`` redirects to page N; ``/flaky/N`` answers 503 the first time; ``/gone`` is a 404.
    """

    def __init__(self, pages: int = 60) -> None:
        self.pages = pages
        self.hits: Counter[str] = Counter()
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with site._lock:
                    site.hits[self.path] += 1
                    seen = site.hits[self.path]
                status, location, body = site.answer(self.path, seen)
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 100
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.host = f"localhost:{self.port}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, seen: int) -> tuple[int, str, bytes]:
        kind, _, rest = path.partition("?")[0].strip("/").partition("/")
        if kind == "":
            return 200, "", self.page(0)
        if kind == "page":
            return 200, "", self.page(int(rest))
        if kind == "moved":
            return 302, f"/page/{rest}", b""
        if kind == "flaky":
            return (503, "", b"later") if seen == 1 else (200, "", self.page(int(rest)))
        return 404, "", b"not here"

    def page(self, number: int) -> bytes:
        following = [(number * LINKS + step) % self.pages for step in range(1, LINKS + 1)]
        links = "".join(f'<a class="next" href="/page/{n}">{n}</a>' for n in following)
        return f"<html><head><title>Page {number}</title></head><body><h1>{number}</h1>{links}</body></html>".encode()
