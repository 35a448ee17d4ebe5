"""Deployed versions, on both engines."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.periodic import PeriodicJob, blank, edited
from scrapy_ext.api.platform.versions import KEPT, SpiderArgument, SpiderInfo, VersionState
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.jobs.versions.runnable import check_tasks
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.states import Change
from scrapy_ext.server.store.version_rows import ActiveJobs
from scrapy_ext.server.store.versions import InUseError, NewVersion
from tests.support.schedules import books
from tests.support.stores import Clock

SPIDERS = [SpiderInfo("books", [SpiderArgument("page", default="1", annotation="int")]), SpiderInfo("news")]


async def uploaded(store: Store, name: str, project: int = 1) -> int:
    new = NewVersion(name, "egg", "shop.settings", 4, "f" * 64, "attrs>=20\n")
    deploy = await store.versions.begin(project, new, "me")
    await store.versions.put(project, deploy, 0, b"ab")
    await store.versions.put(project, deploy, 1, b"cd")
    await store.versions.arrived(project, deploy)
    return deploy


async def deployed(store: Store, name: str, project: int = 1, spiders: list[SpiderInfo] = SPIDERS) -> int:
    deploy = await uploaded(store, name, project)
    await store.versions.ready(project, deploy, spiders)
    return deploy


async def scheduled(store: Store, spider: str = "books", **metadata: str) -> JobKey:
    (key,) = await store.jobs.add(1, [NewJob(spider, JobState.PENDING, metadata)], "me")
    assert isinstance(key, JobKey)
    return key


async def test_a_version_is_current_once_it_is_ready_and_one_that_fails_is_not(store: Store) -> None:
    first = await uploaded(store, "1.0")
    assert await store.versions.current(1) is None
    await store.versions.progress(1, first, "installing")
    shown = (await store.versions.listed(1))[0]
    assert (shown.state, shown.message, shown.current) == (VersionState.UPLOADED, "installing", False)
    await store.versions.ready(1, first, SPIDERS)
    assert await store.versions.current(1) == "1.0"
    second = await uploaded(store, "2.0")
    await store.versions.failed(1, second, "no spiders")
    assert [
        (each.version, each.state.value, each.message, each.current) for each in await store.versions.listed(1)
    ] == [
        ("2.0", "failed", "no spiders", False),
        ("1.0", "ready", "", True),
    ]
    assert [piece async for piece in store.versions.archive(1, first)] == [b"ab", b"cd"]
    assert [piece async for piece in store.versions.archive(1, second)] == []
    assert await store.versions.spiders(1) == SPIDERS
    assert await store.versions.spiders(2) == []


async def test_jobs_get_the_current_version_and_keep_it(store: Store) -> None:
    before = await scheduled(store)
    first = await deployed(store, "1.0")
    key = await scheduled(store)
    await deployed(store, "2.0")
    named = await scheduled(store, version="1.0")
    jobs = [await store.jobs.get(each) for each in (before, key, named)]
    assert [(job and job.metadata.get("version"), job and job.metadata.get("deploy_id")) for job in jobs] == [
        (None, None),
        ("1.0", first),
        ("1.0", first),
    ]


async def test_names_that_a_version_does_not_have_are_refused_where_there_is_a_version(store: Store) -> None:
    assert await store.versions.refuses(1, "anything") is None
    await deployed(store, "1.0")
    assert await store.versions.refuses(1, "news") is None
    assert await store.versions.refuses(1, "boks") == ["books", "news"]
    assert await store.versions.refuses(1, "boks", "unknown") is None
    assert await store.versions.refuses(2, "boks") is None


async def test_a_name_deployed_again_replaces_what_it_was(store: Store) -> None:
    await deployed(store, "1.0")
    await deployed(store, "2.0")
    again = await deployed(store, "1.0", spiders=SPIDERS[:1])
    assert [(each.version, each.deploy_id) for each in await store.versions.listed(1)] == [("1.0", again), ("2.0", 2)]
    failing = await uploaded(store, "1.0")
    await store.versions.failed(1, failing, "broken")
    found = await store.versions.named(1, "1.0")
    assert found is not None
    assert (found.shown.deploy_id, found.settings, found.shown.current) == (again, "shop.settings", True)


async def test_going_back_and_removing(store: Store) -> None:
    await deployed(store, "1.0")
    await deployed(store, "2.0")
    assert await store.versions.make_current(1, "1.0")
    assert not await store.versions.make_current(1, "3.0")
    assert await store.versions.current(1) == "1.0"
    with pytest.raises(InUseError, match="current version"):
        await store.versions.remove(1, "1.0")
    key = await scheduled(store, version="2.0")
    with pytest.raises(InUseError, match="pending or running"):
        await store.versions.remove(1, "2.0")
    await store.jobs.cancel(1, [key], "me")
    assert await store.versions.remove(1, "2.0")
    assert not await store.versions.remove(1, "2.0")
    assert await store.versions.remove(1, "1.0")  # the last one: the project is without a version again
    assert await store.versions.current(1) is None
    assert await store.versions.refuses(1, "anything") is None


async def test_old_versions_go_but_none_that_a_job_needs(store: Store) -> None:
    await deployed(store, "needed")
    await scheduled(store)
    for n in range(KEPT + 2):
        await deployed(store, f"1.{n}")
    names = [each.version for each in await store.versions.listed(1)]
    assert names == [*(f"1.{n}" for n in range(KEPT + 1, 1, -1)), "needed"]
    assert await store.versions.make_current(1, "1.5")
    await deployed(store, "2.0")
    assert await store.versions.current(1) == "2.0"


async def test_what_nobody_checks_is_found_and_what_never_arrived_goes(store: Store, clock: Clock) -> None:
    cut_off = await store.versions.begin(1, NewVersion("cut", "egg", "", 4, "f", ""), "me")
    assert await store.versions.get(1, cut_off) is None
    waiting = await uploaded(store, "1.0")
    assert await store.versions.unchecked(1000) == []
    clock.now += 1000
    assert await store.versions.unchecked(1000) == [(1, waiting)]
    await store.versions.progress(1, waiting, "at it")
    assert await store.versions.unchecked(1000) == []
    clock.now -= 60_000  # two servers' clocks may differ by that
    assert await store.versions.unchecked(1000) == []
    clock.now -= 3_600_000  # this is a clock that was wrong when it was checked
    assert await store.versions.unchecked(1000) == [(1, waiting)]
    clock.now += 2 * 3_600_000 + 60_000
    await uploaded(store, "2.0")
    with pytest.raises(ContractError, match="Deploy the version again"):
        await store.versions.put(1, cut_off, 0, b"late")
    assert await store.versions.named(1, "cut") is None


async def test_a_removed_version_is_unreadable_at_once_and_its_rows_go_in_steps(store: Store, look: Any) -> None:
    first, _ = await deployed(store, "1.0"), await deployed(store, "2.0")
    assert await store.versions.remove(1, "1.0")
    assert [piece async for piece in store.versions.archive(1, first)] == []
    assert await store.versions.spiders(1, "1.0") == []
    await store.purge()
    assert await look(
        "SELECT DISTINCT deploy FROM version_pieces UNION SELECT DISTINCT deploy FROM version_spiders"
    ) == [(2,)]
    assert await store.versions.spiders(1) == SPIDERS


async def test_a_version_that_a_job_needs_by_its_name_is_not_removed_after_a_later_deploy_of_it(store: Store) -> None:
    await deployed(store, "1.0")
    key = await scheduled(store, version="1.0")
    await deployed(store, "2.0")
    await deployed(store, "1.0")
    assert await store.versions.make_current(1, "2.0")
    with pytest.raises(InUseError, match="pending or running jobs"):
        await store.versions.remove(1, "1.0")
    await store.jobs.cancel(1, [key], "me")
    assert await store.versions.remove(1, "1.0")


async def test_the_last_version_stays_while_periodic_jobs_need_it(store: Store) -> None:
    await deployed(store, "1.0")
    schedule = await store.periodic.add(msgspec.structs.replace(books(), project=1))
    with pytest.raises(InUseError, match="periodic jobs"):
        await store.versions.remove(1, "1.0")
    assert await store.versions.current(1) == "1.0"
    await store.periodic.remove(1, schedule.id)
    assert await store.versions.remove(1, "1.0")


async def test_of_a_new_job_and_the_removal_of_its_version_only_one_succeeds(store: Store) -> None:
    await deployed(store, "keep")
    for number in range(20):
        name = f"{number}"
        await deployed(store, name)
        assert await store.versions.make_current(1, "keep")
        key, removed = await asyncio.gather(
            scheduled(store, version=name), store.versions.remove(1, name), return_exceptions=True
        )
        assert isinstance(key, JobKey)
        job = await store.jobs.get(key)
        assert job is not None
        if isinstance(removed, InUseError):
            assert (await store.versions.named(1, name)) is not None
        else:
            assert removed is True
            assert "deploy_id" not in job.metadata
        await store.jobs.cancel(1, [key], "me")
        assert await store.versions.remove(1, name) is isinstance(removed, InUseError)


async def test_a_periodic_job_that_runs_has_spiders_of_the_current_version(store: Store) -> None:
    def schedule(*names: str, disabled: bool = False) -> PeriodicJob:
        return edited(
            blank(1), {"cron": "0 4 * * *", "tasks": [{"name": name} for name in names], "disabled": disabled}
        )

    await check_tasks(store, None, schedule("rulez"))  # nothing is known without a version
    await deployed(store, "1.0")
    await check_tasks(store, None, schedule("books", "news"))
    with pytest.raises(ContractError, match="'book' is no spider of version"):
        await check_tasks(store, None, schedule("books", "book"))
    await check_tasks(store, None, schedule("book", disabled=True))
    with pytest.raises(ContractError, match="Use one of books"):
        await check_tasks(store, None, schedule("book"), schedule("book", disabled=True))
    await check_tasks(store, None, schedule("book"), schedule("book"))


async def test_a_version_warns_of_spiders_with_one_name(store: Store) -> None:
    deploy = await deployed(store, "1.0", spiders=[SpiderInfo("a", kind="two.A", hidden=["one.A"]), SpiderInfo("b")])
    found = await store.versions.get(1, deploy)
    assert found is not None
    assert found.shown.state is VersionState.READY
    assert "a: one.A and two.A" in found.shown.message
    assert [spider.hidden for spider in await store.versions.spiders(1)] == [["one.A"], []]


async def test_active_jobs_are_counted_by_the_version_that_they_run(store: Store) -> None:
    first = await deployed(store, "1.0")
    old, replaced = await scheduled(store), await scheduled(store, "news")
    second = await deployed(store, "2.0")
    await scheduled(store, version="1.0")
    await scheduled(store, "news")
    await store.jobs.change(1, [Change(old, JobState.RUNNING, {})], "me")
    await store.jobs.change(1, [Change(replaced, JobState.FINISHED, {})], "me")
    assert await store.versions.active_jobs(1) == {first: ActiveJobs(1, 1), second: ActiveJobs(1, 0)}
    assert await store.versions.active_jobs(2) == {}
    (running,) = await store.versions.running_jobs(1, 10)
    assert (running.key, running.spider, running.version, running.node) == (old, "books", "1.0", None)
