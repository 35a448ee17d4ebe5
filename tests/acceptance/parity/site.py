"""A site with whatever a spider may meet, on as many ports as there are crawls: each counts its own hits.

Pages by path; see :data:`PAGES`. ``OTHER`` is a second host name of the same site, for those who resolve it to this
machine.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

OTHER: Final = "other.example"

HTML: Final = "text/html; charset=utf-8"
#: How many pages ``/`` links to.
PAGES_OF_INDEX: Final = 5


def _png() -> bytes:
    """A picture of one pixel, which the images pipeline reads."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")


@dataclass
class Visit:
    """One request that the site has received. ``seen`` counts those of the same method and target."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    seen: int
    #: Requests of this port under way, this one included, and seconds since the one before it began.
    at_once: int = 1
    gap: float = 60.0

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def rest(self) -> str:
        """The path behind its first part."""
        return self.path.lstrip("/").partition("/")[2]

    @property
    def site(self) -> str:
        return f"http://{self.headers['host']}"

    def query(self, name: str, default: str = "") -> str:
        return parse_qs(urlsplit(self.target).query).get(name, [default])[0]


@dataclass
class Reply:
    """An answer. Without ``status`` the connection is closed within the head; ``wait`` is in seconds."""

    status: int | None = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    content_type: str = HTML
    wait: float = 0
    #: Bytes that the head promises and the body has not; below 0, those that the body has beyond its length.
    missing: int = 0


def page(title: str, *links: str) -> Reply:
    anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    return Reply(
        200, f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{anchors}</body></html>".encode()
    )


def moved(status: int, to: str, *headers: tuple[str, str]) -> Reply:
    return Reply(status, b"moved", [("Location", to), *headers])


def index(visit: Visit) -> Reply:
    return page("index", *(f"/page/{number}" for number in range(1, PAGES_OF_INDEX + 1)))


def numbered(visit: Visit) -> Reply:
    """``/page/N`` links to the page with half that number, and to the next."""
    number = int(visit.rest)
    return page(f"page {number}", f"/page/{number // 2}", f"/page/{min(number + 1, 9)}", "/")


def tree(visit: Visit) -> Reply:
    """``/tree/``, ``/tree/1``, ``/tree/1.2``: each links to two below it, three levels deep."""
    name = visit.rest
    depth = len(name.split(".")) if name else 0
    below = [f"/tree/{name}.{n}".replace("/.", "/") for n in (1, 2)] if depth < 3 else []
    return page(f"tree {name}", *below)


def numbered_status(visit: Visit) -> Reply:
    status = int(visit.rest.split("/")[0])
    return Reply(status, b"" if status == 204 else b"<h1>status</h1>")


def flaky(visit: Visit) -> Reply:
    """``/flaky/503/2/name`` answers 503 twice, then a page."""
    status, times, name = visit.rest.split("/")
    return Reply(int(status), b"later") if visit.seen <= int(times) else page(name)


def redirect(visit: Visit) -> Reply:
    """``/redirect/302?to=/page/1``; ``host=other`` on the other host."""
    to = visit.query("to")
    if visit.query("host"):
        to = f"http://{OTHER}:{visit.headers['host'].partition(':')[2]}{to}"
    return moved(int(visit.rest), to)


def chain(visit: Visit) -> Reply:
    """``/chain/3`` redirects to ``/chain/2``, and so on."""
    left = int(visit.rest)
    return moved(302, f"/chain/{left - 1}") if left else page("end of the chain")


def refresh(visit: Visit) -> Reply:
    to = visit.query("to")
    return Reply(200, f'<html><head><meta http-equiv="refresh" content="0; url={to}"></head></html>'.encode())


def set_cookie(visit: Visit) -> Reply:
    """``/set-cookie?a=1&to=/cookies``."""
    cookies = [
        ("Set-Cookie", f"{name}={values[0]}; Path=/")
        for name, values in parse_qs(urlsplit(visit.target).query).items()
        if name != "to"
    ]
    to = visit.query("to")
    if to:
        return moved(302, to, *cookies)
    reply = page("cookies are set")
    reply.headers += cookies
    return reply


def cookies(visit: Visit) -> Reply:
    names = sorted(part.strip() for part in visit.headers.get("cookie", "").split(";") if part.strip())
    return page("cookies " + ", ".join(names))


def login(visit: Visit) -> Reply:
    if visit.method == "POST":
        sent = parse_qs(visit.body.decode())
        if sent.get("password") == ["secret"] and sent.get("token") == ["t0"]:
            return moved(302, "/account", ("Set-Cookie", f"user={sent['user'][0]}; Path=/"))
        return page("wrong password")
    return Reply(
        200,
        b'<form action="/login" method="post"><input type="hidden" name="token" value="t0">'
        b'<input name="user"><input type="password" name="password"><input type="submit"></form>',
    )


def account(visit: Visit) -> Reply:
    """The start page, with the user's name for who has logged in."""
    cookie = visit.headers.get("cookie", "")
    user = cookie.partition("user=")[2].partition(";")[0]
    return page(f"welcome {user}" if user else "please log in", "/page/1", "/page/2")


