"""``scrapy platform import`` between two real servers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from tests.support.http import Http
from tests.support.imports import START, add_job, content, fill
from tests.support.postgresql import Cluster
from tests.support.relay import Relay
from tests.support.servers import ForkedServer, RunningServer
from tests.support.stores import ENGINES
from tests.support.terminal_commands import Done, Platform, lines, plain, scrapy

T = TypeVar("T")

_projects = itertools.count(1)
#: Paths that the document of the API names; an importer may use no other of a hosted source.
_DOCUMENTED = re.compile(
    r"/api/jobs/|/api/projects/\d+/periodicjobs|/jobs/\d+/\d+/\d+|/(items|requests)/\d+|/collections/\d+/(list|\w+/\w+)"
    r"|/hcf/\d+/list|/jobq/\d+/(count|list)|/logs/\d+/\d+/\d+\?|/system/ts"
)


@dataclass
class Servers:
    """The platform that is copied, with a key that reads, and the one that is filled."""

    source: RunningServer
    target: Platform

    def fill(self, project: int, **options: Any) -> list[JobKey]:
        return self.at_source(lambda client: fill(client, project, **options))

    def at_source(self, work: Callable[[PlatformClient], Awaitable[T]]) -> T:
        async def done() -> T:
            async with PlatformClient(PlatformUrls.single(self.source.url), self.source.platform_key) as client:
                return await work(client)

        return asyncio.run(done())

    def imported(self, *arguments: str, url: str | None = None, **environment: str) -> Done:
        """Run the command; the key of the source is in the environment."""
        environment = {"PLATFORM_IMPORT_KEY": self.source.platform_key, **environment}
        options = () if "--rate" in arguments else ("--rate", "10000")
        return self.target.run("import", "--from", url or self.source.url, *options, *arguments, **environment)

    def both(self, project: int, into: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the content of a project in both."""

        async def read() -> tuple[dict[str, Any], dict[str, Any]]:
            own = self.target.environment
            async with Http(self.source.url, self.source.platform_key) as source:
                given = await content(source, project)
            async with Http(own["PLATFORM_URL"], own["PLATFORM_API_KEY"]) as target:
                return given, await content(target, into or project)

        return asyncio.run(read())


@pytest.fixture(scope="module", params=ENGINES)
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgresql: Cluster
) -> Iterator[Servers]:
    """A source on SQLite, and a target on either."""
    folder = tmp_path_factory.mktemp("servers")
    database = postgresql.database() if request.param == "postgresql" else None
    with (
        ForkedServer(folder / "source", options=["--no-runner"]) as source,
        ForkedServer(folder / "target", options=["--no-runner"], database=database) as target,
    ):
        environment = {**os.environ, "PLATFORM_URL": target.url, "PLATFORM_API_KEY": target.platform_key}
        yield Servers(source, Platform(environment, tmp_path_factory.mktemp("empty"), 1))


@pytest.fixture
def project() -> int:
    return next(_projects)


def rows(done: Done) -> dict[str, dict[str, Any]]:
    """The lines of a report by what they are about."""
    return {record["part"]: record for record in done.records}


def test_a_project_is_copied_as_it_is_and_a_second_run_copies_nothing(servers: Servers, project: int) -> None:
    keys = servers.fill(project)
    address = "http://a.example/?q=1#ü"

    async def more(client: PlatformClient) -> None:
        async with Http(servers.source.url, servers.source.platform_key) as http:
            await http.post(f"/samples/{keys[0]}?start=0", [[START, 1, 2, 3, 4], [START + 1, 2, 3, 4, 5]])
            for price in range(3):
                await http.post(f"/collections/{project}/vs/pages", [{"_key": address, "price": price}])
            await http.post(f"/api/comments/{keys[0]}/3/name", {"text": "too cheap"})
            await http.post(f"/api/comments/{keys[0]}/3", {"text": "why?"})
            await http.call("PATCH", f"/api/v2/projects/{project}/spiders/1/tags", b'{"add": ["shop"]}')

    servers.at_source(more)
    done = servers.imported("--project", str(project))
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(done)
    assert (found["jobs"]["copied"], found["items"]["copied"], found["items"]["verified"]) == (4, 2513, True)
    assert (found["comments"]["copied"], found["periodic"]["copied"], found["samples"]["copied"]) == (2, 1, 2)
    given, have = servers.both(project)
    assert have == given
    copies = servers.target.call(lambda client: client.collections.copies(project, "vs", "pages", address, 3))
    assert [json.loads(copy.line)["price"] for copy in copies] == [2, 1, 0]
    assert servers.source.platform_key not in done.stdout

    again = servers.imported("--project", str(project))
    found = rows(again)
    assert again.returncode == 0
    assert not [record for record in again.records if record["copied"]]
    assert (found["jobs"]["copied_before"], found["periodic"]["copied_before"]) == (4, 1)
    assert servers.both(project)[1] == given


