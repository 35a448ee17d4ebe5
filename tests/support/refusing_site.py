"""A site on loopback that bans by the client's address, and challenges that scripts pass."""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scrapy_ext.compatibility.python import Self

#: A page of a CAPTCHA, as a protection service sends it.
CAPTCHA = (
    "<html><head><title>Access to this page has been denied</title></head><body><h1>Press &amp; Hold</h1>"
    '<div id="px-captcha"></div><script>window._pxAppId = "PX12";</script></body></html>'
)
#: A challenge whose script passes it, here by a cookie.
CHALLENGE = (
    "<html><head><title>Just a moment...</title></head><body><noscript>Enable JavaScript</noscript><script>"
    "window._cf_chl_opt = {}; document.cookie = 'clearance=1; path=/'; setTimeout(() => location.reload(), 300)"
    "</script></body></html>"
)
COOKIE = "clearance=1"
#: A challenge that nobody passes.
ENDLESS = (
    "<html><head><title>Just a moment...</title></head><body><script>window._cf_chl_opt = {}</script></body></html>"
)


class RefusingSite:
    """``/page/N`` for N below ``pages``, linked from ``/``. Use as a context manager.

    ``banned``: addresses of clients that get ``ban`` (a status and a page) instead. With ``challenges``, clients
    without the challenge's cookie get the challenge.
    """

    def __init__(self, pages: int = 20, banned: tuple[str, ...] = (), *, challenges: bool = False) -> None:
        self.pages = pages
        self.banned = set(banned)
        self.challenges = challenges
        self.ban = (403, CAPTCHA)
        #: Requests by address of the client, and pages that were really sent, by path.
        self.calls: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                status, page = site._answer(self.client_address[0], self.path, self.headers.get("Cookie") or "")
                body = page.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.do_GET()

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 100

            def handle_error(self, *arguments: object) -> None:
                """Clients that leave break their connections."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.host = f"localhost:{self.port}"
        self.url = f"http://{self.host}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, address: str, path: str, cookies: str) -> tuple[int, str]:
        if path == "/favicon.ico":
            return 404, ""
        with self._lock:
            self.calls[address] += 1
            if address in self.banned:
                return self.ban
            if self.challenges and COOKIE not in cookies:
                return 403, CHALLENGE
            self.sent[path] += 1
        links = "".join(f"<a href=/page/{number}>{number}</a> " for number in range(self.pages)) if path == "/" else ""
        return 200, f"<html><title>{path}</title><body><h1>Page {path}</h1>{links}</body></html>"
