"""A site whose items are known exactly, however a crawl of it goes.

A page is JSON: the steps that the spider takes there, in order (:data:`Step`). The same steps, taken here without
any network, give the items that a crawl must store (:func:`expected_items`), the pages that it must fetch
(:func:`expected_hits`), and its dead letters (:func:`expected_dead_letters`).

How a page is asked for (method, body, arguments) depends on that page only, so that it does not matter which of
its parents comes first; what it answers may depend on how often it was asked for, but what it leads to may not.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.sites import Answer, ListeningSite

#: Of different frontier slots when there are 8, and two of each worker when there are three.
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.6", "127.0.0.7")
#: How often a request whose callback fails is run, in all crawls of the maze.
MAX_ATTEMPTS = 3
#: Items of the page with very many, and the characters of each: together more than a mebibyte.
MANY, LONG = 20, 64 * 1024
#: Pages from which each make of page occurs.
SMALLEST = 24

SPIDER = Path(__file__).with_name("maze_spider.py").read_text()
SETTINGS = f"""
EXTRACT_API_ENABLED = False
ROBOTSTXT_OBEY = False
LOG_LEVEL = "INFO"
RETRY_TIMES = 2
PLATFORM_FLUSH_INTERVAL = 0.2
CONCURRENT_REQUESTS_PER_DOMAIN = 4
ITEM_PIPELINES = {{"project.spiders.Picky": 100}}
FRONTIER_MAX_ATTEMPTS = {MAX_ATTEMPTS}
"""

#: ``["item", text, length]``, ``["drop", text]``, ``["follow", link]``, ``["sleep", seconds]``, ``["raise", text]``,
#: ``["inline", link]``: fetch it here and yield an item.
Step = list[Any]
#: Arguments of the spider's ``asked``: ``host`` and ``path``, and what is not as usual.
Link = dict[str, Any]


def _host(number: int) -> str:
    return HOSTS[number % len(HOSTS)]


def _link(number: int, path: str, **unusual: Any) -> Link:
    return {"host": _host(number), "path": path, **unusual}


def link_to(number: int, parent: int) -> Link:
    """Request for page ``number``. ``parent`` matters only where it leads to the same in another way."""
    make = number % 12
    priority = number % 5 - 2
    if make == 1 and parent == (number - 1) // 2:
        # From another host, and others than the parent in the tree link to the page itself.
        return _link(number + 1, f"/moved/{number}", priority=priority)
    path = f"/page/{number}"
    if make == 5:
        return _link(number, path, priority=priority, post=number)
    if make == 8:
        return _link(number, path, priority=priority, arguments=number)
    if make == 9:
        return _link(number, path, priority=priority, copy_meta=True)
    return _link(number, path, priority=priority)


def start_links() -> list[Link]:
    """Start requests of a crawl: the first page, and one twice."""
    again = [_link(1, "/again/start", dont_filter=True, place=place) for place in (0, 1)]
    return [_link(0, "/page/0", dont_filter=True), *again]


def steps_of(path: str, pages: int, seen: int | None = None) -> list[Step]:
    """The steps of a page that was asked for ``seen`` times; None: so often that it does not fail any more."""
    kind, _, rest = path.strip("/").partition("/")
    if kind == "page":
        return _page(int(rest), pages, seen)
    if kind == "local":
        return [["item", path, 0], ["follow", _link(int(rest) + 2, f"/after{path}")]]
    return [["item", path, 0]]


def _unavailable(number: int, kind: str, **unusual: Any) -> Link:
    """A page that cannot be had, with the steps of its errback."""
    path = f"/{kind}/{number}"
    # As a child with dont_filter where number is odd: its identity must not change when its parent runs again.
    after = _link(number + 3, f"/after{path}", dont_filter=bool(number % 2))
    return _link(number, path, errback=[["item", f"no {path}", 0], ["follow", after]], **unusual)


def _page(number: int, pages: int, seen: int | None) -> list[Step]:
    make = number % 12
    item = ["item", f"page {number} first", 0]
    follow = [["follow", link_to(child, number)] for child in children_of(number, pages)]
    last = ["item", f"page {number} last", 0]
    if number == 13:
        return [*(["item", f"page {number} of many {k}", LONG] for k in range(MANY)), *follow, last]
    if number == 18:
        return [["raise", "before its output"]]
    if make == 4:
        return [["drop", f"page {number} dropped"], *follow, last]
    if make == 6:
        return [item, *follow, ["raise", "after its output"]]
    if make == 7:
        fails = seen is not None and seen <= (2 if number % 24 == 19 else 1)
        return [item, *follow[:1], *([["raise", "for now"]] if fails else []), *follow[1:], last]
    if make == 10:
        extra = [_unavailable(number, "gone"), _unavailable(number + 1, "closed", closed=True)]
        return [item, *(["follow", link] for link in extra), *follow]
    if make == 11:
        again = [["follow", _link(number, f"/again/{number}", dont_filter=True, place=place)] for place in (0, 1)]
        local = ["follow", _link(number + 1, f"/local/{number}", local=True)]
        inline = ["inline", _link(number + 2, f"/inline/{number}", dont_filter=True)]
        return [again[0], item, local, inline, ["sleep", 0.05], again[1], *follow, last]
    return [item, *follow, last]


def children_of(number: int, pages: int) -> Iterator[int]:
    """A tree, so that every page can be reached, and a link to somewhere else, so that there are duplicates."""
    for child in (2 * number + 1, 2 * number + 2, (5 * number + 1) % pages):
        # The first page was asked for with dont_filter, so a link to it would be followed by some schedulers.
        if 0 < child < pages:
            yield child


# ── what a crawl must come to ──


class Outcome(NamedTuple):
    """Expected result of a crawl: items, hits of the site, and dead letters as URLs without scheme and port."""

    items: Counter[str]
    hits: Counter[str]
    dead_letters: Counter[str]


def expected_items(pages: int, start_items: int = 0) -> Counter[str]:
    """The items that a crawl of so many pages stores; ``start_items`` of them are yielded by ``start``."""
    return outcome(pages, start_items).items


def outcome(pages: int, start_items: int = 0) -> Outcome:
    """Expected result of a crawl of so many pages, computed step by step."""
    walk = _Walk(pages)
    walk.items.update(f"start {number}" for number in range(start_items))
    for link in start_links():
        walk.follow(link)
    while walk.queue:
        walk.visit(walk.queue.popleft())
    return Outcome(walk.items, walk.hits, walk.dead_letters)


class _Walk:
    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._seen: set[tuple[str, str, object]] = set()
        self.items: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.queue: deque[Link] = deque()

    def follow(self, link: Link) -> None:
        identity = link["host"], link["path"], link.get("post")
        if identity not in self._seen or link.get("dont_filter"):
            self.queue.append(link)
        if not link.get("dont_filter"):
            self._seen.add(identity)

    def visit(self, link: Link) -> None:
        path: str = link["path"]
        kind, number = path.split("/")[1:3]
        if "closed" not in link:
            self.hits[path] += 1 + _is_flaky(path) + _failures(path, self._pages)
        if "errback" in link:
            self._take(link["errback"], link)
        elif kind == "moved":
            self.follow(_link(int(number), f"/page/{number}"))
        else:
            self._take(steps_of(path, self._pages), link)

    def _take(self, steps: list[Step], link: Link) -> None:
        for step in steps:
            if step[0] == "item":
                self.items[item_text(step[1], link, step[2])] += 1
            elif step[0] == "follow":
                self.follow(step[1])
            elif step[0] == "inline":
                self.hits[step[1]["path"]] += 1
                self.items[item_text(step[1]["path"], link, 0)] += 1
            elif step[0] == "raise":
                self.dead_letters[link["host"] + link["path"]] += 1
                return


def item_text(text: str, link: Link, length: int) -> str:
    """An item as the spider makes it: with what came through of how the page was asked for."""
    text = f"{text} +{length}" if length else text
    if "place" in link:
        text += f" at {link['place']}"
    if "post" in link:
        text += f" for ff00{link['post']:02x}"
    if "arguments" in link:
        number = link["arguments"]
        text += f" with 2026-01-02T03:04:{number % 60:02}+00:00 ({number}, ('a', b'\\xff')) {[number, number + 1]}"
    return text


def _failures(path: str, pages: int) -> int:
    """Number of runs of a page's callback that fail before the last one."""
    if any(step[0] == "raise" for step in steps_of(path, pages)):
        return MAX_ATTEMPTS - 1
    return sum(any(step[0] == "raise" for step in steps_of(path, pages, seen)) for seen in range(1, MAX_ATTEMPTS))


