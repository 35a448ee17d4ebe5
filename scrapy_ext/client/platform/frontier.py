"""The crawl frontier (platform-api.md, Frontier)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Container, Iterable, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.feeding import FedCount, Feed
from scrapy_ext.api.platform.frontier import (
    DEAD_LETTERS,
    MAX_BATCH,
    Batch,
    Fingerprint,
    FrontierRequest,
    NewCount,
    ProcessedBatches,
    QueueCount,
    SlotBatch,
    SlotCounts,
    SlotRead,
    check_name,
    revived,
)
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.answers import Answer
from scrapy_ext.client.platform.calls import JSON, delete, get, path, post, put
from scrapy_ext.client.platform.errors import UnexpectedAnswer
from scrapy_ext.client.platform.json_lines import LineError, encode
from scrapy_ext.client.platform.resource import Pages, Resource

_PAIRS: Final = msgspec.json.Decoder(list[tuple[str, Any]])
_FINGERPRINT: Final = msgspec.json.Decoder(Fingerprint)


class _RawBatch(msgspec.Struct):
    id: str
    requests: msgspec.Raw


class QueuedBatch(Batch):
    """A batch with the priority of its requests; None where the platform does not report it."""

    priority: int | None = msgspec.field(default=None, name="_p")


class Frontier(Resource):
    """Queues of requests and sets of fingerprints, by frontier and slot."""

    async def add(self, project: int, frontier: str, slot: str, body: bytes, *, attempts: int | None = None) -> int:
        """Enqueue requests, given as JSON lines of ``{fp, qdata, fdata, p}``; returns the number of new ones.

        Repeated after a failure, since a fingerprint that the slot has is not queued again; the number is then that of
        the last attempt.
        """
        call = post(Host.STORAGE, _slot(project, frontier, slot), body, accept=JSON, attempts=attempts)
        return (await self._json(call, NewCount)).newcount

    async def read(
        self, project: int, frontier: str, slot: str, mincount: int | None = None, *, known: Container[str] = ()
    ) -> list[Batch]:
        """Return the batches at the head of a slot's queue, with at least ``mincount`` requests if it has so many.

        Each read returns every batch that is not deleted; those whose IDs are ``known`` are left out.
        """

        def fresh(answer: Answer) -> list[Batch]:
            # Known batches come with each read, and decoding their requests would be most of its cost.
            lines = answer.lines(_RawBatch)
            return [Batch(line.id, _PAIRS.decode(line.requests)) for line in lines if line.id not in known]

        call = get(Host.STORAGE, _slot(project, frontier, slot) + "/q", ("mincount", mincount))
        return await self._transport.read(call, fresh)

    async def queue(self, project: int, frontier: str, slot: str, *, count: int = 2000) -> AsyncGenerator[QueuedBatch]:
        """Yield all batches of a slot's queue in order, read ``count`` requests at a time; they stay in the queue.

        Raises :class:`~scrapy_ext.client.platform.errors.UnexpectedAnswer` when the queue has more batches than a
        platform without ``startafter`` returns.
        """
        after: str | None = None
        while True:
            call = get(
                Host.STORAGE,
                _slot(project, frontier, slot) + "/q",
                ("mincount", count),
                ("startafter", after),
                ("meta", "_p"),
            )
            batches = await self._lines(call, QueuedBatch)
            if any(batch.id == after for batch in batches):  # a platform without ``startafter``
                if sum(len(batch.requests) for batch in batches) < count:
                    return
                fault = f"this platform returns the head of a queue alone, and slot {slot} has more requests"
                raise call.error(UnexpectedAnswer, fault)
            for batch in batches:
                yield batch
            if not batches:
                return
            after = batches[-1].id

    async def count(self, project: int, frontier: str, slot: str) -> int:
        """Return the number of requests that are queued in a slot."""
        where = _slot(project, frontier, slot) + "/q/count"
        return await self._count(lambda start: get(Host.STORAGE, where, ("start", start), accept=JSON), QueueCount)

    async def delete_batches(
        self, project: int, frontier: str, slot: str, ids: Iterable[str], *, attempts: int | None = None
    ) -> None:
        """Mark batches as completed; absent ones are ignored."""
        await self._delete_keys(_slot(project, frontier, slot) + "/q/deleted", [*ids], attempts)

    def fingerprints(self, project: int, frontier: str, slot: str) -> AsyncGenerator[str]:
        """Yield the fingerprints of a slot in their order. After a broken connection the listing is read again,
        without those that came before."""
        return self._fingerprints(_slot(project, frontier, slot) + "/f")

    async def _fingerprints(self, where: str) -> AsyncGenerator[str]:
        last: str | None = None
        pages = Pages(self._transport, lambda _after, _size: get(Host.STORAGE, where), _fingerprint, by_count=False)
        async for fp in pages.read():
            if last is None or fp > last:
                last = fp
                yield fp

    # ── several slots; these calls are scrapy-ext's own ──

    async def add_to_slots(self, project: int, frontier: str, bodies: Sequence[tuple[str, bytes]]) -> list[int]:
        """Enqueue requests of several slots, each with the JSON lines of :meth:`add`, with one attempt; return the
        numbers of new ones."""
        lines = b"".join(
            b'{"slot":"%b",%b\n' % (slot.encode(), line[1:]) for slot, body in bodies for line in body.splitlines()
        )
        call = post(Host.STORAGE, _frontier(project, frontier) + "/s", lines, accept=JSON, attempts=1)
        counts = (await self._json(call, SlotCounts)).slots
        return [counts.get(slot, 0) for slot, _ in bodies]

    async def read_slots(self, project: int, frontier: str, reads: Sequence[SlotRead]) -> list[SlotBatch]:
        """Return the batches at the heads of several slots' queues, as :meth:`read` does."""

        def batches(answer: Answer) -> list[SlotBatch]:
            return answer.lines(SlotBatch)

        call = post(Host.STORAGE, _frontier(project, frontier) + "/q", encode(reads))
        return await self._transport.read(call, batches)

    async def delete_of_slots(self, project: int, frontier: str, processed: Sequence[ProcessedBatches]) -> None:
        """Mark batches of several slots as completed, with one attempt; absent ones are ignored."""
        where = _frontier(project, frontier) + "/q/deleted"
        await self._transport.send(post(Host.STORAGE, where, encode(processed), attempts=1))

    # ── requests for crawls; these calls are scrapy-ext's own ──

    async def feed(self, project: int, frontier: str) -> Feed:
        """Return what a push into a frontier needs. Raises :class:`~scrapy_ext.client.platform.errors.NotFound` for a
        frontier that does not exist, and on a platform without this call."""
        return await self._json(get(Host.STORAGE, _feed(project, frontier), accept=JSON), Feed)

    async def declare(
        self, project: int, frontier: str, feed: Feed, *, keep: bool = False, attempts: int | None = None
    ) -> None:
        """Declare a crawl's frontier, whose ``stamps`` are left out. ``keep``: an earlier declaration stays."""
        fields = {"slots": feed.slots, "open": feed.open, "own_fingerprints": feed.own_fingerprints}
        if feed.spread:
            fields["spread"] = True
        if keep:
            fields["keep"] = True
        body = msgspec.json.encode(fields)
        call = put(Host.STORAGE, _feed(project, frontier), body, content_type=JSON, attempts=attempts)
        await self._transport.send(call)

    async def push(
        self, project: int, frontier: str, body: bytes, *, push: str, start: int = 0, slots: int | None = None
    ) -> FedCount:
        """Push requests, given as lines of URLs or of JSON objects under Scrapy's names, all or none.

        Repeated after a failure: with the same ``push`` and ``start`` nothing is queued twice. ``push``: an ID of this
        push. ``start``: number of the first line in it. ``slots``: FRONTIER_SLOTS of the crawl, if none has opened the
        frontier yet.
        """
        parameters = (("push", push), ("start", start), ("slots", slots))
        call = post(Host.STORAGE, _feed(project, frontier), body, parameters=parameters, accept=JSON)
        return await self._json(call, FedCount)

    async def delete_slot(self, project: int, frontier: str, slot: str) -> None:
        """Delete a slot: its queue and its fingerprints."""
        await self._transport.send(delete(Host.STORAGE, _slot(project, frontier, slot)))

    async def frontiers(self, project: int) -> list[str]:
        """Return the names of the project's frontiers."""
        return await self._json(get(Host.STORAGE, path("hcf", project, "list"), accept=JSON), list[str])

    async def slots(self, project: int, frontier: str) -> list[str]:
        """Return the names of the slots of a frontier."""
        check_name(frontier, "frontier")
        return await self._json(get(Host.STORAGE, path("hcf", project, frontier, "list"), accept=JSON), list[str])