def test_times_of_jobs_and_lists_are_those_of_the_source(servers: Servers, project: int) -> None:
    keys = servers.fill(project, items=1)
    servers.imported("--project", str(project), "--only", "jobs")
    for call in (lambda client: client.jobq.list(project), lambda client: client.jobs.list(project)):
        there, here = servers.at_source(call), servers.target.call(call)
        listed = [getattr(here, "jobs", here), getattr(there, "jobs", there)]
        times = [[(each.close_reason, getattr(each, "ts", None)) for each in some] for some in listed]
        assert times[0] == times[1]
    messages = servers.target.call(lambda client: client.activity.list(project))
    assert {(each["event"], each["job"]) for each in messages} == {("job:imported", str(key)) for key in keys}
    assert all(each["user"] and each["source"].endswith(each["job"]) for each in messages)


@pytest.mark.long
def test_a_project_can_have_another_number_in_the_target(servers: Servers, project: int) -> None:
    servers.fill(project, items=20)
    assert servers.imported("--project", f"{project}={project + 5000}").returncode == 0
    given, have = servers.both(project, project + 5000)
    assert have == given
    assert servers.target.call(lambda client: client.jobq.count(project)) == 0


def test_what_is_not_copied_is_reported_and_later_runs_copy_what_is_new(servers: Servers, project: int) -> None:
    servers.fill(project, items=3)

    async def runs(client: PlatformClient) -> JobKey:
        key = JobKey.parse((await client.jobq.push(project, "books")).key)
        await client.items.write(key, lines([{"a": 1}]), 0)
        await client.jobq.push(project, "later", state="pending")
        await client.frontier.add(project, "queue", "0", lines([{"fp": "a"}]))
        return key

    running = servers.at_source(runs)
    done = servers.imported("--project", str(project))
    found = rows(done)
    assert (done.returncode, found["jobs"]["copied"]) == (0, 4)
    assert (found["running jobs"]["not_copied"], found["pending jobs"]["not_copied"]) == (1, 1)
    assert {"frontier queue", "deployed versions", "webhooks and API keys"} <= set(found)
    assert servers.target.call(lambda client: client.jobs.metadata(running)) == {}

    async def ends(client: PlatformClient) -> None:
        await client.items.write(running, lines([{"a": 2}]), 1)
        await client.jobq.update(project, running, state="finished", close_reason="finished")
        await client.collections.write(project, "s", "prices_s", lines([{"_key": "k0", "value": "new"}]))

    servers.at_source(ends)
    found = rows(servers.imported("--project", str(project)))
    assert (found["jobs"]["copied"], found["items"]["copied"], found["collections"]["copied"]) == (1, 2, 1)

    async def goes_on(client: PlatformClient) -> None:
        await client.jobq.update(project, running, state="running")
        await client.items.write(running, lines([{"a": 3}]), 2)
        await client.jobq.update(project, running, state="finished", close_reason="shutdown")

    servers.at_source(goes_on)
    found = rows(servers.imported("--project", str(project)))
    assert (found["jobs"]["copied"], found["items"]["copied"], found["items"]["copied_before"]) == (1, 1, 2)
    given, have = servers.both(project)
    assert have == given


