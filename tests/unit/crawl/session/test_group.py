"""A worker of a group: what it reports and when, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from types import SimpleNamespace

import msgspec
import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.job_data import journal_of
from scrapy_ext.api.platform.permits import Permit
from scrapy_ext.api.platform.stat_kinds import Stat, StatKind
from scrapy_ext.api.platform.workers import Closing, Counts, LiveWorker, Queue, Report, ReportAnswer
from scrapy_ext.client.platform.errors import AttemptOver, Gone, PlatformError, Unreachable
from scrapy_ext.client.retry import Backoff, Retry
from scrapy_ext.crawl.session import group_reports
from scrapy_ext.crawl.session.group import Joined, Membership, join
from scrapy_ext.crawl.session.group_shares import GroupShares
from scrapy_ext.crawl.session.job import CrawlJob
from scrapy_ext.crawl.session.permits import Demand, Permits, SiteLimits
from tests.support.eventually import eventually_async

KEY = JobKey(1, 2, 3)
RETRY = Retry(0.0, Backoff(0.001, 0.01))
ME, OTHER = LiveWorker(4, 0, 1), LiveWorker(5, 1, 7)
JOINED = ReportAnswer(attempt=4, worker=0, token="secret", workers=(ME,))


class Platform:
    """Answers to reports; ``errors`` are raised before."""

    def __init__(self, answer: ReportAnswer = JOINED) -> None:
        self.workers = SimpleNamespace(report=self.report)
        self.answer = answer
        self.reports = []
        self.errors = []
        self.before_answer = lambda: None

    async def report(self, project, report):
        assert project == KEY.project
        return await self.send(report)

    async def send(self, report):
        self.reports.append(report)
        if self.errors:
            raise self.errors.pop(0)
        self.before_answer()
        return self.answer

    def set(self, **fields):
        self.answer = msgspec.structs.replace(self.answer, **fields)


@pytest.fixture
def platform():
    return Platform()


@pytest.fixture
def clock():
    return SimpleNamespace(now=1000.0)


class State:
    """State of the worker that its reports have. ``gone``: attempts whose processes have ended."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.stats = {}
        self.gone = set()


@pytest.fixture
def state():
    return State()


@pytest.fixture
def lost():
    return []


@pytest.fixture
def lease_time():
    return 30.0


@pytest.fixture
async def group(platform, clock, state, lost, lease_time, monkeypatch):
    """A worker that has joined, whose reports are sent when the test wants one."""
    for name, seconds in (("_LEAST", 0.0), ("_SOON", group_reports.INTERVAL)):
        monkeypatch.setattr(group_reports, name, seconds)
    group = Membership(
        Joined(KEY, 4, 0, "secret", JOINED, clock.now),
        lease_time=lease_time,
        limits_of=lambda _domain: SiteLimits(8),
        counts=lambda: state.counts,
        stats=lambda: state.stats,
        is_gone=lambda attempt: attempt in state.gone,
        clock=lambda: clock.now,
    )
    group.reports.start(platform.send, lost.append)
    yield group
    await group.reports.stop()


async def test_a_worker_gets_its_attempt_and_its_number():
    job = Joined(KEY, 4, 0, "secret", JOINED, 0.0).job(CrawlJob(KEY, resumed=True))
    assert (job.attempt, job.worker, job.may_have_records) == (4, 0, False)


@pytest.mark.parametrize(
    ("given", "workers", "resume"), [("4", "4", False), ("2..8", "2..8", False), ("resume 2..8", "2..8", True)]
)
async def test_a_join_that_is_repeated_is_that_of_the_same_process(platform, given, workers, resume):
    platform.errors = [Unreachable("no answer")]
    joined = await join(platform, KEY, given, RETRY)
    first, again = platform.reports
    assert first == again
    assert (first.job, first.attempt, first.number) == ("1/2/3", None, 1)
    assert (first.workers, first.resume) == (workers, resume)
    assert (joined.attempt, joined.worker, joined.token) == (4, 0, "secret")


async def test_a_report_has_the_state_of_its_worker(platform, clock, state, group):
    group.numbers.watch(lambda: Queue(5, True, 2))
    state.counts = Counts(1, 2, 3)
    clock.now += 2.0
    await group.reports.refreshed()
    report = platform.reports[-1]
    assert (report.attempt, report.number, report.queue, report.counts) == (4, 2, Queue(5, True, 2), Counts(1, 2, 3))
    group.numbers.watch(Queue)
    clock.now += 1.5
    await group.reports.refreshed()
    assert platform.reports[-1].queue == Queue(idle=1.5)