def _is_flaky(path: str) -> bool:
    kind, _, rest = path.strip("/").partition("/")
    return kind == "page" and int(rest) % 12 == 2


def is_held_back(path: str) -> bool:
    """Return True if a page leads to a request that cannot be stored, or is fetched by such a page.

    A process that stops before it is done with all of that leaves the whole page to the next one.
    """
    kind, _, rest = path.strip("/").partition("/")
    return kind in ("inline", "local") or (kind == "page" and int(rest) % 12 == 11)


# ── the site ──


class Maze(ListeningSite):
    """The site, on every address of this machine. Each page takes a moment.

    With ``gate``, it answers so many requests and keeps the others waiting, until :meth:`open_gate`.
    """

    content_type = "application/json"

    def __init__(self, pages: int = SMALLEST, gate: int | None = None) -> None:
        assert pages >= SMALLEST, "too few for one page of each make"
        self.pages = pages
        self._gate = gate
        self._opened = threading.Event()
        # Bound and not listening, so that nobody else gets the port.
        self._closed = socket.socket()
        self._closed.bind(("0.0.0.0", 0))
        super().__init__("0.0.0.0")

    def open_gate(self) -> None:
        self._opened.set()

    @property
    def is_at_gate(self) -> bool:
        """True if a request waits."""
        assert self._gate is not None
        return self.hits.total() > self._gate

    def close(self) -> None:
        self.open_gate()
        super().close()
        self._closed.close()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the spider."""
        knows = {"port": self.port, "closed": self._closed.getsockname()[1], "start": start_links()}
        return "-a", f"maze={json.dumps(knows)}"

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        kind, _, rest = path.strip("/").partition("/")
        if self._gate is not None and self.is_at_gate:
            # Less than DOWNLOAD_TIMEOUT, and enough for other workers to start meanwhile on a loaded machine.
            self._opened.wait(150)
        time.sleep(0.3 if kind == "page" and int(rest) % 12 == 3 else 0.01)
        if kind == "moved":
            return Answer(302, headers={"Location": f"http://{_host(int(rest))}:{self.port}/page/{rest}"})
        if kind == "gone":
            return Answer(404)
        if _is_flaky(path) and seen == 1:
            return Answer(503, headers={"Retry-After": "1"} if int(rest) % 24 == 2 else {})
        return self._steps(steps_of(path, self.pages, seen), body)

    @staticmethod
    def _steps(steps: list[Step], body: bytes = b"") -> Answer:
        return Answer(200, json.dumps({"steps": steps, "body": body.hex()}).encode())
