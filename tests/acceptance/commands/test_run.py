"""``scrapy platform run``: a job is scheduled as it was asked for, and followed to its end."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient
from tests.support import forked
from tests.support.eventually import TIMEOUT, eventually
from tests.support.terminal_commands import Going, Platform, lines


def metadata(platform: Platform, key: str) -> dict[str, Any]:
    return platform.call(lambda client: client.jobs.metadata(JobKey.parse(key)))


def test_a_job_has_what_was_asked_for(platform: Platform) -> None:
    (job,) = platform.lines(
        "run", "books", "-a", "category=travel", "-a", "page=a=b", "--tag", "nightly", "--tag", "eu", "--priority", "4",
        "--units", "2", "--job-setting", "CLOSESPIDER_ITEMCOUNT=10", "--env", "REGION=eu", "--version", "1.2",
    )  # fmt: skip
    assert (job["spider"], job["state"]) == ("books", "pending")
    stored = metadata(platform, job["id"])
    assert stored["spider_args"] == {"category": "travel", "page": "a=b"}
    assert stored["tags"] == ["nightly", "eu"]
    assert (stored["priority"], stored["units"], stored["version"]) == (4, 2, "1.2")
    assert stored["job_settings"] == {"CLOSESPIDER_ITEMCOUNT": "10"}
    assert stored["environment"] == {"REGION": "eu"}


def test_a_script_has_its_arguments(platform: Platform) -> None:
    (job,) = platform.lines("run", "py:report.py", "--tag", "x", "--", "--days", "7", "two words")
    stored = metadata(platform, job["id"])
    assert (stored["spider"], stored["cmd_args"]) == ("py:report.py", "--days 7 'two words'")


def test_the_project_can_be_named(platform: Platform) -> None:
    other = platform.project + 5000
    (job,) = platform.lines("run", "books", "--project", str(other))
    assert job["id"].startswith(f"{other}/")
    assert platform.lines("jobs") == []
    assert [row["id"] for row in platform.lines("jobs", "--project", str(other))] == [job["id"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("books", "--", "stray"), "give a spider -a NAME=VALUE"),
        (("py:report.py", "-a", "n=1"), "-a is for spiders"),
        (("books", "-a", "project=1"), "project: cannot be the name of a spider argument"),
        (("",), "spider"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(platform: Platform, arguments: tuple[str, ...], message: str) -> None:
    assert message in platform.refused("run", *arguments)
    assert platform.lines("jobs") == []


def test_a_job_that_runs_already_is_reported(platform: Platform) -> None:
    platform.lines("run", "books")
    assert "already scheduled" in platform.refused("run", "books")


class Life:
    """A job's life, played as a runner would."""

    def __init__(self, platform: Platform, going: Going) -> None:
        self.platform = platform
        going.until(lambda: re.search(r"job (\d+/\d+/\d+) is scheduled", going.said()))
        found = re.search(r"job (\d+/\d+/\d+) is scheduled", going.said())
        assert found is not None
        self.key = JobKey.parse(found[1])

    def starts(self) -> None:
        self._do(lambda client: client.jobq.update(self.platform.project, self.key, state="running"))

    def logs(self, first: int, number: int) -> None:
        records = [{"time": 1, "level": 20, "message": f"line {n}"} for n in range(first, first + number)]
        self._do(lambda client: client.logs.write(self.key, lines(records), first))

    def items(self, number: int) -> None:
        self._do(lambda client: client.items.write(self.key, lines([{"n": n} for n in range(number)]), 0))

    def _do(self, work: Any) -> None:
        self.platform.call(work)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("reason", "code"), [("finished", 0), ("cancelled", 3), ("killed by oom", 3)])
def test_a_job_is_followed_to_its_end_and_only_finished_is_success(platform: Platform, reason: str, code: int) -> None:
    with platform.start("run", "books", "--follow") as going:
        life = Life(platform, going)
        life.starts()
        life.logs(0, 3)
        going.until(lambda: len(going.lines()) == 3)
        life.items(5)
        life.logs(3, 2)
        platform.ends(life.key, reason)
        assert going.end() == code
    assert [record["message"] for record in going.lines()] == [f"line {n}" for n in range(5)]
    last = going.said().splitlines()[-1]
    assert last.startswith(f"job {life.key} ended: {reason}; 5 items, ")


def test_ctrl_c_leaves_the_job_running_and_says_how_to_stop_it(platform: Platform) -> None:
    with platform.start("run", "books", "--follow") as going:
        life = Life(platform, going)
        life.starts()
        life.logs(0, 1)
        going.until(going.lines)
        assert going.interrupt() == 130
    assert (
        going.said().splitlines()[-1] == f"job {life.key} keeps running; stop it with: scrapy platform stop {life.key}"
    )
    assert metadata(platform, str(life.key))["state"] == "running"