async def test_each_fifth_report_has_the_stats(platform, state, group):
    state.stats = {"item_scraped_count": Stat(StatKind.SUM, 5)}
    for _ in range(10):
        await group.reports.refreshed()
    assert [report.number for report in platform.reports if report.stats is not None] == [5, 10]


async def test_a_failed_report_is_followed_by_a_later_one(platform, group):
    platform.errors = [Unreachable("no answer")]
    with pytest.raises(Unreachable):
        await group.reports.refreshed()
    await group.reports.refreshed()
    assert [report.number for report in platform.reports] == [2, 3]


async def test_a_worker_whose_reports_are_not_stored_hands_out_nothing(platform, clock, group):
    assert not group.liveness.has_lapsed()
    clock.now += 20.1
    assert group.liveness.has_lapsed()
    platform.errors = [Unreachable("no answer")]
    with pytest.raises(PlatformError):
        await group.reports.refreshed()
    assert group.liveness.has_lapsed()
    await group.reports.refreshed()
    assert not group.liveness.has_lapsed()


@pytest.mark.parametrize("error", [AttemptOver("over"), Gone("deleted")])
async def test_a_worker_that_is_over_learns_it_and_reports_nothing_more(platform, group, lost, error):
    platform.errors = [error]
    with pytest.raises(type(error)):
        await group.reports.refreshed()
    assert lost == [error]
    with pytest.raises(type(error)):
        await group.reports.refreshed()
    assert len(platform.reports) == 1


def test_many_workers_report_no_sooner_than_ever():
    seconds = [group_reports.soon(workers) for workers in (1, 10, 20, 40, 100)]
    assert seconds == [0.5, 0.5, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "cause",
    [
        lambda reports, platform: platform.set(workers=(ME, OTHER)),
        lambda reports, platform: platform.set(permits={"a.example": Permit(1, short=True)}),
        lambda reports, platform: reports.settle(),
    ],
    ids=["a worker has come", "a worker waits for a permit", "this one waits for the others"],
)
async def test_reports_come_sooner(platform, monkeypatch, cause):
    for name, seconds in (("_LEAST", 0.0), ("_SOON", 0.01), ("_SETTLING", -1.0), ("INTERVAL", 3600.0)):
        monkeypatch.setattr(group_reports, name, seconds)
    reports = group_reports.Reports(Report(job=str(KEY), attempt=4, number=1), JOINED, time.monotonic() - 1)
    shares = GroupShares(reports, Permits(lambda _domain: SiteLimits(1), reports.hurry))
    shares.permits.sources.append(lambda: [Demand("a.example", 0, 1)])
    reports.start(platform.send, [].append)
    await reports.refreshed()  # the first answer names the first worker
    sent = len(platform.reports)
    platform.set(permits={"a.example": Permit(1)})
    await reports.refreshed()
    assert len(platform.reports) == sent + 1
    monkeypatch.setattr(group_reports, "_SETTLING", 1000.0)
    cause(reports, platform)
    await reports.refreshed()
    await eventually_async(lambda: len(platform.reports) > sent + 4, what="reports before their interval")
    await reports.stop()


# ── other workers ──


def silent(report):
    return [(each.attempt, each.number) for each in report.silent]


async def last(platform, group):
    """The next report."""
    await group.reports.refreshed()
    return platform.reports[-1]


async def test_only_listed_workers_are_alive_and_one_that_just_joined_is_looked_up(platform, group):
    names = [journal_of(KEY, attempt) for attempt in (4, 5, 6)]
    platform.set(workers=(ME, OTHER, LiveWorker(6, 2, 3, ended=True)))
    assert await group.liveness.live(names) == names[:2]
    assert len(platform.reports) == 1
    assert await group.liveness.live(names[:2]) == names[:2]
    assert len(platform.reports) == 1