def test_nothing_of_the_target_is_overwritten(servers: Servers, project: int) -> None:
    keys = servers.fill(project, items=2)
    own = servers.target.with_project(project)
    mine = own.job("books", tags=["mine"])
    assert mine == keys[0]
    own.call(lambda client: client.items.write(mine, lines([{"mine": True}]), 0))
    own.call(lambda client: client.collections.write(project, "s", "prices_s", lines([{"_key": "k0", "mine": 1}])))
    own.call(lambda client: client.projects.update_settings(project, {"max_running": 9}))

    done = servers.imported("--project", str(project))
    found = rows(done)
    assert (done.returncode, found["jobs"]["copied"]) == (1, 3)
    assert "not from this import" in found[f"job {mine}"]["reason"]
    assert "not from this import" in found["collection s/prices_s"]["reason"]
    assert "another value" in found["setting max_running"]["reason"]
    assert own.call(lambda client: client.jobs.metadata(mine))["tags"] == ["mine"]
    assert own.call(lambda client: client.items.stats(mine)).totals.input_values == 1
    assert own.call(lambda client: client.collections.get(project, "s", "prices_s", "k0")) == {"mine": 1}


def test_jobs_of_both_platforms_get_different_numbers(servers: Servers, project: int) -> None:
    servers.fill(project, items=1)
    servers.imported("--project", str(project), "--only", "jobs", "--reserve", "100")
    own = servers.target.with_project(project)
    assert own.job("books") == JobKey(project, 1, 103)
    there = servers.at_source(lambda client: add_job(client, project, "books", items=1))
    found = rows(servers.imported("--project", str(project), "--reserve", "100"))
    assert found["jobs"]["copied"] == 5  # the records of the first four too
    assert own.call(lambda client: client.items.stats(there)).totals.input_values == 1
    assert own.job("books") == JobKey(project, 1, 104)


@pytest.mark.long
def test_a_spider_keeps_the_number_that_it_has_in_the_target(servers: Servers, project: int) -> None:
    servers.fill(project, items=1)
    own = servers.target.with_project(project)
    own.job("other")
    done = servers.imported("--project", str(project))
    assert (done.returncode, rows(done)["jobs"]["copied"]) == (0, 4)
    # Books has the number 1 in the source, which is another spider's in the target; news keeps its number.
    assert f"{project}/3/" in rows(done)["number 1 of spider books"]["reason"]
    keys = {job.key: job.spider for job in own.call(lambda client: client.jobq.list(project))}
    assert sorted(set(keys.values())) == ["books", "news"]
    assert {JobKey.parse(key)[1:] for key in keys} == {(3, 1), (2, 1), (3, 2), (2, 2)}
    assert rows(servers.imported("--project", str(project)))["jobs"]["copied_before"] == 4


def test_a_source_without_extensions_is_copied_as_far_as_it_can_be_read(servers: Servers, project: int) -> None:
    servers.fill(project, items=5)

    def hosted(_: str, path: str) -> int | None:
        return None if _DOCUMENTED.match(path) and "copies=" not in path else 404

    with Relay(servers.source.url, hosted) as relay:
        done = servers.imported("--project", str(project), url=relay.url)
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(done)
    assert (found["jobs"]["copied"], found["items"]["copied"], found["logs"]["copied"]) == (4, 18, 90)
    assert all("does not offer" in found[part]["reason"] for part in ("samples", "spiders", "settings"))
    given, have = servers.both(project)
    for part in ("items", "requests", "logs", "jobs", "stats", "s/prices_s", "cs/prices_cs", "periodic"):
        assert have[part] == given[part], part
    assert servers.target.call(lambda client: client.collections.count(project, "vs", "prices_vs")) == 3


def test_the_rate_bounds_the_requests_to_the_source(servers: Servers, project: int) -> None:
    servers.fill(project, items=1)
    with Relay(servers.source.url) as relay:
        began = asyncio.run(_clock())
        servers.imported("--project", str(project), "--only", "jobs", "--rate", "20", url=relay.url)
        seconds = asyncio.run(_clock()) - began
    assert 5 <= len(relay.requests) <= seconds * 20 + 1


async def _clock() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.long
def test_an_overloaded_source_is_waited_for(servers: Servers, project: int) -> None:
    servers.fill(project, items=3)
    refusals = iter([429, 503, 500])

    def busy(_: str, path: str) -> int | None:
        return next(refusals, None) if path.startswith("/items/") else None

    with Relay(servers.source.url, busy) as relay:
        assert servers.imported("--project", str(project), url=relay.url).returncode == 0
    given, have = servers.both(project)
    assert have["items"] == given["items"]