@pytest.mark.long
def test_a_job_that_waits_says_for_what(platform: Platform) -> None:
    with platform.start("run", "books", "--follow") as going:
        life = Life(platform, going)
        going.until(lambda: f"job {life.key} is still pending: it waits for free units of a node" in going.said())
        platform.ends(life.key, "cancelled")
        assert going.end() == 3


@pytest.mark.long
def test_a_job_that_is_deleted_is_no_success(platform: Platform) -> None:
    with platform.start("run", "books", "--follow") as going:
        life = Life(platform, going)
        platform.call(lambda client: client.jobs.delete(platform.project, life.key))
        assert going.end() == 3


@pytest.mark.long
def test_a_terminal_has_the_counters_in_its_last_line(platform: Platform) -> None:
    master, slave = pty.openpty()
    with forked.start(
        [sys.executable, "-m", "scrapy", "platform", "run", "books", "--follow"],
        cwd=platform.folder, env={**platform.environment, "COLUMNS": "100", "TERM": "xterm"},
        stdin=slave, stdout=slave, stderr=slave,
    ) as process:  # fmt: skip
        os.close(slave)
        said = bytearray()
        os.set_blocking(master, False)

        def shows(pattern: str) -> bool:
            with contextlib.suppress(OSError):
                said.extend(os.read(master, 65536))
            return re.search(pattern.encode(), bytes(said)) is not None

        def wait_to_see(pattern: str) -> None:
            eventually(lambda: shows(pattern), details=lambda: bytes(said))

        wait_to_see(r"job (\d+/\d+/\d+) is scheduled")
        key = JobKey.parse(bytes(said).split(b"job ")[1].split(b" ")[0].decode())
        wait_to_see("pending: 0 items, 0 responses, 0 errors")

        async def live(client: PlatformClient) -> None:
            await client.jobq.update(platform.project, key, state="running")
            await client.items.write(key, lines([{"n": n} for n in range(7)]), 0)
            await client.logs.write(key, lines([{"time": 1, "level": 20, "message": "a line"}]), 0)

        platform.call(live)
        wait_to_see("running: 7 items")
        wait_to_see("a line")
        platform.ends(key)
        wait_to_see("ended: finished; 7 items")
        assert process.wait(TIMEOUT) == 0
    os.close(master)
    # A line of the log is never behind the counters in one line.
    assert not re.search(rb"errors[^\r\n]*\S *INFO", bytes(said))


_SPIDERS = """\
import asyncio

import scrapy


class Quick(scrapy.Spider):
    name = "quick"

    async def start(self):
        for n in range(int(self.number)):
            yield {"n": n}


class Slow(scrapy.Spider):
    name = "slow"

    async def start(self):
        self.logger.info("It waits")
        while True:
            await asyncio.sleep(0.1)
            yield {}
"""


@pytest.fixture
def alone(platform: Platform, tmp_path: Path) -> Platform:
    """A Scrapy project that names no platform."""
    spiders = tmp_path / "shop" / "spiders"
    spiders.mkdir(parents=True)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    settings = "ADDONS = {'scrapy_ext.Addon': 500}\nSPIDER_MODULES = ['shop.spiders']\nEXTRACT_API_ENABLED = False\n"
    (tmp_path / "shop" / "settings.py").write_text(settings)
    (spiders / "both.py").write_text(_SPIDERS)
    return Platform(
        {**platform.environment, "PLATFORM_URL": "", "PLATFORM_API_KEY": "", "PLATFORM_PROJECT": "4"}, tmp_path, 4
    )


@pytest.mark.long
def test_without_a_platform_a_job_runs_in_a_server_of_the_commands_own(alone: Platform) -> None:
    with alone.start("run", "slow") as going:
        going.until(lambda: b"It waits" in going.stdout)
        assert going.interrupt() == 130
    first, last = going.said().splitlines()
    assert "runs in this command's own server, so the command follows it to its end" in first
    assert "stops with this command; with `scrapy platform serve` it would keep running" in last

    with alone.start("run", "quick", "-a", "number=2") as going:
        assert going.end() == 0
    assert "ended: finished; 2 items" in going.said()
    # The server of a command that runs no jobs leaves them alone.
    jobs = {job["spider"]: job for job in alone.lines("jobs")}
    assert {name: job["state"] for name, job in jobs.items()} == {"quick": "finished", "slow": "pending"}
    assert jobs["quick"]["items_scraped"] == 2
