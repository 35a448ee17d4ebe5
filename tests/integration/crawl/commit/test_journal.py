"""Only one writer can add the next record to a journal, whatever gets lost or comes late."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.crawl.commit.events import Checkpoint
from scrapy_ext.crawl.commit.journal import CommitLog, Fenced, UnreadableJournal
from tests.support.crawl_processes import PROJECT, add, journal
from tests.support.eventually import eventually_async
from tests.support.watched_client import WatchedClient, fails, nothing


async def append(to, number, **data):
    """Return True if the record was added."""
    try:
        await to.append(number, data)
    except Fenced:
        return False
    return True


async def test_an_empty_journal_has_no_head(client, frontier, retry):
    assert await journal(client, frontier, "a", retry).head() is None


async def test_of_many_that_append_the_same_number_exactly_one_wins(client, frontier, retry):
    writers = [journal(client, frontier, f"w{n}", retry) for n in range(20)]
    for number in (1, 2, 3):
        won = await asyncio.gather(*(append(writer, number, by=n) for n, writer in enumerate(writers)))
        assert won.count(True) == 1
        head = await writers[0].head()
        assert (head.number, head.data) == (number, {"by": won.index(True)})


async def test_a_lost_reply_is_recognised_as_ones_own_append(client, frontier, retry):
    watched = WatchedClient(client)
    mine = journal(watched, frontier, "a", retry)
    watched.after = fails("frontier.add", times=3)
    await mine.append(1, {"says": "this"})
    assert (await mine.head()).data == {"says": "this"}
    await mine.append(2, {})
    assert (await mine.head()).number == 2


async def test_a_request_that_was_lost_is_sent_again(client, frontier, retry):
    watched = WatchedClient(client)
    mine = journal(watched, frontier, "a", retry)
    watched.before = fails("frontier.add", "frontier.read", times=4)
    await mine.append(1, {"says": "this"})
    assert (await mine.head()).data == {"says": "this"}


async def test_a_lost_reply_of_an_append_that_somebody_else_was_faster_with_is_a_refusal(client, frontier, retry):
    watched = WatchedClient(client)
    mine = journal(watched, frontier, "a", retry)
    await journal(client, frontier, "b", retry).append(1, {"says": "theirs"})
    watched.after = fails("frontier.add")
    with pytest.raises(Fenced):
        await mine.append(1, {"says": "mine"})
    assert (await mine.head()).data == {"says": "theirs"}


@pytest.mark.parametrize("has_arrived", [True, False], ids=["arrived", "lost"])
async def test_a_cancelled_append_does_not_confuse_the_next(client, frontier, retry, has_arrived):
    watched = WatchedClient(client)
    log = CommitLog(journal(watched, frontier, "a", retry), 0, Checkpoint())
    reached = asyncio.Event()

    async def hang(name, arguments):
        reached.set()
        await asyncio.Event().wait()

    setattr(watched, "after" if has_arrived else "before", hang)
    writing = asyncio.ensure_future(log.write())
    await reached.wait()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    watched.before = watched.after = nothing

    log.checkpoint.worker = "later"
    await log.write()
    await log.write()
    head = await journal(client, frontier, "b", retry).head()
    assert head.data["worker"] == "later"
    assert not log.is_fenced


async def test_a_cancelled_append_that_arrives_late_changes_nothing(client, frontier, retry):
    watched = WatchedClient(client)
    log = CommitLog(journal(watched, frontier, "a", retry), 0, Checkpoint(worker="early"))
    late = []

    async def hold(name, arguments):
        late.append(arguments)
        await asyncio.Event().wait()

    watched.before = hold
    writing = asyncio.ensure_future(log.write())
    await eventually_async(lambda: late)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    watched.before = nothing

    log.checkpoint.worker = "later"
    await log.write()
    await client.frontier.add(*late[0])
    assert (await journal(client, frontier, "b", retry).head()).data["worker"] == "later"
    await log.write()
    assert not log.is_fenced


async def test_a_fenced_writer_can_never_append_again(client, frontier, retry):
    log = CommitLog(journal(client, frontier, "a", retry), 0, Checkpoint())
    await log.write()
    await journal(client, frontier, "b", retry).append(2, {"says": "mine now"})
    for _ in range(5):
        with pytest.raises(Fenced):
            await log.write()
    assert log.is_fenced
    head = await journal(client, frontier, "c", retry).head()
    assert (head.number, head.data) == (2, {"says": "mine now"})


async def test_a_writer_that_writes_nothing_can_look_whether_it_was_fenced(client, frontier, retry):
    mine, other = (journal(client, frontier, writer, retry) for writer in ("mine", "other"))
    log = CommitLog(mine, 0, Checkpoint())
    await log.check()  # Nothing is written yet.
    await log.write()
    await log.check()
    await other.append(2, {})
    with pytest.raises(Fenced):
        await log.check()
    assert log.is_fenced


async def test_a_writer_that_was_fenced_during_an_append_is_notified_though_its_record_is_there(
    client, frontier, retry
):
    """Whoever took over has seen the record, and does what it says."""
    watched = WatchedClient(client)
    mine = journal(watched, frontier, "a", retry)

    async def take_over_and_lose_the_reply(name, arguments):
        if name == "frontier.add":
            watched.after = nothing
            await journal(client, frontier, "b", retry).append(2, {})
            await fails(name)(name, arguments)

    watched.after = take_over_and_lose_the_reply
    with pytest.raises(Fenced):
        await mine.append(1, {})


async def test_two_writes_at_once_are_two_records(client, frontier, retry):
    log = CommitLog(journal(client, frontier, "a", retry), 0, Checkpoint())
    await asyncio.gather(*(log.write() for _ in range(10)))
    assert (await journal(client, frontier, "b", retry).head()).number == 10


async def test_pruning_keeps_the_newest_and_frees_no_number(client, frontier, retry):
    mine = journal(client, frontier, "a", retry)
    for number in range(1, 121):
        await mine.append(number, {"n": number})
    assert (await mine.head()).data == {"n": 120}
    left = await client.frontier.read(PROJECT, frontier, "journal", 1000)
    assert sum(len(batch.requests) for batch in left) < 60
    late = journal(client, frontier, "b", retry)
    assert not any([await append(late, number) for number in (1, 49, 50, 100, 119, 120)])
    assert (await mine.head()).data == {"n": 120}


async def test_a_journal_that_cannot_be_pruned_now_goes_on(client, frontier, retry):
    watched = WatchedClient(client)
    mine = journal(watched, frontier, "a", retry)
    watched.before = fails("frontier.delete_batches", times=2)
    for number in range(1, 54):
        await mine.append(number, {})
    left = await client.frontier.read(PROJECT, frontier, "journal", 1000)
    assert [fp for batch in left for fp, _ in batch.requests] == ["53", "52"]


async def test_a_platform_that_stays_away_is_reported_after_the_retry_time(client, frontier):
    watched = WatchedClient(client)
    mine = journal(watched, frontier, "a", Retry(0.05, Backoff(0.001, 0.01)))
    watched.before = fails("frontier.add", times=10**6)
    with pytest.raises(Exception, match="broke"):
        await mine.append(1, {})


@pytest.mark.parametrize("fp", ["1", "a page"])
async def test_a_slot_that_holds_something_else_is_named(client, frontier, retry, fp):
    await add(client, frontier, "journal", fp)
    with pytest.raises(UnreadableJournal, match=f"slot journal of frontier {frontier} is no journal"):
        await journal(client, frontier, "a", retry).head()


async def test_an_append_to_a_slot_that_holds_something_else_is_reported(client, frontier, retry):
    await add(client, frontier, "journal", "1")
    async with timeout_after(60):
        with pytest.raises(UnreadableJournal):
            await journal(client, frontier, "a", retry).append(1, {})
