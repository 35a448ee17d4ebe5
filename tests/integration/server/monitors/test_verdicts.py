"""Verdicts on finished jobs, given once by the process that checks monitors, and the health of spiders."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from scrapy_ext.api.platform.alerts import NewTarget
from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.monitors import NewMonitor
from scrapy_ext.api.platform.retention import rule_of
from scrapy_ext.api.platform.verdicts import Verdict
from scrapy_ext.server.monitors.evaluating import Evaluator
from scrapy_ext.server.monitors.item_schemas import ItemSchemas
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.jobs.queries import JobFilter, JobPage
from scrapy_ext.server.store.jobs.rows import verdict_text
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.records.chunks import LOGS
from scrapy_ext.server.store.verdicts import RUNS, SpiderHealth
from tests.support.packing import pack_chunk
from tests.support.stored_jobs import add_items, new_job
from tests.support.stores import Clock

LINE = """Spider error processing <GET https://a.example/{n}> (referer: None)
Traceback (most recent call last):
  File "/srv/shop/shop.py", line 34, in parse
    data["headline"]
KeyError: 'headline'"""


@pytest.fixture
async def evaluator(store: Store) -> AsyncIterator[Evaluator]:
    schemas = ItemSchemas()
    yield Evaluator(store, Messages(""), schemas)
    await schemas.stop()


async def ended(
    store: Store, spider: str, items: int, reason: str = "finished", errors: int = 0, **metadata: object
) -> JobKey:
    key = await new_job(store, spider, "running", **metadata)
    if items:
        await add_items(store, key, items)
    if errors:
        lines = [{"message": LINE.format(n=n), "level": 40, "time": 5 + n} for n in range(errors)]
        await store.logs.write(key, None, [pack_chunk(LOGS, [msgspec.json.encode(line) for line in lines], lines)])
    await store.jobs.change(key.project, [Change(key, JobState.FINISHED, {"close_reason": reason})], "test")
    return key


async def verdicts(store: Store, project: int = 1) -> list[tuple[str, Verdict]]:
    return [(each.name, each.verdict) for each in (await store.verdicts.worst(project, 100))[1]]


async def only(store: Store) -> SpiderHealth:
    total, (health,) = await store.verdicts.worst(1, 10)
    assert total == 1
    return health


async def test_each_finished_job_is_judged_once_with_its_reasons(store: Store, evaluator: Evaluator) -> None:
    keys = [await ended(store, "books", 10) for _ in range(3)]
    few = await ended(store, "books", 2, errors=2)
    other = await ended(store, "books", 1, spider_args={"category": "9"})
    while await evaluator.run_due():
        pass
    assert [(await store.verdicts.of_job(key)).verdict for key in [*keys, other]] == [Verdict.GREEN] * 4  # type: ignore[union-attr]
    found = await store.verdicts.of_job(few)
    assert found is not None
    assert [reason.sentence for reason in found.reasons] == [
        "2 items, 20 % of the 10 of runs with its arguments (median)",
        "2 errors in the log",
    ]
    assert [(each.title, each.count, each.callback, each.place, each.first, each.last) for each in found.errors] == [
        ("KeyError: 'headline'", 2, "parse", "shop.py:34", 5, 6)
    ]
    job = await store.jobs.get(few)
    assert job is not None
    assert job.verdict is Verdict.AMBER
    assert not await evaluator.run_due()


async def test_a_spider_is_as_bad_as_the_last_run_of_each_of_its_arguments(store: Store, evaluator: Evaluator) -> None:
    bad = await ended(store, "books", 1, "start_error", spider_args={"category": "9"})
    for _ in range(2):
        await ended(store, "books", 1, spider_args={"category": "8"})
    await evaluator.run_due()
    health = await only(store)
    assert health.verdict is Verdict.RED
    assert [(each.job, each.reason.sentence) for each in health.health.reasons] == [(bad.job, "it failed: start_error")]
    assert [run.verdict for run in health.health.runs] == [Verdict.GREEN, Verdict.GREEN, Verdict.RED]
    await ended(store, "books", 1, spider_args={"category": "9"})
    await evaluator.run_due()
    assert (await only(store)).verdict is Verdict.GREEN


async def test_the_error_of_a_spider_is_that_of_the_run_that_needs_somebody(store: Store, evaluator: Evaluator) -> None:
    await ended(store, "books", 1, errors=12, spider_args={"category": "9"})
    await ended(store, "books", 1, spider_args={"category": "8"})
    await evaluator.run_due()
    health = (await only(store)).health
    assert (health.runs[0].job, health.reasons[0].job) == (2, 1)
    assert health.error == "KeyError: 'headline' × 12 (parse, shop.py:34)"


async def test_a_cancelled_run_says_nothing_about_its_spider(store: Store, evaluator: Evaluator) -> None:
    await ended(store, "books", 1, "failed")
    await ended(store, "books", 0, "cancelled")
    await evaluator.run_due()
    health = await only(store)
    assert (health.verdict, health.health.runs[0].verdict) == (Verdict.RED, Verdict.NONE)


async def test_the_worst_spiders_come_first_and_are_counted(store: Store, evaluator: Evaluator) -> None:
    await ended(store, "red", 1, "failed")
    await ended(store, "green", 1)
    await ended(store, "amber", 1, errors=1)
    await evaluator.run_due()
    assert await verdicts(store) == [("red", Verdict.RED), ("amber", Verdict.AMBER), ("green", Verdict.GREEN)]
    counted = {Verdict.NONE: 0, Verdict.GREEN: 1, Verdict.AMBER: 1, Verdict.RED: 1}
    assert await store.verdicts.counted(None) == await store.verdicts.counted(1) == {1: counted}


async def test_a_job_that_ended_well_has_no_verdict_until_it_is_judged(store: Store, evaluator: Evaluator) -> None:
    keys = [await ended(store, "books", 0, reason, errors=2) for reason in ("finished", "start_error", "cancelled")]

    async def texts() -> list[str | None]:
        return [verdict_text(job) for job in (await store.jobs.window(1, JobFilter(keys=tuple(keys)))).jobs][::-1]

    assert await texts() == ["unjudged", "red", "none"]
    assert await store.verdicts.unjudged(1) == 3
    await evaluator.run_all()
    assert await texts() == ["amber", "red", "none"]
    assert await store.verdicts.unjudged(1) == 0


async def test_what_another_server_judges_is_waited_for(store: Store, evaluator: Evaluator) -> None:
    await ended(store, "books", 1)
    lease = await store.leases.take("monitors", "another server", 60_000)
    assert lease is not None
    all_judged = asyncio.create_task(evaluator.run_all())
    done, _ = await asyncio.wait([all_judged], timeout=0.5)
    assert (done, await store.verdicts.unjudged(1)) == (set(), 1)
    await store.leases.release(lease)
    await all_judged
    assert await store.verdicts.unjudged(1) == 0


async def test_deletion_and_a_new_run_take_the_verdict_back(store: Store, evaluator: Evaluator) -> None:
    key = await ended(store, "books", 1, "failed")
    await ended(store, "books", 1)
    await evaluator.run_due()
    await store.jobs.change(1, [Change(key, JobState.RUNNING, {})], "test")
    assert await store.verdicts.of_job(key) is None
    assert [run.job for run in (await only(store)).health.runs] == [2]
    await store.jobs.change(1, [Change(key, JobState.FINISHED, {"close_reason": "failed"})], "test")
    await evaluator.run_due()
    assert {run.job for run in (await only(store)).health.runs} == {1, 2}
    await store.jobs.delete(1, [key], "test")
    assert (await only(store)).verdict is Verdict.GREEN
    await store.jobs.delete(1, [JobKey(1, 1, 2)], "test")
    assert (await only(store)).verdict is Verdict.NONE
    assert await store.verdicts.counted(1) == {}


async def test_the_health_of_a_spider_has_its_last_runs_alone(store: Store, evaluator: Evaluator) -> None:
    for _ in range(RUNS + 2):
        await ended(store, "books", 1)
    await evaluator.run_due()
    assert [run.job for run in (await only(store)).health.runs] == list(range(RUNS + 2, 2, -1))


async def test_a_missed_run_makes_a_spider_red_until_one_comes(store: Store, evaluator: Evaluator) -> None:
    await ended(store, "books", 1)
    await evaluator.run_due()
    monitor = await store.monitors.add(1, NewMonitor(spider="books", expect="24h", name="daily", enabled=True))
    assert (await only(store)).verdict is Verdict.GREEN
    store.monitors._clock = lambda: store.clock() + 25 * 3600 * 1000  # type: ignore[method-assign]
    await evaluator.run_due()
    health = await only(store)
    assert health.verdict is Verdict.RED
    assert [each.reason.kind for each in health.health.reasons] == ["missed"]
    assert health.health.reasons[0].reason.sentence.startswith("monitor daily failed: no run has finished")
    await store.monitors.enable(1, monitor.id, False)
    assert (await only(store)).verdict is Verdict.GREEN


async def test_jobs_that_need_somebody_are_found_by_their_index(store: Store, evaluator: Evaluator) -> None:
    red = await ended(store, "books", 1, "failed")
    await ended(store, "books", 1)
    amber = await ended(store, "books", 1, errors=1)
    await evaluator.run_due()
    which = JobFilter(states=(JobState.FINISHED,), worst=Verdict.AMBER)
    found = await store.jobs.listed(1, which, JobPage(10))
    assert [job.key for job in found] == [amber, red]
    assert (await store.jobs.count_by_state(1, which))[JobState.FINISHED] == 2


async def test_errors_are_removed_with_the_log_that_has_them(store: Store, evaluator: Evaluator, clock: Clock) -> None:
    key = await ended(store, "books", 1, errors=2)
    await evaluator.run_due()
    assert (await only(store)).health.error == "KeyError: 'headline' × 2 (parse, shop.py:34)"
    rule = await store.retention.add(1, rule_of({"what": ["logs"], "older_than": 1, "enabled": True}))
    clock.now += 3 * 24 * 3600 * 1000
    async for _ in store.retention.apply(rule, 1, pause=False):
        pass
    found = await store.verdicts.of_job(key)
    assert found is not None
    assert (found.error, found.errors, found.error_lines) == ("", [], 2)
    assert (await only(store)).health.error == ""


async def test_a_job_with_a_damaged_log_is_judged_and_others_are_not_kept_waiting(
    store: Store, evaluator: Evaluator, caplog: pytest.LogCaptureFixture
) -> None:
    key = await ended(store, "books", 1, errors=2)
    await store._engine.write(_damage)
    other = await ended(store, "news", 1)
    await evaluator.run_due()
    assert [(await store.verdicts.of_job(each)).verdict for each in (key, other)] == [Verdict.AMBER, Verdict.GREEN]  # type: ignore[union-attr]
    assert f"The errors of job {key} cannot be shown." in caplog.text


async def test_an_alert_and_the_activity_have_the_verdict_and_the_errors(
    store: Store, evaluator: Evaluator, clock: Clock
) -> None:
    await store.monitors.add(1, NewMonitor(name="enough", checks=("items >= 9",), enabled=True))
    await store.alerts.add(1, NewTarget("night", "json://127.0.0.1/a"))
    key = await ended(store, "books", 1, errors=2)
    await evaluator.run_due()
    (event,) = [msgspec.json.decode(each.event) for each in await store.activity.page(1, 10**9, 1)]
    line = "KeyError: 'headline' × 2 (parse, shop.py:34)"
    assert (event["event"], event["verdict"], event["errors"]) == ("monitor:failed", "red", [line])
    clock.now += 3600_000
    await evaluator.run_due()
    message = await store.alerts.claim(1, 1)
    assert message is not None
    assert f"Job {key} (red)" in message.body
    assert f"Also: 2 errors in the log.\nErrors of its log:\n- {line}" in message.body


async def _damage(tx: Transaction) -> None:
    await tx.execute("UPDATE record_chunks SET body = $1 WHERE kind = 'logs'", b"no gzip stream")
