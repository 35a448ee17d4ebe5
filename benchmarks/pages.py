"""Time (ms) of the pages of a job with a million items, by the clock and in the server's processor time.

Beside it: the same pages of a job with 100 items. ``--items`` says how many the large job has.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from rig.load import Connection, Load, request, send
from rig.rounds import alternate, median, options, report
from rig.services import Platform, platform

_SMALL = 100
_PER_POST = 1000
_PAGES = {
    "overview": "/ui/1/1/{job}",
    "items": "/ui/1/1/{job}/items",
    "last items": "/ui/1/1/{job}/items?start={last}",
    "items, cards": "/ui/1/1/{job}/items?view=cards",
    "requests": "/ui/1/1/{job}/requests",
    "request": "/ui/1/1/{job}/requests/{last}",
    "log": "/ui/1/1/{job}/log",
    "stats": "/ui/1/1/{job}/stats",
    "comparison with itself": "/ui/1/compare?a=1/1/{job}&b=1/1/{job}&by=url",
}
#: Pages that look through items, up to the bounds of a search. Each is measured once a round.
_SEARCHES = {
    "first matches": "/ui/1/1/1/items?where=price+%3E+500",
    "rare text": "/ui/1/1/1/items?q=no+item+has+this",
    "rare match": "/ui/1/1/1/items?where=price+%3C+0+and+name+~+x",
    "sorted": "/ui/1/1/1/items?sort=price&desc=1",
    "sorted matches": "/ui/1/1/1/items?where=name+~+9&sort=name",
}


def main() -> None:
    given = options(
        __doc__,
        full={"items": 1_000_000, "gets": 20, "rounds": 5},
        quick={"items": 20_000, "gets": 5, "rounds": 2},
    )
    with platform() as server:
        sizes = {"large": given.items, "small": _SMALL}
        for size in sizes.values():
            _fill(server, size)

        def load(path: str, gets: int) -> Callable[[], Load]:
            requests = [[request("GET", path, server.key)] * gets]
            return lambda: send(server.port, server.pid, requests)

        runs = {
            (name, size): load(path.format(job=number, last=sizes[size] // 50 * 50 - 50), given.gets)
            for name, path in _PAGES.items()
            for number, size in enumerate(sizes, 1)
        }
        loads = alternate(given.rounds, runs)
        searches = alternate(given.rounds, {name: load(path, 1) for name, path in _SEARCHES.items()})
    cpu = {each: median(1e3 * load.cpu_seconds / given.gets for load in found) for each, found in loads.items()}
    wall = {each: median(1e3 * load.seconds / given.gets for load in found) for each, found in loads.items()}
    report(
        "pages",
        items=given.items,
        gets=given.gets,
        rounds=given.rounds,
        ms={name: round(wall[name, "large"], 1) for name in _PAGES},
        longest_ms=round(1e3 * max(load.longest for found in loads.values() for load in found), 1),
        cpu_ms={name: round(cpu[name, "large"], 1) for name in _PAGES},
        searches_ms={name: round(1e3 * median(load.seconds for load in found)) for name, found in searches.items()},
        ratio={name: round(cpu[name, "large"] / max(cpu[name, "small"], 0.1), 2) for name in _PAGES},
    )


def _fill(server: Platform, items: int) -> None:
    """Store a job with ``count`` items, requests and log lines."""
    with Connection(server.port) as connection:
        pushed = connection.ask(request("POST", "/jobq/1/push", server.key, b'{"spider": "s", "state": "running"}'))
        key = json.loads(pushed)["key"]
        for first in range(0, items, _PER_POST):
            numbers = range(first, min(first + _PER_POST, items))
            for path, record in (("items", _item), ("requests", _request), ("logs", _line)):
                body = "\n".join(json.dumps(record(number)) for number in numbers).encode()
                connection.ask(request("POST", f"/{path}/{key}", server.key, body))
        ended = json.dumps({"key": key, "state": "finished", "close_reason": "finished"}).encode()
        connection.ask(request("POST", "/jobq/1/update", server.key, ended))


def _item(number: int) -> dict[str, object]:
    page = f"https://site.example/page/{number}"
    return {"url": page, "name": f"product {number}", "price": number, "in_stock": True, "text": "x" * 200}


def _request(number: int) -> dict[str, object]:
    url = f"https://site.example/page/{number}"
    return {"time": number, "method": "GET", "url": url, "status": 200, "duration": 12, "rs": 3456}


def _line(number: int) -> dict[str, object]:
    return {"time": number, "level": 20, "message": f"Crawled (200) <GET https://site.example/page/{number}>"}


if __name__ == "__main__":
    main()
