"""An extraction service on loopback for what no healthy one shows: every problem, and every way to break an answer.

It runs in a thread of the test, so that a test reads what was posted while the crawl goes on::

    service.plays("limited.example", problem("/limits/over-domain-limit", retry_after=1), PAGE)

A script is chosen by the page that is asked for: its address without the scheme, or its domain. Its answers are
given in their order to each page by itself, and the last one again and again; everything else gets its page.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.api.extraction import EXTRACT_TYPES, Problem
from tests.support.threaded_server import ThreadedServer

#: What a page has, as the service found it on the site.
HTML = b"<html><head><title>A page</title></head><body><h1>A page</h1></body></html>"
#: Bytes of an answer that are written at once.
CHUNK = 64 * 1024
#: Seconds between two looks at what an answer waits for.
GLANCE = 0.005


@dataclass
class Post:
    """A request as it arrived. ``began`` and ``ended`` number the beginnings and endings of all requests in their
    order (``ended`` None: it was not answered); ``broken`` says that the client went away before it had all."""

    url: str
    fields: dict[str, Any]
    headers: dict[str, str]
    path: str
    began: int
    at: float
    number: int
    ended: int | None = None
    ended_at: float | None = None
    written: int = 0
    broken: bool = False

    @property
    def domain(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def place(self) -> str:
        """The address without its scheme."""
        return self.url.partition("://")[2]


@dataclass(frozen=True)
class Answer:
    """Answer of the service. ``body`` None is the page that was asked for, with ``members`` in place of its own.

    ``drop`` ends the connection instead of answering, ``cut`` after so many bytes of the body; ``after`` seconds
    pass before it, and it waits until ``when`` is true. ``leaves`` ends the service with it: no more connections are
    taken until it comes back.
    """

    status: int = 200
    body: bytes | None = None
    members: Mapping[str, Any] = field(default_factory=dict)
    type: str | None = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    drop: bool = False
    cut: int | None = None
    after: float = 0.0
    when: Callable[[], object] | None = None
    leaves: bool = False


#: An answer, or what decides on one when it is asked for.
Play = Answer | Callable[[Post], Answer]

PAGE = Answer()
DROPPED = Answer(drop=True)
HALF = Answer(cut=20)
NEVER = Answer(when=lambda: False)
#: What a network that wants one to sign in first answers to everything.
SIGN_IN = Answer(body=b"<html><title>Sign in</title></html>", type="text/html")


def page(html: bytes | None = None, status: int = 200, type: str | None = "text/html", **members: Any) -> Answer:
    """A page of the site; a member that is None is left out."""
    more: dict[str, Any] = {"statusCode": status}
    if html is not None:
        more["httpResponseBody"] = base64.b64encode(html).decode()
    if type is not None:
        more["httpResponseHeaders"] = [{"name": "Content-Type", "value": type}]
    return Answer(members={**more, **members})


def problem(type: str, retry_after: int | str | None = None, **more: Any) -> Answer:
    """A problem of the contract's table."""
    problem = Problem.of(type, "because", blocked_domain="blocked.example" if "forbidden" in type else None)
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return Answer(
        problem.status, msgspec.json.encode(problem), type="application/problem+json", headers=headers, **more
    )


def held(answer: Answer, when: Callable[[], object]) -> Answer:
    """An answer that waits until something is so."""
    return replace(answer, when=when)