def test_a_dry_run_copies_nothing(servers: Servers, project: int) -> None:
    servers.fill(project, items=1)
    with Relay(servers.target.environment["PLATFORM_URL"]) as relay:
        done = servers.imported("--project", str(project), "--dry-run", PLATFORM_URL=relay.url)
    assert (done.returncode, rows(done)["jobs"]["would_copy"], rows(done)["periodic"]["would_copy"]) == (0, 4, 1)
    assert {method for method, _ in relay.requests} == {"GET"}


def test_a_project_without_content_in_the_source_is_reported(servers: Servers, project: int) -> None:
    for options in ((), ("--dry-run",)):
        done = servers.imported("--project", str(project), *options)
        assert done.returncode == 0
        assert rows(done)["project"]["reason"] == "the source has nothing in it: check its number"
    assert "project" not in rows(servers.imported("--project", str(project), "--only", "collections"))
    servers.fill(project)
    assert "project" not in rows(servers.imported("--project", str(project)))
    assert "project" not in rows(servers.imported("--project", str(project)))


def test_only_chosen_parts_and_jobs_since_a_time_are_copied(servers: Servers, project: int) -> None:
    servers.fill(project, items=4)
    done = servers.imported("--project", str(project), "--only", "items,collections", "--since", "2020-01-01")
    found = rows(done)
    assert (found["jobs"]["copied"], found["items"]["copied"]) == (4, 17)
    assert "logs" not in found
    assert "periodic" not in found
    assert rows(servers.imported("--project", str(project), "--since", "2999-01-01"))["jobs"]["copied_before"] == 0
    found = rows(servers.imported("--project", str(project)))
    assert (found["logs"]["copied"], "items" in found and found["items"]["copied"]) == (90, 0)
    given, have = servers.both(project)
    assert have == given


def test_a_missing_or_wrong_key_of_the_source_is_one_line(servers: Servers, project: int) -> None:
    done = servers.imported("--project", str(project), PLATFORM_IMPORT_KEY="")
    assert (done.returncode, done.stderr.count("\n"), "PLATFORM_IMPORT_KEY is not set" in done.stderr) == (1, 1, True)
    done = servers.imported("--project", str(project), PLATFORM_IMPORT_KEY="0123456789wrong")
    assert (done.returncode, done.stderr.count("\n"), "wrong" in done.stderr) == (1, 1, False)


async def test_only_a_key_that_may_write_to_the_project_can_import(servers: Servers, project: int) -> None:
    own = servers.target.environment
    async with Http(own["PLATFORM_URL"], own["PLATFORM_API_KEY"]) as http:
        pushed = await http.post(f"/jobq/{project}/push", [{"spider": "a", "state": "running"}])
        token = pushed.lines[0]["auth"]
    async with Http(own["PLATFORM_URL"], f"{project}/1/1", token) as http:
        for path in (f"/imports/{project}/1/1", f"/imports/{project}/1/1/items?start=0", f"/imports/{project}/spiders"):
            assert (await http.post(path, [{"source": "x", "name": "a"}])).status in (401, 403)
    async with Http(own["PLATFORM_URL"], own["PLATFORM_API_KEY"]) as http:
        refused = await http.post(f"/imports/{project}/1/1", b'{"source": "x/1/1/1"}')
        assert (refused.status, "not from this import" in refused.text) == (409, True)
        refused = await http.post(f"/imports/{project}/1/1/items?start=0", [{"a": 1}])
        assert refused.status == 409
        wrong = await http.post(f"/imports/{project}/1/1/items?start=0", [{"a": 1}], Record_Times="2:5")
        assert wrong.status == 400


