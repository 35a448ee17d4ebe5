"""Jobs stopped, deleted, tagged and compared."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.workers import Counts, Report
from tests.support.eventually import TIMEOUT
from tests.support.terminal_commands import Platform, lines, plain


def field(platform: Platform, key: JobKey, name: str) -> Any:
    return platform.call(lambda client: client.jobs.field(key, name))


def test_several_jobs_are_stopped_each_in_its_way(platform: Platform) -> None:
    waits, runs = platform.job(state="pending"), platform.job()
    rows = platform.lines("stop", str(waits), str(runs), str(runs))
    assert rows == [
        {"id": str(waits), "spider": "books", "state": "finished", "close_reason": "cancelled"},
        {"id": str(runs), "spider": "books", "state": "running"},
    ]
    assert field(platform, runs, "cancelled_by") is not None


def test_stop_waits_until_they_have_ended(platform: Platform) -> None:
    keys = [platform.job(), platform.job()]
    with platform.start("stop", *map(str, keys), "--wait") as going:
        going.until(lambda: field(platform, keys[1], "cancelled_by"))
        platform.ends(keys[0], "cancelled")
        assert going.process.poll() is None
        platform.ends(keys[1], "cancelled")
        assert going.end() == 0
    assert [row["close_reason"] for row in going.lines()] == ["cancelled", "cancelled"]
    assert going.said() == ""


def test_a_job_that_does_not_end_is_named_when_the_time_is_over(platform: Platform) -> None:
    key = platform.job()
    done = platform.run("stop", str(key), "--wait", "--timeout", "0.2")
    assert done.returncode == 1
    assert f"after 0.2 s, 1 job has not ended: {key}" in done.stderr


def test_jobs_are_deleted_with_what_they_stored(platform: Platform) -> None:
    keys = [platform.job(), platform.job()]
    platform.call(lambda client: client.items.write(keys[0], lines([{"a": 1}]), 0))
    rows = platform.lines("delete", *map(str, keys), "--yes")
    assert rows == [{"id": str(key), "state": "deleted"} for key in keys]
    assert platform.lines("jobs") == []


def test_nothing_is_deleted_where_nobody_can_be_asked(platform: Platform) -> None:
    key = platform.job()
    assert "add --yes" in platform.refused("delete", str(key))
    assert field(platform, key, "state") == "running"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("answer", "state", "code"), [(b"y\n", "deleted", 0), (b"\n", "running", 1), (b"\x03", "running", 130)]
)
def test_a_terminal_is_asked(platform: Platform, answer: bytes, state: str, code: int) -> None:
    key = platform.job()
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "platform", "delete", str(key)],
        cwd=platform.folder, env=platform.environment, stdin=slave, stdout=slave, stderr=slave,
        preexec_fn=_own_terminal,  # noqa: PLW1509 - it makes calls only
    ) as process:  # fmt: skip
        os.close(slave)
        said = b""
        deadline = time.monotonic() + TIMEOUT
        while b"[y/N]" not in said:
            assert time.monotonic() < deadline
            said += os.read(master, 4096)
        os.write(master, answer)
        assert process.wait(TIMEOUT) == code
    os.close(master)
    assert f"Delete job {key} (1 of them running) for good, with items, requests, log,".encode() in said
    assert field(platform, key, "state") == state


def _own_terminal() -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_tags_are_added_removed_and_shown(platform: Platform) -> None:
    one, two = platform.job(tags=["new"]), platform.job(tags=["new", "eu"])
    rows = platform.lines("tags", str(one), str(two), "--add", "checked", "--remove", "new")
    assert [(row["id"], sorted(row["tags"])) for row in rows] == [
        (str(one), ["checked"]),
        (str(two), ["checked", "eu"]),
    ]
    assert platform.lines("tags", "last") == [{"id": str(two), "tags": rows[1]["tags"]}]


def test_a_job_is_shown_with_what_it_has_stored(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.items.write(key, lines([{"a": 1}, {"a": 2}]), 0))
    (job,) = platform.lines("job", str(key))
    assert (job["items_scraped"], job["errors_count"], job["logs"]) == (2, 0, 0)
    assert isinstance(job["elapsed"], int)


@pytest.mark.long
def test_stats_of_two_jobs_stand_side_by_side(platform: Platform) -> None:
    one, two = platform.job(), platform.job()
    for key, stats in (
        (one, {"item_scraped_count": 10, "downloader/bytes": 5, "finish_reason": "finished"}),
        (two, {"item_scraped_count": 12, "finish_reason": "shutdown", "new": 1.5}),
    ):
        platform.call(lambda client, key=key, stats=stats: client.jobs.update(key, {"frameworkstats": stats}))  # type: ignore[misc]
    assert platform.lines("stats", str(one), "--prefix", "item") == [{"stat": "item_scraped_count", "value": 10}]
    assert platform.lines("stats", str(one), str(two)) == [
        {"stat": "downloader/bytes", str(one): 5, str(two): None, "change": -5},
        {"stat": "finish_reason", str(one): "finished", str(two): "shutdown"},
        {"stat": "item_scraped_count", str(one): 10, str(two): 12, "change": 2},
        {"stat": "new", str(one): None, str(two): 1.5, "change": 1.5},
    ]
    table = plain(platform.terminal("stats", str(one), str(two)))
    assert re.search(r"item_scraped_count +10 +12 +\+2", table)


def test_times_are_shown_with_their_zone_in_a_terminal(platform: Platform) -> None:
    key = platform.job()
    stats = {"finish_time": 1_795_000_060_000, "item_scraped_count": 1}
    platform.call(lambda client: client.jobs.update(key, {"frameworkstats": stats}))
    for command in ("stats", "job"):
        assert "2026-11-18 11:07:40 UTC" in plain(platform.terminal(command, str(key), columns=140))
    assert platform.lines("stats", str(key), "--prefix", "fin") == [{"stat": "finish_time", "value": 1_795_000_060_000}]


def test_a_run_without_an_end_is_shown_as_lost(platform: Platform) -> None:
    key = platform.job()
    run = {"start_time": 1_795_000_000_000, "finish_time": 1_795_000_060_000, "items": 7, "responses": 9}
    platform.call(lambda client: client.jobs.update(key, {"runs": [run, {**run, "close_reason": "finished"}]}))
    text = plain(platform.terminal("job", str(key), columns=160))
    assert "7 items, 9 responses, lost: no report since 2026-11-18 11:07:40 UTC" in text
    assert "7 items, 9 responses, finished" in text


def test_a_job_without_stats_says_so(platform: Platform) -> None:
    assert "has no stats yet" in platform.refused("stats", str(platform.job()))


def test_a_job_with_several_workers_is_listed_with_them(platform: Platform) -> None:
    key = platform.job()
    report = Report(job=str(key), number=1, nonce="0" * 32, workers="2..4", counts=Counts(items=3, responses=5))
    platform.call(lambda client: client.workers.report(key.project, report))
    assert "books ×2..4" in platform.terminal("jobs")
    assert re.search(r"workers\.0 +attempt 1: 3 items, 5 responses\s", platform.terminal("job", str(key)))
    (job,) = platform.lines("job", str(key))
    assert [worker["counts"] for worker in job["workers"]] == [{"items": 3, "responses": 5}]