def echo(visit: Visit) -> Reply:
    shown = ("accept-language", "authorization", "content-type", "referer", "user-agent", "x-own", "accept", "origin")
    seen = {
        "method": visit.method,
        "target": visit.target,
        "body": visit.body.decode(errors="replace"),
        "headers": {name: visit.headers[name] for name in shown if name in visit.headers},
    }
    return Reply(200, json.dumps(seen).encode(), content_type="application/json")


def basic(visit: Visit) -> Reply:
    expected = "Basic " + base64.b64encode(b"me:secret").decode()
    if visit.headers.get("authorization") != expected:
        return Reply(401, b"who?", [("WWW-Authenticate", 'Basic realm="x"')])
    return page("admitted")


def big(visit: Visit) -> Reply:
    return Reply(200, b"<p>" + b"x" * int(visit.rest), content_type=HTML)


def slow(visit: Visit) -> Reply:
    reply = page("slow")
    reply.wait = float(visit.rest)
    return reply


def busy(visit: Visit) -> Reply:
    """As many requests as were under way when this one came."""
    reply = page(str(visit.at_once))
    reply.wait = 0.1
    return reply


def etag(visit: Visit) -> Reply:
    if visit.headers.get("if-none-match") == '"v1"':
        return Reply(304, b"", [("ETag", '"v1"')])
    reply = page("etag")
    reply.headers += [("ETag", '"v1"'), ("Cache-Control", "max-age=0")]
    return reply


def catalogue_xml(visit: Visit) -> Reply:
    products = "".join(f"<product><name>p{n}</name><price>{n}.5</price></product>" for n in range(4))
    return Reply(200, f"<?xml version='1.0'?><catalogue>{products}</catalogue>".encode(), content_type="text/xml")


def catalogue_csv(visit: Visit) -> Reply:
    return Reply(200, b"name,price\np0,0.5\np1,1.5\np2,2.5\n", content_type="text/csv")


def sitemap(visit: Visit) -> Reply:
    if visit.path == "/sitemap.xml":
        inner = f"<sitemap><loc>{visit.site}/sitemap-pages.xml</loc></sitemap>"
        return Reply(200, f"<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{inner}</sitemapindex>"
                     .encode(), content_type="text/xml")  # fmt: skip
    inner = "".join(f"<url><loc>{visit.site}/page/{n}</loc></url>" for n in (1, 2, 3, 1))
    text = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{inner}</urlset>"
    return Reply(200, text.encode(), content_type="text/xml")


def robots(visit: Visit) -> Reply:
    text = f"User-agent: *\nDisallow: /private/\nSitemap: {visit.site}/sitemap.xml\n"
    return Reply(200, text.encode(), content_type="text/plain")


def text_of(body: bytes, content_type: str, *headers: tuple[str, str]) -> Callable[[Visit], Reply]:
    return lambda _visit: Reply(200, body, list(headers), content_type)