async def test_a_worker_whose_reports_stop_is_named_after_the_lease_time(platform, clock, group, caplog):
    platform.set(workers=(ME, OTHER))
    for _ in range(4):
        await group.reports.refreshed()
        assert platform.reports[-1].silent == ()
        clock.now += 9.9
    await group.reports.refreshed()
    assert silent(await last(platform, group)) == [(5, 7)]
    assert "No report for 30 s (FRONTIER_LEASE_TIME) of attempt 5" in caplog.text
    assert "increase FRONTIER_LEASE_TIME" in caplog.text
    platform.set(workers=(ME, msgspec.structs.replace(OTHER, number=8)))
    await group.reports.refreshed()
    await group.reports.refreshed()
    assert platform.reports[-1].silent == ()


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_worker_whose_process_has_ended_is_named_at_once_if_it_sent_no_last_report(
    platform, state, group, caplog, is_listed
):
    platform.set(workers=(ME, OTHER, LiveWorker(6, 2, 9)))
    await group.reports.refreshed()
    assert silent(await last(platform, group)) == []
    state.gone.add(5)
    platform.set(workers=(ME, *([OTHER] * is_listed), LiveWorker(6, 2, 9)))
    await group.reports.refreshed()
    assert silent(await last(platform, group)) == ([(5, 7)] if is_listed else [])
    assert ("The process of attempt 5 has ended" in caplog.text) == is_listed


async def test_a_worker_that_ends_while_its_last_report_is_on_its_way_is_not_named(platform, state, group):
    """Its process ends between the answer and the look at its lock."""
    platform.set(workers=(ME, OTHER))
    await group.reports.refreshed()
    platform.before_answer = lambda: state.gone.add(5)
    await group.reports.refreshed()
    platform.set(workers=(ME,))
    assert silent(await last(platform, group)) == []


@pytest.mark.parametrize(("blocked", "is_logged"), [(19.0, False), (25.0, True)])
async def test_a_worker_that_was_blocked_logs_the_remedy_when_it_wakes_up(
    platform, clock, group, caplog, blocked, is_logged
):
    await group.reports.refreshed()
    clock.now += blocked
    await group.reports.refreshed()
    assert ("This worker could send no report for 25 s: a callback has blocked" in caplog.text) == is_logged
    assert caplog.text.count("increase FRONTIER_LEASE_TIME") == is_logged


@pytest.mark.parametrize("lease_time", [30.0, 90.0])
async def test_a_worker_that_never_reported_is_named_by_one_that_waits_for_its_end_after_a_longer_time(
    platform, clock, group, caplog, lease_time
):
    platform.set(workers=(ME, LiveWorker(6, 2, 0)))

    async def named_within(seconds):
        for _ in range(int(seconds / 10)):
            clock.now += 10.0
            await group.reports.refreshed()
        return silent(await last(platform, group))

    assert await named_within(200.0) == []
    group.liveness.close_journal()
    await group.reports.refreshed()
    longest = max(60.0, lease_time)
    assert await named_within(longest) == []
    assert await named_within(10.0) == [(6, 0)]
    assert f"No report for {longest:.0f} s" in caplog.text


async def test_nobody_is_named_after_an_outage_of_this_worker(platform, clock, group):
    platform.set(workers=(ME, OTHER))
    await group.reports.refreshed()
    clock.now += 60.0
    await group.reports.refreshed()
    await group.reports.refreshed()
    assert platform.reports[-1].silent == ()


# ── start() ──


@pytest.mark.parametrize(
    ("decision", "runs"),
    [({"run_start": True}, True), ({"started": True}, False), ({"closing": Closing("shutdown")}, False)],
    ids=["this one runs it", "it is at its end", "the crawl closes"],
)
async def test_start_waits_for_the_decision_of_the_group(platform, group, decision, runs):
    before = []

    async def note():
        before.append("start")
        return True

    group.start.prepare_with(note)
    waiting = asyncio.ensure_future(group.start.may_run())
    await group.reports.refreshed()
    assert not waiting.done()
    platform.set(**decision)
    await group.reports.refreshed()
    assert await waiting is runs
    assert before == ["start"] * runs
    group.start.done()
    await group.reports.refreshed()
    assert platform.reports[-1].start == ("done" if runs else None)


async def test_a_worker_that_cannot_run_start_reports_nothing_of_it(platform, group):
    async def fails():
        return False

    group.start.prepare_with(fails)
    platform.set(run_start=True)
    await group.reports.refreshed()
    assert not await group.start.may_run()
    await group.reports.refreshed()
    assert platform.reports[-1].start is None


async def test_a_worker_that_closes_does_not_report_the_end_of_start(platform, group):
    platform.set(run_start=True)
    await group.reports.refreshed()
    assert await group.start.may_run()
    group.closing.close("shutdown")
    group.start.done()
    await group.reports.refreshed()
    assert platform.reports[-1].start == "running"


async def test_a_worker_that_runs_start_reports_it_until_the_end(platform, group):
    platform.set(run_start=True)
    await group.reports.refreshed()
    assert await group.start.may_run()
    await group.reports.refreshed()
    assert platform.reports[-1].start == "running"
    group.start.done()
    for _ in range(2):
        await group.reports.refreshed()
        assert platform.reports[-1].start == "done"


