"""The sites of the soak, which may be slow or mute."""

from __future__ import annotations

import threading
import time
from collections import Counter

from tests.support.crash.maze import Maze
from tests.support.sites import Answer, ListeningSite

#: Pages of a tree; each links to two others.
TREE_PAGES = 25


class Pace:
    """Delay of the answers of all sites; they may also be mute."""

    def __init__(self) -> None:
        self._delay = 0.0
        self._speaks = threading.Event()
        self._speaks.set()

    def slow(self, seconds: float) -> None:
        self._delay = seconds

    def mute(self) -> None:
        """Answer nothing, until :meth:`mend`."""
        self._speaks.clear()

    def mend(self) -> None:
        self._delay = 0.0
        self._speaks.set()

    def wait(self) -> None:
        """Wait as long as an answer is to wait."""
        time.sleep(self._delay)
        self._speaks.wait(60)


class PacedMaze(Maze):
    """The maze of one crawl."""

    def __init__(self, pages: int, pace: Pace) -> None:
        self._pace = pace
        super().__init__(pages)

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        self._pace.wait()
        return super().respond(path, seen, body)


class Trees(ListeningSite):
    """``/tree/CRAWL/N``: the pages of a crawl, each with links to pages 2N+1 and 2N+2; ``/leaf/NAME``: single pages."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        super().__init__()
        self.host = f"localhost:{self.port}"  # a name, as extraction asks for

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        self._pace.wait()
        kind, _, rest = path.strip("/").partition("/")
        if kind == "leaf":
            return Answer(200, leaf(rest))
        crawl, _, number = rest.partition("/")
        links = "".join(f'<a href="/tree/{crawl}/{child}">{child}</a>' for child in _children(int(number)))
        return Answer(200, f"<html><body><h1>{number}</h1>{links}</body></html>".encode())

    def hits_of(self, crawl: str) -> Counter[str]:
        """The hits of each page of a crawl."""
        prefix = f"/tree/{crawl}/"
        with self._lock:
            return Counter({path.removeprefix(prefix): n for path, n in self.hits.items() if path.startswith(prefix)})

    def forget(self, prefix: str) -> None:
        """Forget the hits of paths that are not asked for any more."""
        with self._lock:
            for path in [path for path in self.hits if path.startswith(prefix)]:
                del self.hits[path]


def leaf(name: str) -> bytes:
    """The body of a single page."""
    return f"<html><body><h1>leaf {name}</h1></body></html>".encode()


def _children(number: int) -> list[int]:
    return [child for child in (2 * number + 1, 2 * number + 2) if child < TREE_PAGES]