@pytest.mark.long
def test_a_large_collection_continues_where_it_was(
    servers: Servers, project: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"_key": f"{n:05}", "n": n} for n in range(3500)]
    servers.at_source(lambda client: client.collections.write(project, "s", "large", lines(records)))
    monkeypatch.setattr("scrapy_ext.commands.importing.collections._SAVED_AFTER", 1)
    writes = itertools.count(1)

    def refuses(method: str, path: str) -> int | None:
        return 400 if method == "POST" and "/collections/" in path and next(writes) > 2 else None

    arguments = ("--project", str(project), "--only", "collections")
    with Relay(servers.target.environment["PLATFORM_URL"], refuses) as relay:
        done = servers.imported(*arguments, PLATFORM_URL=relay.url)
    assert (done.returncode, rows(done)["collections"]["copied"]) == (1, 2000)
    with Relay(servers.source.url) as relay:
        done = servers.imported(*arguments, url=relay.url)
    # The relay has another address: what was copied from the first one is not overwritten.
    assert "not from this import" in rows(done)["collection s/large"]["reason"]
    done = servers.imported(*arguments)
    assert (done.returncode, rows(done)["collections"]["copied"], rows(done)["collections"]["verified"]) == (
        0,
        1500,
        True,
    )
    given, have = servers.both(project)
    assert have == given


def test_records_of_the_target_that_are_newer_remain(servers: Servers, project: int) -> None:
    own = servers.target.with_project(project)
    old = [{"_key": "a", "n": 1}, {"_key": "b", "n": 1}]
    servers.at_source(lambda client: client.collections.write(project, "vs", "both", lines(old)))
    servers.imported("--project", str(project))
    own.call(lambda client: client.collections.write(project, "vs", "both", lines([{"_key": "c", "n": 2}])))
    servers.at_source(lambda client: client.collections.write(project, "vs", "both", lines([{"_key": "a", "n": 3}])))
    own.call(lambda client: client.collections.write(project, "vs", "both", lines([{"_key": "a", "n": 4}])))
    done = servers.imported("--project", str(project))
    assert (done.returncode, "1 record that" in rows(done)["collection vs/both"]["reason"]) == (0, True)
    for key, number in (("a", 4), ("b", 1), ("c", 2)):
        assert own.call(lambda client, key=key: client.collections.get(project, "vs", "both", key)) == {"n": number}


def test_an_interrupted_import_says_how_to_continue(servers: Servers, project: int) -> None:
    servers.fill(project, items=1)

    def seen(_: str, path: str) -> int | None:
        if "/finish" in path:
            going.process.send_signal(signal.SIGINT)
            going.process.wait()
        return None

    with Relay(servers.target.environment["PLATFORM_URL"], seen) as relay:
        arguments = ("import", "--from", servers.source.url, "--project", str(project), "--rate", "10000")
        environment = {"PLATFORM_IMPORT_KEY": servers.source.platform_key, "PLATFORM_URL": relay.url}
        with servers.target.start(*arguments, **environment) as going:
            assert going.end() == 130
    assert re.fullmatch(
        rf"interrupted; copied so far: project {project}: .*items.*\. Repeat the command to continue\n", going.said()
    )
    assert servers.imported("--project", str(project)).returncode == 0
    given, have = servers.both(project)
    assert have == given


def _hide(servers: Servers, key: JobKey, kinds: Sequence[str], removed: int | None, archive: str | None) -> None:
    """Make records of a job of the source unreadable, as its rules do; ``removed`` None: readable again."""
    with contextlib.closing(sqlite3.connect(servers.source.data / "platform.db", timeout=60)) as database, database:
        database.executemany(
            "UPDATE record_totals SET removed = ?, archive = ? "
            "WHERE kind = ? AND project = ? AND spider = ? AND job = ?",
            [(removed, archive, kind, *key) for kind in kinds],
        )