# ── closing ──


@pytest.mark.parametrize(
    ("reason", "sent"),
    [("shutdown", True), ("closespider_itemcount", True), ("finished", False), ("frontier_lease_lost", False)],
)
async def test_a_reason_that_concerns_all_is_reported_at_once(platform, group, reason, sent):
    group.closing.close(reason)
    group.closing.close("another")
    if sent:
        await eventually_async(lambda: platform.reports, what="a report")
    await group.reports.refreshed()
    assert platform.reports[-1].closing == (reason if sent else None)


async def test_a_crawl_is_closed_once_when_its_spider_is_open(platform, group):
    platform.set(closing=Closing("shutdown", attempt=5))
    await group.reports.refreshed()
    closed = []
    group.closing.connect(closed.append, lambda: None)
    for _ in range(3):
        await group.reports.refreshed()
    assert closed == [Closing("shutdown", attempt=5)]


# ── the end ──


@pytest.mark.parametrize(
    ("reason", "left", "job_reason"),
    [
        ("finished", {"workers": ()}, "finished"),
        ("finished", {"workers": (msgspec.structs.replace(ME, ended=True),)}, "finished"),
        ("finished", {"workers": (OTHER,)}, None),
        ("finished", {"workers": (), "closing": Closing("cancelled")}, "cancelled"),
        ("shutdown", {"workers": ()}, "shutdown"),
        ("shutdown", {"workers": (), "closing": Closing("cancelled")}, "cancelled"),
    ],
)
async def test_the_last_worker_learns_how_the_crawl_has_ended(platform, state, group, reason, left, job_reason):
    state.stats = {"item_scraped_count": Stat(StatKind.SUM, 5)}
    platform.set(workers=())
    await group.reports.refreshed()
    platform.set(**left)
    if OTHER in platform.answer.workers:
        await group.reports.stop()
    assert await group.end.leave(reason, platform.send, RETRY) == job_reason
    *_, first, last = platform.reports
    assert (last.last, last.outcome, last.stats) == (True, reason, state.stats)
    assert last.closing == (None if reason == "finished" else reason)
    assert last.number > first.number


async def left(platform, group, reason="finished"):
    """Let a worker leave in the background."""
    leaving = asyncio.ensure_future(group.end.leave(reason, platform.send, RETRY))
    await group.reports.refreshed()
    return leaving


async def test_the_worker_with_the_lowest_attempt_leaves_last(platform, group):
    platform.set(workers=(ME, OTHER))
    leaving = await left(platform, group)
    for number in (8, 9, 10):
        platform.set(workers=(ME, msgspec.structs.replace(OTHER, number=number)))
        await group.reports.refreshed()
        assert not leaving.done()
    platform.set(workers=(ME,))
    await group.reports.refreshed()
    await leaving
    assert platform.reports[-1].last


async def test_a_worker_whose_journal_is_closed_reports_that_at_once(platform, group):
    group.liveness.close_journal()
    await eventually_async(lambda: platform.reports, what="a report")
    assert platform.reports[-1].closed
    await group.reports.refreshed()
    assert platform.reports[-1].closed


async def test_a_closed_worker_has_no_slots_and_is_waited_for(platform, group):
    closed = msgspec.structs.replace(OTHER, closed=True)
    platform.set(workers=(ME, closed))
    assert await group.liveness.live([journal_of(KEY, 5)]) == []
    reports = len(platform.reports)
    assert await group.liveness.live([journal_of(KEY, 5)]) == []
    assert len(platform.reports) == reports, "it is listed, and is not looked up again"
    leaving = await left(platform, group)
    await group.reports.refreshed()
    assert not leaving.done()
    platform.set(workers=(ME,))
    await leaving


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_wait_for_the_others(platform, group, number):
    usual = signal.getsignal(number)
    platform.set(workers=(ME, OTHER))
    leaving = await left(platform, group)
    signal.raise_signal(number)
    await leaving
    assert (platform.reports[-1].last, platform.reports[-1].outcome) == (True, "finished")
    assert signal.getsignal(number) is usual