async def put_back(
    frontier: Frontier, project: int, name: str, on_group: Callable[[int], None] = lambda _number: None
) -> int:
    """Enqueue all dead letters again, each in its slot; returns their number. ``on_group`` is called with the size of
    each group of them.

    Raises ``ValueError`` when the slot of dead letters holds something else.
    """
    count = 0
    while batches := await frontier.read(project, name, DEAD_LETTERS, MAX_BATCH):
        by_slot: dict[str, list[FrontierRequest]] = {}
        for key, letter in (pair for batch in batches for pair in batch.requests):
            back = revived(key, letter)
            by_slot.setdefault(back.slot, []).append(back.request)
        for slot, requests in by_slot.items():
            await frontier.add(project, name, slot, encode(requests))
        await frontier.delete_batches(project, name, DEAD_LETTERS, [batch.id for batch in batches])
        number = sum(len(batch.requests) for batch in batches)
        on_group(number)
        count += number
    return count


def _frontier(project: int, frontier: str) -> str:
    check_name(frontier, "frontier")
    return path("hcf", project, frontier)


def _slot(project: int, frontier: str, slot: str) -> str:
    check_name(frontier, "frontier")
    check_name(slot, "slot")
    return path("hcf", project, frontier, "s", slot)


def _feed(project: int, frontier: str) -> str:
    check_name(frontier, "frontier")
    return path("hcf", project, frontier, "feed")


def _fingerprint(line: bytes) -> tuple[str, str]:
    try:
        fp = _FINGERPRINT.decode(line).fp
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LineError(f"a line is not a fingerprint ({error})") from None
    return fp, fp
