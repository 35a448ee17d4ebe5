"""Crawls that are played: the calls that a crawl with the package makes, without Scrapy and without a site.

A test compares them with those of a real crawl (:mod:`rig.recording`), by kind and size. A page has a request record,
one item of 1 KB and a number of new requests. Pages come at random times of a mean rate. What is done with them is as
in the package, with its default settings: results are committed a second after the first of them, request records sent
after two, stats are written every 30 seconds, and a line of log every 60.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from rig.services import Platform
from rig.spiders import varied_kilobyte
from rig.wire import Measured, Wire
from scrapy_ext.api import compression

#: Seconds, as the settings and the code of the package have them.
_COMMIT, _FLUSH, _STATS, _LOG = 1.0, 2.0, 30.0, 60.0
#: Results of a commit at most; commits after which the journal is pruned and staged items are deleted; requests that
#: are read ahead; slots of a frontier.
_MOST, _PRUNE, _FORGET, _PREFETCH, _SLOTS = 100, 50, 30, 100, 8


@dataclass
class Tally:
    """Numbers of what crawls have stored, to be compared with what is there."""

    pages: int = 0
    commits: int = 0
    #: Pages of each finished job.
    finished: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """A crawl: its pages, their rate a second, which may change with the time, new requests of a page, at most how many
    in all, and the time (monotonic) after which no page comes. ``compress``: as to a server on another machine."""

    pages: int
    rate: Callable[[], float]
    new: int = 1
    requests: float = float("inf")
    until: float = float("inf")
    compress: bool = True


async def play(server: Platform, plan: Plan, measured: Measured, tally: Tally, seed: int) -> None:
    """Play one crawl from its first to its last call."""
    crawl = _Crawl(server, plan, measured, tally, seed)
    try:
        await crawl.play()
    finally:
        crawl.close()


class _Crawl:
    def __init__(self, server: Platform, plan: Plan, measured: Measured, tally: Tally, seed: int) -> None:
        self._plan = plan
        self._tally = tally
        self._random = random.Random(seed)
        self._spider = f"spider-{seed % 200}"
        self._writer = f"{self._random.getrandbits(48):012x}"
        # The calls of a commit follow each other; writers and reads have connections of their own.
        self._main, self._other, self._reading = (
            Wire(server.port, server.key, measured, compress=plan.compress) for _ in range(3)
        )
        self._pages = 0
        self._asked = 0
        self._stored = {"requests": 0, "logs": 0}
        #: Requests that were read, with their batches; unfinished requests of each batch.
        self._queue: deque[tuple[str, str]] = deque()
        self._held: dict[str, int] = {}
        self._may_have_more = True
        self._lot: list[tuple[int, str]] = []
        self._records: list[bytes] = []
        self._added = asyncio.Event()
        self._recorded = asyncio.Event()
        self._journal = 0
        self._commit_number = 0
        self._ended = False

    def close(self) -> None:
        for wire in (self._main, self._other, self._reading):
            wire.close()

    async def play(self) -> None:
        await self._start()
        if not self._job:
            return
        tasks = [asyncio.create_task(each) for each in (self._commits(), self._requests())]
        repeated = (self._every(_STATS, self._stats), self._every(_LOG, self._log))
        timers = [asyncio.create_task(each) for each in repeated]
        await self._crawl()
        self._ended = True
        self._added.set()
        self._recorded.set()
        await asyncio.gather(*tasks)
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)
        await self._finish()

    # ── begin and end ──

    async def _start(self) -> None:
        call = self._main.call
        body = {"spider": self._spider, "state": "running", "spider_type": "manual"}
        pushed = await call("POST", "/jobq/1/push", _line(body))
        self._job = json.loads(pushed)["key"] if pushed else ""
        _, spider, number = (self._job or "0/0/0").split("/")
        self._frontier = f"/hcf/1/job-{spider}-{number}"
        self._commits_slot = f"{self._frontier}/s/commits-{spider}-{number}"
        self._owner = f"job-{spider}-{number}/commits-{spider}-{number}/{self._writer}"
        await self._append({"progress": {}})
        assignment = {"writer": f"{self._writer}#1", "owners": {"commits": list(range(_SLOTS))}, "left": {}}
        await call("POST", f"{self._frontier}/s/assignment", _line({"fp": "1", "qdata": assignment, "p": -1}))
        await self._write("logs", [self._log_line(300) for _ in range(11)])
        # As many as keep the crawl busy until the commits of its first pages, and more.
        await self._add(20 + round(1.5 * self._plan.rate()))

    async def _finish(self) -> None:
        call = self._main.call
        await self._stats()
        await self._write("logs", [self._log_line(200), self._log_line(1200)])
        ended = {"key": self._job, "state": "finished", "close_reason": "finished"}
        await call("POST", "/jobq/1/update", _line(ended))
        await call("GET", f"{self._frontier}/list")
        await call("DELETE", "/collections/1/s/scrapy_commits", prefix=self._owner.rpartition("/")[0] + "/")
        for slot in (f"{self._frontier}/s/0", f"{self._frontier}/s/assignment", self._commits_slot):
            await call("DELETE", slot)
        self._tally.finished[self._job] = self._pages

    # ── pages ──

    async def _crawl(self) -> None:
        due = time.monotonic()
        while self._pages < self._plan.pages and due < self._plan.until:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            if len(self._queue) < 10 + self._plan.rate() and self._may_have_more:
                await self._read()
            if not self._queue:
                # What is to be crawled comes with the results of other pages.
                due = time.monotonic() + 0.05
                self._may_have_more = True
                continue
            batch, _ = self._queue.popleft()
            self._lot.append((self._pages, batch))
            self._records.append(self._request_record())
            self._pages += 1
            self._added.set()
            self._recorded.set()
            due += self._random.expovariate(self._plan.rate())

    async def _read(self) -> None:
        held = sum(self._held.values())
        answer = await self._reading.call("GET", f"{self._frontier}/s/0/q", mincount=held + _PREFETCH)
        fresh = 0
        for line in answer.splitlines():
            batch = json.loads(line)
            if batch["id"] not in self._held:
                self._held[batch["id"]] = len(batch["requests"])
                self._queue.extend((batch["id"], fp) for fp, _ in batch["requests"])
                fresh += 1
        self._may_have_more = fresh > 0

    # ── commits ──

    async def _commits(self) -> None:
        while True:
            await self._added.wait()
            if not self._ended and len(self._lot) < _MOST:
                await asyncio.sleep(_COMMIT)
            lot, self._lot = self._lot[:_MOST], self._lot[_MOST:]
            if lot:
                await self._commit(lot)
            if not self._lot:
                if self._ended:
                    return
                self._added.clear()

    async def _commit(self, lot: list[tuple[int, str]]) -> None:
        call = self._main.call
        self._tally.commits += 1
        self._tally.pages += len(lot)
        self._commit_number += 1
        number = self._commit_number
        items = [_line(varied_kilobyte(f"http://site.example/page/{self._job}/{page}", page)) for page, _ in lot]
        packed = compression.gzip(b"".join(items))
        staged = {"_key": f"{self._owner}/{number}.0", "pieces": 1, "items": b64encode(packed).decode()}
        await call("POST", "/collections/1/s/scrapy_commits", _line(staged))
        await self._add(self._plan.new * len(lot))
        redo = {"job": self._job, "owner": self._owner, "chunks": [[number, lot[0][0], len(lot)]]}
        await self._append({"progress": {}, "redo": redo})
        await call("GET", f"/jobs/{self._job}")
        await call("POST", f"/items/{self._job}", packed, packed=True, start=lot[0][0])
        if done := self._done(lot):
            body = b"".join(_line(batch) for batch in done)
            await call("POST", f"{self._frontier}/s/0/q/deleted", body)
        if number % _FORGET == 0:
            await call("DELETE", "/collections/1/s/scrapy_commits", prefix=f"{self._owner}/{number}.")

    def _done(self, lot: list[tuple[int, str]]) -> list[str]:
        """Return the batches of which all requests are committed, and release them."""
        done = []
        for _, batch in lot:
            self._held[batch] -= 1
            if not self._held[batch]:
                del self._held[batch]
                done.append(batch)
        return done

    async def _add(self, count: int) -> None:
        """Add so many requests to the queue, at most those of the plan in all."""
        count = int(min(count, self._plan.requests - self._asked))
        if count <= 0:
            return
        page = f"http://site.example/page/{self._job}"
        records = [
            {
                "fp": f"{self._random.getrandbits(160):040x}",
                "qdata": {
                    "v": 1,
                    "url": f"{page}/{number}",
                    "headers": {"Referer": [f"{page}/{self._pages}"]},
                    "meta": {"depth": 1, "link_text": "x"},
                },
            }
            for number in range(self._asked, self._asked + count)
        ]
        self._asked += count
        await self._main.call("POST", f"{self._frontier}/s/0", b"".join(map(_line, records)))
        self._may_have_more = True

    async def _append(self, data: dict[str, object]) -> None:
        self._journal += 1
        qdata = {"writer": f"{self._writer}#{self._journal}", "worker": "0/1", "slots": list(range(_SLOTS)), **data}
        record = {"fp": str(self._journal), "qdata": qdata, "p": -self._journal}
        await self._main.call("POST", self._commits_slot, _line(record))
        if self._journal % _PRUNE == 0:
            found = await self._main.call("GET", f"{self._commits_slot}/q", mincount=2 * _PRUNE)
            old = [json.loads(line)["id"] for line in found.splitlines()][1:]
            await self._main.call("POST", f"{self._commits_slot}/q/deleted", b"".join(map(_line, old)))

    # ── writers ──

    async def _requests(self) -> None:
        while True:
            await self._recorded.wait()
            if not self._ended:
                await asyncio.sleep(_FLUSH)
            records, self._records = self._records, []
            self._recorded.clear()
            if records:
                await self._write("requests", records)
            if self._ended and not self._records:
                return

    async def _write(self, resource: str, lines: list[bytes]) -> None:
        start, self._stored[resource] = self._stored[resource], self._stored[resource] + len(lines)
        await self._other.call("POST", f"/{resource}/{self._job}", b"".join(lines), start=start)

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    async def _stats(self) -> None:
        stats = {f"downloader/response_status_count/{number}": self._pages for number in range(200, 216)}
        stats |= {"platform/job": self._job, "start_time": 1_795_441_054_681, "scheduler/dequeued": self._pages}
        await self._other.call("POST", f"/jobs/{self._job}", _line({"frameworkstats": stats}))

    async def _log(self) -> None:
        await self._write("logs", [self._log_line(100)])

    def _log_line(self, length: int) -> bytes:
        text = f"Crawled {self._pages} pages (at 6 pages/min), scraped {self._pages} items"
        return _line({"time": _now(), "level": 20, "message": text.ljust(length - 40, ".")})

    def _request_record(self) -> bytes:
        return _line(
            {
                "time": _now(),
                "method": "GET",
                "url": f"http://site.example/page/{self._job}/{self._pages}",
                "status": 200,
                "duration": 412,
                "rs": 100_000,
                "parent": max(self._pages - 1, 0),
                "fp": f"{self._random.getrandbits(160):040x}",
            }
        )


def _now() -> int:
    return round(time.time() * 1000)


def _line(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