class FaultyService(ThreadedServer):
    """The service, ready when the constructor returns. It takes any key."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        #: Connections that were opened.
        self.connections = 0
        #: Fields beside the contract that it says it knows, and how often it was asked.
        self.extensions: tuple[str, ...] = ()
        #: Whether questions for them are answered.
        self.tells_extensions = True
        self.asked = 0
        self._plays: dict[str, tuple[Play, ...]] = {}
        self._asked: dict[str, int] = {}
        self._refused = 0
        self._port = 0
        self._serving: set[asyncio.Task[Any]] = set()
        self._numbers = itertools.count()
        super().__init__()

    # ── from the test ──

    def plays(self, place: str, *plays: Play) -> None:
        """Set the answers for the page at an address without scheme, or for each page of a domain."""
        self._plays[place] = plays
        for known in [known for known in self._asked if known == place or known.partition("/")[0] == place]:
            del self._asked[known]

    def refuse(self, connections: int) -> None:
        """End so many connections before anything is read from them."""
        self._refused = connections

    def go_away(self) -> None:
        """Take no more connections, and end those that there are."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)

    def come_back(self) -> None:
        """Take connections at the same address again."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)

    def of(self, place: str) -> list[Post]:
        """The requests for the page at an address without scheme, or for any page of a domain."""
        return [post for post in list(self.posts) if place in (post.place, post.domain)]

    def count(self, place: str) -> int:
        """Number of requests for it that have arrived."""
        return len(self.of(place))

    def answered(self, place: str) -> int:
        """Number of requests for it that have been answered."""
        return sum(post.ended is not None for post in self.of(place))

    @staticmethod
    def now() -> float:
        """The time, as requests have it."""
        return time.monotonic()

    def most_at_once(self, *places: str) -> int:
        """Highest number of requests, of these domains or of all, that were answered at the same time."""
        events: list[tuple[int, int]] = []
        for post in [post for place in places for post in self.of(place)] if places else self.posts:
            events.append((post.began, 1))
            if post.ended is not None:
                events.append((post.ended, -1))
        return max(itertools.accumulate(step for _, step in sorted(events)), default=0)

    # ── serving ──

    async def _run(self) -> None:
        await self._listen()
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._ready.set()
        await self._stop.wait()
        await self._close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=200)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            if self._refused:
                self._refused -= 1
                return
            while (post := await self._read(reader, writer)) is not None:
                if not await self._answer(post, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Post | None:
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")).startswith(b"OPTIONS"):
                self.asked += 1
                if not self.tells_extensions:
                    return None
                named = "".join(f"{name}: {value}\r\n" for name, value in self._named(PAGE).headers)
                writer.write(f"HTTP/1.1 405 No\r\n{named}Content-Length: 0\r\n\r\n".encode())
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        fields = msgspec.json.decode(body)
        post = Post(
            url=fields["url"],
            fields=fields,
            headers=headers,
            path=first.split(" ")[1],
            began=next(self._numbers),
            at=time.monotonic(),
            number=self._asked.get(_place(fields), 0),
        )
        self._asked[_place(fields)] = post.number + 1
        self.posts.append(post)
        return post

    async def _answer(self, post: Post, writer: asyncio.StreamWriter) -> bool:
        """Return True if the connection stays open."""
        answer = self._play(post)
        await asyncio.sleep(answer.after)
        while answer.when is not None and not answer.when():
            await asyncio.sleep(GLANCE)
        if answer.drop:
            self._end(post)
            return False
        body = _result(post.fields, answer.members) if answer.body is None else answer.body
        if answer.leaves:
            self._server.close()
        # Before it is written: what the client does upon it comes later in the order.
        self._end(post)
        try:
            await _write(writer, self._named(answer), body, post)
        except ConnectionError:
            post.broken = True
            raise
        return answer.cut is None and not answer.leaves

    def _play(self, post: Post) -> Answer:
        plays = self._plays.get(post.place) or self._plays.get(post.domain) or (PAGE,)
        play = plays[min(post.number, len(plays) - 1)]
        return play if isinstance(play, Answer) else play(post)

    def _named(self, answer: Answer) -> Answer:
        if not self.extensions:
            return answer
        return replace(answer, headers=(*answer.headers, ("Extract-Extensions", ", ".join(self.extensions))))

    def _end(self, post: Post) -> None:
        post.ended_at = time.monotonic()
        post.ended = next(self._numbers)


def running() -> Iterator[FaultyService]:
    """The service, for a fixture."""
    with FaultyService() as service:
        yield service


def _place(fields: Mapping[str, Any]) -> str:
    return fields["url"].partition("://")[2]


async def _write(writer: asyncio.StreamWriter, answer: Answer, body: bytes, post: Post) -> None:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Other"
    headers = [("Content-Type", answer.type)] if answer.type else []
    lines = [f"{name}: {value}" for name, value in (*headers, *answer.headers, ("Content-Length", str(len(body))))]
    head = "\r\n".join([f"HTTP/1.1 {answer.status} {phrase}", *lines, "", ""]).encode()
    body = body[: answer.cut]
    writer.write(head + body[:CHUNK])
    post.written = min(len(body), CHUNK)
    for start in range(CHUNK, len(body), CHUNK):
        await writer.drain()
        writer.write(body[start : start + CHUNK])
        post.written = min(len(body), start + CHUNK)
    await writer.drain()


def _result(fields: Mapping[str, Any], members: Mapping[str, Any]) -> bytes:
    """Return the requested body."""
    result: dict[str, Any] = {"url": fields["url"], "statusCode": 200}
    result.update((name, fields[name]) for name in ("echoData", "jobId") if name in fields)
    if fields.get("httpResponseBody"):
        result["httpResponseBody"] = base64.b64encode(HTML).decode()
    if fields.get("httpResponseHeaders"):
        result["httpResponseHeaders"] = [{"name": "Content-Type", "value": "text/html"}]
    if fields.get("browserHtml"):
        result["browserHtml"] = HTML.decode()
    if fields.get("screenshot"):
        result["screenshot"] = base64.b64encode(b"\x89PNG").decode()
    for name in EXTRACT_TYPES:
        if fields.get(name):
            result[name] = {"url": fields["url"], "name": f"a {name}"}
    result.update(members)
    return msgspec.json.encode({name: value for name, value in result.items() if value is not None})