@pytest.mark.long
def test_records_that_the_source_does_not_have_any_more_are_lines_of_the_report(servers: Servers, project: int) -> None:
    books, news, *_ = keys = servers.fill(project, items=4)
    staged = [{"_key": f"{books}/1", "items": []}]
    servers.at_source(lambda client: client.collections.write(project, "s", "scrapy_commits", lines(staged)))
    snapshots = [{"_key": f"job-{books.spider}-{books.job}/snapshots/1700000000000-0a1b2c3d"}]
    servers.at_source(lambda client: client.collections.write(project, "cs", "scrapy_snapshots", lines(snapshots)))
    _hide(servers, books, ("items",), START, None)
    _hide(servers, news, ("items", "requests", "logs"), START, "file:///old/archive")

    dry = rows(servers.imported("--project", str(project), "--dry-run"))
    assert (dry["jobs"]["would_copy"], dry["jobs"]["not_copied"], dry["jobs"]["reason"]) == (4, 0, None)
    assert (dry["requests"]["would_copy"] > 0, dry["collection s/prices_s"]["would_copy"]) == (True, 3)
    assert dry["size in the source"]["bytes"] >= 0
    assert "removed" in dry[f"records of job {books}"]["reason"]
    assert "restore it in the source first" in dry[f"records of job {news}"]["reason"]

    done = servers.imported("--project", str(project))
    found = rows(done)
    assert (done.returncode, found["jobs"]["copied"], found["periodic"]["copied"]) == (0, 4, 1)
    assert "were removed" in found[f"items of job {books}"]["reason"]
    assert "file:///old/archive" in found[f"logs of job {news}"]["reason"]
    assert not re.search("scrapy_(commits|snapshots)", done.stdout + str(dry))
    metadata = [servers.target.call(lambda client, key=key: client.jobs.metadata(key)) for key in keys]
    assert [(each["state"], each["close_reason"]) for each in metadata[:3]] == [("finished", "finished")] * 3
    assert set(metadata[0]["imported"]["missing"]) == {"items"}
    assert servers.target.call(lambda client: client.logs.stats(books)).totals.input_values == 30

    found = rows(servers.imported("--project", str(project)))
    assert (found["jobs"]["copied"], found["jobs"]["copied_before"]) == (0, 4)
    assert "were removed" in found[f"items of job {books}"]["reason"]

    _hide(servers, news, ("items", "requests", "logs"), None, None)
    found = rows(servers.imported("--project", str(project)))
    assert (found["jobs"]["copied"], found["items"]["copied"], found["logs"]["copied"]) == (1, 3, 30)
    assert "missing" not in servers.target.call(lambda client: client.jobs.metadata(news))["imported"]


@pytest.mark.long
def test_a_job_that_the_source_deletes_while_it_is_copied_does_not_end_the_import(
    servers: Servers, project: int
) -> None:
    books = servers.fill(project, items=1500)[0]

    def deletes(_: str, path: str) -> None:
        if path.startswith(f"/items/{books}") and "startafter" in path:
            thread = threading.Thread(
                target=servers.at_source, args=(lambda client: client.jobs.delete(project, books),)
            )
            thread.start()
            thread.join()

    with Relay(servers.source.url, deletes) as relay:
        done = servers.imported("--project", str(project), url=relay.url)
    found = rows(done)
    assert (done.returncode, found["jobs"]["copied"], found["periodic"]["copied"]) == (0, 4, 1)
    assert "it was deleted in the source" in found[f"job {books}"]["reason"]
    metadata = servers.target.call(lambda client: client.jobs.metadata(books))
    assert (metadata["state"], "items" in metadata["imported"]["missing"]) == ("finished", True)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("status", [400, 404, 413])
def test_a_refusal_about_one_job_leaves_the_others(servers: Servers, project: int, status: int) -> None:
    books, news, *_ = servers.fill(project, items=2)
    refused = [f"/items/{books}?", f"/logs/{news}?"]

    def refuses(_: str, path: str) -> int | None:
        return status if path.startswith(tuple(refused)) else None

    with Relay(servers.source.url, refuses) as relay:
        done = servers.imported("--project", str(project), url=relay.url)
        found = rows(done)
        assert (done.returncode, found["jobs"]["copied"]) == (1, 4)
        for part in (f"items of job {books}", f"logs of job {news}"):
            assert "the source refuses it" in found[part]["reason"]
        assert servers.target.call(lambda client: client.logs.stats(books)).totals.input_values == 30
        refused.clear()
        assert servers.imported("--project", str(project), url=relay.url).returncode == 0
    given, have = servers.both(project)
    assert have == given