async def test_a_worker_that_waits_for_others_logs_which(platform, clock, group, caplog):
    caplog.set_level(logging.INFO)
    platform.set(workers=(ME, OTHER, LiveWorker(7, 3, 2)))
    leaving = await left(platform, group)
    await group.reports.refreshed()
    assert "waits for the end" not in caplog.text
    for _ in range(3):
        clock.now += 5.0
        await group.reports.refreshed()
    await eventually_async(lambda: "waits" in caplog.text, what="a message")
    assert caplog.text.count("This worker waits for the end of worker 1 (attempt 5), worker 3 (attempt 7)") == 1
    platform.set(workers=(ME,))
    await group.reports.refreshed()
    await leaving


@pytest.mark.parametrize(
    ("reason", "closing", "alone"),
    [("shutdown", None, True), ("shutdown", Closing("shutdown", attempt=4), False), ("finished", None, False)],
)
async def test_a_worker_that_closes_knows_whether_the_crawl_goes_on(platform, group, reason, closing, alone):
    platform.set(closing=closing)
    group.closing.close(reason)
    assert await group.closing.leaves_alone() is alone


async def test_another_one_leaves_when_it_has_seen_that_the_lowest_is_alive(platform, clock, group):
    first = LiveWorker(2, 0, 5)
    platform.set(workers=(first, ME, OTHER))
    leaving = await left(platform, group)
    for _ in range(5):
        await group.reports.refreshed()
        clock.now += 1.9
        assert not leaving.done()
    # It is silent, and was removed.
    second = LiveWorker(3, 0, 5)
    platform.set(workers=(second, ME, OTHER))
    for _ in range(3):
        await group.reports.refreshed()
        assert not leaving.done()
    platform.set(workers=(msgspec.structs.replace(second, number=6), ME, OTHER))
    await eventually_async(leaving.done, what="it leaves")
    assert platform.reports[-1].last


async def test_a_last_report_whose_answer_was_lost_is_no_failure(platform, group):
    await group.reports.stop()
    platform.errors = [Unreachable("no answer"), AttemptOver("over")]
    assert await group.end.leave("finished", platform.send, RETRY) is None
    assert [report.last for report in platform.reports] == [True, True]


# ── others that end with work left, after the end was found ──


async def looks(is_over, platform=None, unfinished=0):
    """A look at the work that is left; another worker ends meanwhile as the last of so many."""
    if platform is not None:
        platform.set(unfinished=unfinished)
    return is_over


@pytest.mark.parametrize(("is_over", "outcome"), [(True, "finished"), (False, "shutdown")])
async def test_a_worker_that_waits_looks_again_when_another_one_has_ended_unfinished(
    platform, group, caplog, is_over, outcome
):
    assert await group.end.found_by(lambda: looks(True))
    group.end.look_with(lambda: looks(is_over))
    platform.set(workers=(ME, OTHER))
    leaving = await left(platform, group)
    platform.set(workers=(), unfinished=1)
    assert await leaving == outcome
    assert platform.reports[-1].outcome == outcome
    assert platform.reports[-1].unfinished == (1 if is_over else None)
    assert ("its requests are left" in caplog.text) is not is_over


async def test_a_worker_that_ends_during_the_look_is_looked_for_again(platform, group):
    platform.set(unfinished=1)
    await group.reports.refreshed()
    assert await group.end.found_by(lambda: looks(True, platform, 2))
    platform.set(workers=())
    looked = []

    async def look():
        looked.append(True)
        return True

    group.end.look_with(look)
    assert await group.end.leave("finished", platform.send, RETRY) == "finished"
    assert (looked, platform.reports[-1].unfinished) == ([True], 2)


async def test_a_worker_that_has_found_the_end_looks_no_more_when_all_others_have(platform, group):
    platform.set(workers=(), unfinished=3)
    await group.reports.refreshed()
    assert await group.end.found_by(lambda: looks(True))

    async def look():
        raise AssertionError("it has looked again")

    group.end.look_with(look)
    assert await group.end.leave("finished", platform.send, RETRY) == "finished"
    assert platform.reports[-1].unfinished == 3


async def test_an_end_that_the_platform_did_not_accept_is_none(platform, group):
    """Another worker has ended between the last two answers to this one."""
    assert await group.end.found_by(lambda: looks(True))
    await group.reports.refreshed()
    await group.reports.stop()
    platform.set(workers=(), unfinished=1)
    assert await group.end.leave("finished", platform.send, RETRY) == "shutdown"


async def test_a_worker_that_cannot_look_does_not_end_as_finished(platform, group):
    assert await group.end.found_by(lambda: looks(True))

    async def look():
        raise Unreachable("no answer")

    group.end.look_with(look)
    platform.set(workers=(), unfinished=1)
    assert await group.end.leave("finished", platform.send, RETRY) == "shutdown"
