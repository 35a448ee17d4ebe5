"""Commits of a crawl on a real platform."""

from __future__ import annotations

import asyncio

import msgspec
from scrapy import Request

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.commit.events import Lot, OpenBatch, Progress, Stored
from scrapy_ext.crawl.commit.execution import Committer
from scrapy_ext.crawl.commit.protocol import Commits
from scrapy_ext.crawl.commit.tracking import Entry
from tests.support.crawl_processes import PROJECT, add, stored

JOB = JobKey(PROJECT, 1, 1)


def request(batch, position=0, *items):
    """A request that is complete."""
    entry = Entry("fp", Request("http://a.example/"), "a.example", Stored("fp", {}, batch, position), None)
    return lot_of(entry, *items)


def lot_of(entry, *items):
    return Lot(list(items), entry.stored, entry.payloads, origin=entry)


async def test_commits_on_a_real_platform_are_there_and_the_next_process_stores_nothing_twice(
    process, client, job, frontier
):
    await add(client, frontier, "0", *map(str, range(300)))
    first = await process().open(0)
    batches = await client.frontier.read(PROJECT, frontier, "0", 1000)
    opened = [OpenBatch(0, batch.id, len(batch.requests)) for batch in batches]
    committed = []
    commits = Committer(
        Commits(first.log.checkpoint, str(job), first.writer, 0),
        first.log,
        first.finisher,
        interval=60.0,
        flush_children=lambda: asyncio.sleep(0),
        on_committed=committed.append,
        on_failure=committed.append,
    )
    for batch, read in zip(opened, batches, strict=True):
        for position, (fp, _) in enumerate(read.requests):
            commits.add(request(batch, position, *[msgspec.json.encode({"of": fp, "n": n}) for n in range(4)]))
            await asyncio.sleep(0)
    await commits.close()
    assert commits.commits.failure is None
    successor = await process().open(0)
    assert not await first.can_commit()
    assert successor.log.checkpoint.progress == Progress()
    assert await client.frontier.read(PROJECT, frontier, "0", 1000) == []
    items = await stored(client, job)
    assert sorted((int(item["of"]), item["n"]) for item in items) == [(fp, n) for fp in range(300) for n in range(4)]