async def _stopped(platform: Platform) -> Any:
    async with Http(platform.environment["PLATFORM_URL"], platform.environment["PLATFORM_API_KEY"]) as http:
        return (await http.post(f"/jobq/{platform.project}/cancel?count=9")).json["count"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("deleted", [False, True])
def test_a_job_whose_import_was_interrupted_is_completed_by_any_later_run(
    servers: Servers, project: int, deleted: bool
) -> None:
    news, own = servers.fill(project, items=2)[3], servers.target.with_project(project)
    forbidden = [f"/requests/{news}?"]
    with Relay(servers.source.url, lambda _, path: 403 if path.startswith(tuple(forbidden)) else None) as relay:
        # A key that is refused ends the import, with the report so far.
        done = servers.imported("--project", str(project), url=relay.url)
        assert (done.returncode, rows(done)["items"]["copied"], "403" in done.stderr) == (1, 2, True)
        forbidden.clear()
        (job,) = own.call(lambda client: client.jobs.list(project, state="running")).jobs
        assert (job.id, job.elapsed) == (str(news), None)
        assert "Repeat the import" in own.refused("stop", str(news))
        assert own.call(lambda client: client.jobq.list(project, state="running"))[0].elapsed == 0
        # A stop of any jobs leaves it out.
        assert asyncio.run(_stopped(own)) == 0
        if deleted:
            servers.at_source(lambda client: client.jobs.delete(project, news))
        done = servers.imported("--project", str(project), "--since", "2999-01-01", url=relay.url)
        metadata = own.call(lambda client: client.jobs.metadata(news))
        assert (done.returncode, metadata["state"], metadata["close_reason"]) == (0, "finished", "shutdown")
        assert ("missing" in metadata["imported"]) == deleted
        assert ("2 items" in rows(done).get(f"job {news}", {"reason": ""})["reason"]) == deleted
        again = servers.imported("--project", str(project), "--since", "2999-01-01", url=relay.url)
        assert f"job {news}" not in rows(again)


@pytest.mark.long
def test_reasons_are_whole_in_a_narrow_terminal_and_a_read_only_key_of_the_source_suffices(
    servers: Servers, project: int
) -> None:
    servers.fill(project, items=2)
    added = scrapy(
        *("platform", "keys", "add", f"mover{project}", "--project", str(project), "--read-only"),
        *("--data", str(servers.source.data)),
    )
    environment = {**servers.target.environment, "PLATFORM_IMPORT_KEY": added.stdout.strip()}
    own = replace(servers.target, environment=environment)

    def shown() -> str:
        return plain(own.terminal("import", "--from", servers.source.url, "--project", str(project), columns=80))

    text = shown()
    assert all(words in text for words in ("copied now", "deploy the project to the target", "their secrets cannot"))
    assert max(map(len, text.splitlines())) <= 80
    given, have = servers.both(project)
    assert have == given


def _stops() -> list[Any]:
    """Numbers of writes to the target before which the command is killed."""
    return [pytest.param(number, marks=[] if number in (4, 9) else pytest.mark.full) for number in range(1, 40, 1)]


@pytest.mark.long(keep=0)
@pytest.mark.parametrize("stop", _stops())
def test_a_killed_import_continues_to_the_same_content(servers: Servers, project: int, stop: int) -> None:
    _killed_and_repeated(servers, project, lambda number, _: number == stop)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("before", ["requests", "finish", "collections"])
def test_an_import_killed_between_two_kinds_continues(servers: Servers, project: int, before: str) -> None:
    _killed_and_repeated(servers, project, lambda _, path: f"/{before}" in path)


def _killed_and_repeated(servers: Servers, project: int, kill: Callable[[int, str], bool]) -> None:
    keys = servers.fill(project, items=1500)
    writes = itertools.count(1)

    def seen(method: str, path: str) -> int | None:
        if method != "GET" and kill(next(writes), path):
            going.process.kill()
            going.process.wait()
        return None

    with Relay(servers.target.environment["PLATFORM_URL"], seen) as relay:
        arguments = ("import", "--from", servers.source.url, "--project", str(project), "--rate", "10000")
        environment = {"PLATFORM_IMPORT_KEY": servers.source.platform_key, "PLATFORM_URL": relay.url}
        with servers.target.start(*arguments, **environment) as going:
            going.end()
    states = {job.key: job.state for job in servers.target.call(lambda client: client.jobq.list(project))}
    items = dict(zip(map(str, keys), (1500, 3, 8, 2), strict=True))
    for key, state in states.items():  # no reader takes a part of a job for the whole
        own = JobKey.parse(key)
        have = servers.target.call(lambda client, own=own: client.items.stats(own)).totals.input_values
        assert (state, have) == ("finished", items[key])
    done = servers.imported("--project", str(project))
    assert (done.returncode, done.stderr) == (0, "")
    given, have = servers.both(project)
    assert have == given
