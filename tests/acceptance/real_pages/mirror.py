"""Serves saved pages under their own host names and addresses, by HTTP and HTTPS, on loopback."""

from __future__ import annotations

import datetime as dt
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def address(url: str) -> tuple[str, str, str]:
    """Scheme, host and path with query of a URL, as a request for it names them."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, scheme: str, pages: Mapping[tuple[str, str, str], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._scheme = scheme
        self._pages = pages
        self._by_path = {(place[0], place[1], place[2].partition("?")[0]): body for place, body in pages.items()}

    def page(self, host: str, path: str) -> bytes | None:
        """The page at a path, also with what scripts of such pages add to their own address.

        That is a query, and ``/g00`` before the path, where one page moves to when it believes that its
        advertisements are blocked; here they are, since nothing but the pages is served.
        """
        exact = self._pages.get((self._scheme, host, path))
        if exact is not None:
            return exact
        return self._by_path.get((self._scheme, host, path.partition("?")[0].removeprefix("/g00")))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser closes connections as it likes; that is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 30

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        body = self.server.page(host, self.path)
        # Without a charset, as the page itself names it.
        self._answer(200 if body is not None else 404, body or b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(404, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _certificate(folder: Path, hosts: set[str]) -> ssl.SSLContext:
    """A server's TLS context with a certificate of its own making for the hosts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "saved pages")])
    now = dt.datetime.now(dt.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in sorted(hosts)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "saved-pages.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@contextmanager
def serving(pages: Mapping[str, bytes], folder: Path) -> Iterator[dict[str, int]]:
    """Serve pages, given by URL; the port of each scheme. ``folder`` is for the certificate."""
    found = {address(url): body for url, body in pages.items()}
    context = _certificate(folder, {host for _, host, _ in found})
    with ExitStack() as stack:
        ports = {}
        for scheme in ("http", "https"):
            server = stack.enter_context(_Server(scheme, found))
            if scheme == "https":
                # The handshake is left to the connection's thread: one slow client must not hold up the others.
                server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            ports[scheme] = server.server_address[1]
        yield ports