#: By the first part of the path.
PAGES: Final[dict[str, Callable[[Visit], Reply]]] = {
    "": index,
    "page": numbered,
    "tree": tree,
    "status": numbered_status,
    "flaky": flaky,
    "redirect": redirect,
    "chain": chain,
    "loop": lambda visit: moved(302, visit.target),
    "nowhere": lambda _visit: Reply(302, b"no location"),
    "refresh": refresh,
    "set-cookie": set_cookie,
    "cookies": cookies,
    "login": login,
    "account": account,
    "echo": echo,
    "basic": basic,
    "big": big,
    "busy": busy,
    "gap": lambda visit: page(f"{visit.gap:.3f}"),
    "etag": etag,
    # As many sites send it: UTF-8 as it is.
    "location": lambda _visit: moved(302, "/h\u00f6\u6f22".encode().decode("latin-1")),
    "slow": slow,
    "drop": lambda _visit: Reply(None),
    "cut": lambda _visit: Reply(200, b"<h1>cut</h1>", missing=100),
    "empty": lambda _visit: Reply(200, b""),
    "picture": text_of(_png(), "image/png"),
    "file": lambda visit: Reply(200, f"file {visit.rest}".encode(), content_type="application/octet-stream"),
    "latin1": text_of("<h1>caf\xe9</h1>".encode("latin-1"), "text/html; charset=iso-8859-1"),
    "gzip": text_of(gzip.compress(b"<h1>packed</h1>"), HTML, ("Content-Encoding", "gzip")),
    # Without the end of its stream.
    "gzip-cut": text_of(gzip.compress(b"<h1>packed</h1>")[:-8], HTML, ("Content-Encoding", "gzip")),
    "identity": text_of(b"<html><h1>as it is</h1></html>", HTML, ("Content-Encoding", "identity")),
    "unknown-coding": text_of(b"some text", HTML, ("Content-Encoding", "exi")),
    "no-colon": text_of(b"<h1>no colon</h1>", HTML, ("X-Two", "a\r\nno colon here")),
    "two-lengths": text_of(b"<h1>twice</h1>", HTML, ("Content-Length", "14")),
    "longer": lambda _visit: Reply(200, b"<h1>longer</h1>and more", missing=-8),
    "connection": text_of(b"<h1>closed</h1>", HTML, ("Connection", "close"), ("Upgrade", "h2c")),
    "json": text_of(b'{"name": "tea", "price": 3}', "application/json"),
    "two-headers": text_of(b"<h1>two</h1>", HTML, ("X-Two", "a"), ("X-Two", "b")),
    "private": lambda _visit: page("private"),
    "catalogue.xml": catalogue_xml,
    "catalogue.csv": catalogue_csv,
    "sitemap.xml": sitemap,
    "sitemap-pages.xml": sitemap,
    "robots.txt": robots,
}


class Sites:
    """The site on ``count`` ports, in a thread of its own."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        #: Requests received by each port, as ``"GET /page/1"``, in their order.
        self.visits: dict[int, list[str]] = {}
        self._counts: Counter[tuple[int, str]] = Counter()
        self._under_way: Counter[int] = Counter()
        self._began: dict[int, float] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._servers = asyncio.run_coroutine_threadsafe(self._listen(count), self._loop).result()
        self.ports = list(self.visits)

    async def _listen(self, count: int) -> list[asyncio.Server]:
        servers = [await asyncio.start_server(self._serve, "127.0.0.1", 0) for _ in range(count)]
        for server in servers:
            self.visits[server.sockets[0].getsockname()[1]] = []
        return servers

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (visit := await self._read(reader, port)) is not None:
                self._under_way[port] += 1
                try:
                    if not await self._answer(visit, writer):
                        break
                finally:
                    self._under_way[port] -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, port: int) -> Visit | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _version = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        what = f"{method} {target}"
        self.visits[port].append(what)
        self._counts[port, what] += 1
        now = self._loop.time()
        gap = now - self._began.get(port, now - 60)
        self._began[port] = now
        return Visit(method, target, headers, body, self._counts[port, what], self._under_way[port] + 1, gap)

    async def _answer(self, visit: Visit, writer: asyncio.StreamWriter) -> bool:
        """Returns whether the connection stays open."""
        first = unquote(visit.path).lstrip("/").partition("/")[0]
        answer = PAGES.get(first)
        if answer is None and not first.isascii():
            reply = page(first)
        else:
            reply = answer(visit) if answer is not None else Reply(404, b"<h1>not here</h1>")
        if reply.status is None:
            # Part of a head: clients repeat by themselves a request on a connection that ends without a byte.
            writer.write(b"HTTP/1.1 200 Said\r\nContent-")
            return False
        if reply.wait:
            await asyncio.sleep(reply.wait)
        length = len(reply.body) + reply.missing
        headers = [*reply.headers, ("Content-Type", reply.content_type)]
        if reply.status not in (204, 304):
            headers.append(("Content-Length", str(length)))
        head = f"HTTP/1.1 {reply.status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
        writer.write(head.encode("latin-1") + b"\r\n" + (b"" if visit.method == "HEAD" else reply.body))
        await writer.drain()
        return not reply.missing
