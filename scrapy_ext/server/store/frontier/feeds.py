"""Pushes of requests into the frontiers of crawls, also of those that are put back from the dead letters.

- A push is one transaction over all slots that it touches: the frontier has all of its requests or none. The row of the
  frontier is locked first, so that two pushes lock slots one after the other, and a job's own frontier takes nothing
  after its crawl has read for the last time: the crawl sets ``accepting`` to 0, reads all slots once more, and ends
  only if they are empty.
- The frontier of a job that has ended takes nothing; that of a name of the user's keeps everything for the next crawl.
- The number of slots is the crawl's, or that of the first push, so that all choose the same slot for a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlparse

import msgspec

from scrapy_ext.api.platform.feeding import MAX_VIOLATIONS, Fed, FedCount, Feed, parsed
from scrapy_ext.api.platform.frontier import (
    DEAD_LETTERS,
    DEFAULT_SLOTS,
    MAX_BATCH,
    MAX_SLOTS,
    FrontierRequest,
    revived,
    slot_of_url,
    spread_slot,
)
from scrapy_ext.api.platform.job_data import job_of_frontier
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation, refused
from scrapy_ext.server.store.engine.interface import Engine, EngineStore, Method, Transaction
from scrapy_ext.server.store.fencing import Attempt, check_attempt
from scrapy_ext.server.store.frontier.fingerprint_filter import SlotFilters
from scrapy_ext.server.store.frontier.frontier import FrontierStore, QueuedRequest, Slot, add_requests
from scrapy_ext.server.store.projects import hold
from scrapy_ext.server.store.read_ahead import in_thread

_FEED: Final = "project = $1 AND frontier = $2"
_REMEDY: Final = "Set FRONTIER_KEEP_ALIVE for a crawl that waits, or push into a frontier that a FRONTIER_NAME names."
_encode: Final = msgspec.json.Encoder().encode


class Push(NamedTuple):
    """A push: its frontier, the number of slots that the sender expects, and whether each request names its
    fingerprint.

    ``attempt``: that of the process that pushes.
    """

    project: int
    frontier: str
    slots: int | None = None
    names_fps: bool = True
    attempt: Attempt | None = None


class PushedRequest(NamedTuple):
    """A request to queue, with what its slot follows from."""

    url: str
    chosen_slot: int | str | None
    queued: QueuedRequest
    fp: str
    cookiejar: object = None

    def slot(self, row: _Row) -> int:
        if row.spread and self.chosen_slot is None:
            return spread_slot(urlparse(self.url).netloc, self.fp, row.slots, self.cookiejar)
        return slot_of_url(self.url, self.chosen_slot, row.slots)


def pushed(requests: Iterable[tuple[int, Fed]], push: str) -> list[PushedRequest]:
    """Return valid requests with the numbers of their lines, ready to be queued by the push with this ID."""
    return [_pushed(fed, push, index) for index, fed in requests]


def _pushed(fed: Fed, push: str, index: int) -> PushedRequest:
    record = fed.record(push, index)
    queued = QueuedRequest(record.fp.encode(), _encode([record.fp, record.qdata]), None, record.p)
    cookiejar = fed.form.get("meta", {}).get("cookiejar")
    return PushedRequest(fed.form["url"], fed.chosen_slot, queued, fed.fp, cookiejar)


_DECLARE_ONCE: Final = """
    INSERT INTO frontier_feeds (project, frontier, slots, accepting, own_fingerprints, spread)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project, frontier) DO NOTHING"""
_DECLARE: Final = """
    INSERT INTO frontier_feeds (project, frontier, slots, accepting, own_fingerprints, spread)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project, frontier) DO UPDATE
    SET slots = excluded.slots, accepting = excluded.accepting, own_fingerprints = excluded.own_fingerprints,
        spread = excluded.spread"""


class _Row(NamedTuple):
    slots: int
    accepting: bool
    own_fingerprints: bool
    spread: bool


async def _row(tx: Transaction, project: int, frontier: str, *, lock: bool = False) -> _Row | None:
    row = await tx.fetchrow(
        f"SELECT slots, accepting, own_fingerprints, spread FROM frontier_feeds WHERE {_FEED}"
        + (" FOR UPDATE" if lock else ""),
        project,
        frontier,
    )
    return _Row(row[0], *map(bool, row[1:])) if row else None


async def get(tx: Transaction, project: int, frontier: str) -> Feed | None:
    """Return a frontier as a feed; None if it does not exist."""
    row = await _row(tx, project, frontier)
    slots = await tx.fetch(
        "SELECT slot, stamp FROM frontier_slots WHERE project = $1 AND frontier = $2 ORDER BY slot", project, frontier
    )
    if row is None and not slots:
        return None
    stamps = {name: stamp for name, stamp in slots if name.isdigit()}
    if row is None:
        return Feed(open=job_of_frontier(project, frontier) is None, stamps=stamps)
    return Feed(row.slots, row.accepting, row.own_fingerprints, row.spread, stamps)


async def declare(
    tx: Transaction, project: int, frontier: str, feed: Feed, attempt: Attempt | None = None, *, keep: bool = False
) -> None:
    """Store what a crawl declares about its frontier. ``attempt``: that of the process that declares it. ``keep``: an
    earlier declaration stays."""
    await check_attempt(tx, attempt)
    await tx.execute(
        _DECLARE_ONCE if keep else _DECLARE,
        project,
        frontier,
        feed.slots or DEFAULT_SLOTS,
        int(feed.open),
        int(feed.own_fingerprints),
        int(feed.spread),
    )


async def _push(tx: Transaction, push: Push, requests: Sequence[PushedRequest], filters: SlotFilters) -> FedCount:
    await check_attempt(tx, push.attempt)
    project, frontier = push.project, push.frontier
    row = await _row(tx, project, frontier, lock=True)
    job = job_of_frontier(project, frontier)
    if job is not None:
        await _check_job(tx, job, row)
    if row is None:
        row = await _created(tx, push)
    if push.slots not in (None, row.slots):
        raise refused("slots", f"is {push.slots}, but frontier {frontier} has {row.slots}", "Leave it out.")
    if row.own_fingerprints and not push.names_fps:
        raise _conflict(
            frontier,
            "has a crawl with fingerprints of its own (REQUEST_FINGERPRINTER_CLASS, or EXTRACT_API_PARAMS)",
            "Push in the project: scrapy platform frontier add --spider NAME. Or give each line its fp.",
        )
    by_slot: dict[str, list[QueuedRequest]] = {}
    for request in requests:
        slot = str(request.slot(row))
        by_slot.setdefault(slot, []).append(request.queued)
    await _hold_for_new_slots(tx, push, by_slot)
    new = 0
    for slot, queued in sorted(by_slot.items()):
        new += await add_requests(tx, Slot(project, frontier, slot), queued, filters)
    return FedCount(new, len(requests) - new)


async def _hold_for_new_slots(tx: Transaction, push: Push, names: Iterable[str]) -> None:
    """Take the counter of slots before any slot is locked, if the push creates one. Nobody deletes a slot meanwhile,
    since the row of the frontier is locked."""
    rows = await tx.fetch(f"SELECT slot FROM frontier_slots WHERE {_FEED}", push.project, push.frontier)
    if not {row[0] for row in rows}.issuperset(names):
        await hold(tx, push.project, "frontier slot")


async def _created(tx: Transaction, push: Push) -> _Row:
    """Create the row of a frontier into which something is pushed before a crawl has opened it."""
    slots = push.slots or DEFAULT_SLOTS
    names = await tx.fetch(f"SELECT slot FROM frontier_slots WHERE {_FEED}", push.project, push.frontier)
    highest = max((int(name) for (name,) in names if name.isdigit() and len(name) <= len(str(MAX_SLOTS))), default=0)
    if highest >= slots:
        raise refused(
            "slots",
            f"is {slots}, but frontier {push.frontier} has slot {highest}",
            "Name the FRONTIER_SLOTS of its crawl.",
        )
    await declare(tx, push.project, push.frontier, Feed(slots))
    # Another push may have created it at the same time: its row is locked from here on.
    row = await _row(tx, push.project, push.frontier, lock=True)
    assert row is not None  # noqa: S101 - declared above
    return row


async def _check_job(tx: Transaction, job: JobKey, row: _Row | None) -> None:
    """Refuse a push into the own frontier of a job that does not wait for requests."""
    frontier = f"of job {job}"
    found = await tx.fetchrow("SELECT state FROM jobs WHERE project = $1 AND spider = $2 AND job = $3", *job)
    state = None if found is None else JobState(found[0])
    if state is None or state is JobState.DELETED:
        raise _conflict(frontier, "does not exist", "Name a job that runs, or a frontier.", 404)
    if state is JobState.FINISHED:
        raise _conflict(frontier, "takes no more requests, since the job has ended", _REMEDY)
    if row is None and state is JobState.PENDING:
        raise _conflict(frontier, "does not exist yet, since the job has not begun", f"Wait until it runs. {_REMEDY}")
    if row is None:
        raise _conflict(frontier, "takes no requests: the crawl does not wait for them", _REMEDY)
    if not row.accepting:
        raise _conflict(frontier, "takes no more requests: the crawl is ending", _REMEDY)


def _conflict(frontier: str, rule: str, remedy: str, status: int = 409) -> ContractError:
    return ContractError(
        [Violation(f"frontier {frontier}".replace("frontier of", "the frontier of"), rule, remedy, status)]
    )


class FeedStore(EngineStore):
    """Frontiers as whoever pushes into them sees them. ``filters``: those of the :class:`FrontierStore`."""

    def __init__(self, engine: Engine, clock: Callable[[], int], filters: SlotFilters) -> None:
        super().__init__(engine, clock)
        self._filters = filters

    get = Method("read", get)
    declare = Method("write", declare)

    async def push(self, push: Push, requests: Sequence[PushedRequest]) -> FedCount:
        """Queue all requests or none; raises :class:`ContractError` for a frontier that takes none."""
        return await self._engine.write(_push, push, requests, self._filters)


# ── lines of URLs and requests on their way into a frontier: all are parsed before the first is queued ──

#: Lines with their numbers, from 1.
Lines = Sequence[tuple[int, bytes]]


async def push_lines(feeds: FeedStore, push: Push, lines: Lines, name: str, start: int = 0) -> FedCount:
    """Push lines into a frontier, all or none; raises :class:`ContractError`.

    ``name``: ID of the push. ``start``: number of the first line in it.
    """
    requests, violations = await in_thread(_parsed, lines)
    if violations:
        raise ContractError(violations)
    if not requests:
        return FedCount(0, 0)
    numbered = [(start + number - 1, fed) for number, fed in requests]
    ready = await in_thread(partial(pushed, push=name), numbered)
    return await feeds.push(push._replace(names_fps=all(fed.names_fp for _, fed in requests)), ready)


def _parsed(lines: Lines) -> tuple[list[tuple[int, Fed]], list[Violation]]:
    """Return the requests of the lines, and the violations of the first invalid ones."""
    requests: list[tuple[int, Fed]] = []
    violations: list[Violation] = []
    for number, line in lines:
        place = f"line {number}"
        try:
            fed = parsed(line, place)
        except ContractError as error:
            violations += error.violations
            if len(violations) >= MAX_VIOLATIONS:
                break
            continue
        if fed.needs_fp:
            violations.append(_without_fp(place))
        requests.append((number, fed))
    return requests, violations


def _without_fp(place: str) -> Violation:
    return Violation(
        f"{place}.meta",
        "has extract_api fields, on which the fingerprint depends",
        "Push in the project: scrapy platform frontier add --spider NAME. Or give the line its fp.",
    )


#: Approximate maximum of requests per call.
MOST: Final = 20_000

_decode: Final = msgspec.json.Decoder(list[tuple[str, Any]]).decode


async def put_back(frontier: FrontierStore, project: int, name: str) -> int:
    """Queue dead letters again, each in its slot; return their number.

    A request is removed from the dead letters after it was queued, so that an interruption loses none. A repetition
    queues none twice, since its slot has the fingerprint. Raises ``ValueError`` for invalid dead letters.
    """
    dead = Slot(project, name, DEAD_LETTERS)
    count = 0
    while count < MOST and (batches := await frontier.read(dead, MAX_BATCH)):
        by_slot: dict[str, list[QueuedRequest]] = {}
        for batch in batches:
            for key, letter in _decode(b"[" + batch.requests + b"]"):
                back = revived(key, letter)
                by_slot.setdefault(back.slot, []).append(_queued(back.request))
        for slot, requests in sorted(by_slot.items()):
            await frontier.add(Slot(project, name, slot), requests)
        await frontier.delete_batches(dead, [batch.id for batch in batches])
        count += sum(batch.size for batch in batches)
    return count


def _queued(request: FrontierRequest) -> QueuedRequest:
    return QueuedRequest(request.fp.encode(), _encode([request.fp, request.qdata]), None, request.p)
