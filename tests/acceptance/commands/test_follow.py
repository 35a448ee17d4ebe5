"""``--follow``: what a job writes is shown once, in order, as it comes, until the job ends."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey
from tests.support.faults import Fault, FaultProxy
from tests.support.terminal_commands import Going, Platform, lines


def log(first: int, number: int, level: int = 20) -> bytes:
    return lines(
        [{"time": 1_700_000_000_000 + n, "level": level, "message": f"line {n}"} for n in range(first, first + number)]
    )


def messages(going: Going) -> list[str]:
    return [record["message"] for record in going.lines()]


def named(*numbers: int) -> list[str]:
    return [f"line {n}" for n in range(*numbers)]


def test_a_log_is_shown_as_it_grows_and_the_command_ends_with_the_job(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.logs.write(key, log(0, 450), 0))
    with platform.start("logs", str(key), "-f") as going:
        going.until(lambda: messages(going) == named(450))
        for first in (450, 451):
            platform.call(lambda client, first=first: client.logs.write(key, log(first, 1), first))  # type: ignore[misc]
            going.until(lambda first=first: messages(going) == named(first + 1))
        platform.call(lambda client: client.logs.write(key, log(452, 3), 452))
        platform.ends(key, "cancelled")
        assert going.end() == 0
    assert messages(going) == named(455)
    assert going.said() == ""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("place", ["--tail", "--start"])
def test_following_begins_at_the_given_place(platform: Platform, place: str) -> None:
    key = platform.job()
    platform.call(lambda client: client.items.write(key, lines([{"n": n} for n in range(100)]), 0))
    with platform.start("items", "last", "--follow", place, {"--tail": "3", "--start": "97"}[place]) as going:
        going.until(lambda: going.lines() == [{"n": 97}, {"n": 98}, {"n": 99}])
        platform.call(lambda client: client.items.write(key, lines([{"n": 100, "_key": "own"}]), 100))
        platform.ends(key)
        assert going.end() == 0
    assert going.lines()[3:] == [{"n": 100, "_key": "own"}]


@pytest.mark.long
def test_following_ends_after_so_many_records(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.requests.write(key, lines([_request(n) for n in range(3)]), 0))
    with platform.start("requests", "last", "--follow", "--count", "5") as going:
        going.until(lambda: len(going.lines()) == 3)
        platform.call(lambda client: client.requests.write(key, lines([_request(n) for n in range(3, 9)]), 3))
        assert going.end() == 0
    assert [record["url"] for record in going.lines()] == [f"http://a/{n}" for n in range(5)]


def _request(n: int) -> dict[str, Any]:
    return {"time": 1, "method": "GET", "url": f"http://a/{n}", "status": 200, "duration": 1, "rs": 1}


@pytest.mark.long
def test_a_level_is_followed_by_its_own_count(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.logs.write(key, b"".join(log(n, 1, (10, 40)[n % 2]) for n in range(10)), 0))
    with platform.start("logs", str(key), "-f", "--level", "error", "--tail", "2") as going:
        going.until(lambda: messages(going) == ["line 7", "line 9"])
        platform.call(lambda client: client.logs.write(key, log(10, 1, 50) + log(11, 1), 10))
        platform.ends(key)
        assert going.end() == 0
    assert messages(going) == ["line 7", "line 9", "line 10"]


@pytest.mark.long
def test_a_terminal_gets_a_table_that_grows(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.logs.write(key, log(0, 1), 0))
    with platform.start("logs", str(key), "-f", terminal=True, columns=80) as going:
        going.until(lambda: "line 0" in going.text())
        long = {"time": 1_700_000_000_000, "level": 30, "message": "a line that is longer than the first was"}
        platform.call(lambda client: client.logs.write(key, lines([long]), 1))
        platform.ends(key)
        assert going.end() == 0
    assert re.search(r"WARNING +a line that is longer than the first was", going.text())
    assert going.text().count("time (UTC)") == 1
    assert max(map(len, going.text().splitlines())) <= 80


def test_a_platform_that_is_away_is_reported_once_and_nothing_is_lost_or_repeated(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.items.write(key, lines([{"n": n} for n in range(10)]), 0))
    away = [False]

    def rule(_method: str, _path: str, number: int) -> Fault | None:
        return (Fault.UNAVAILABLE, Fault.LOST_REQUEST, Fault.LOST_REPLY)[number % 3] if away[0] else None

    with (
        FaultProxy(platform.environment["PLATFORM_URL"], rule) as proxy,
        platform.start("items", str(key), "--follow", PLATFORM_URL=proxy.url) as going,
    ):
        going.until(lambda: len(going.lines()) == 10)
        away[0] = True
        going.until(lambda: len(proxy.shown) >= 4)
        platform.call(lambda client: client.items.write(key, lines([{"n": n} for n in range(10, 20)]), 10))
        away[0] = False
        going.until(lambda: len(going.lines()) == 20)
        platform.ends(key)
        assert going.end() == 0
    assert [item["n"] for item in going.lines()] == [*range(20)]
    first, second = going.said().splitlines()
    assert "does not answer" in first
    assert second == "the platform answers again"


@pytest.mark.long
def test_what_waiting_does_not_mend_ends_the_following(platform: Platform) -> None:
    key = platform.job()
    refuses = [False]
    rule = lambda *_: Fault.REFUSED if refuses[0] else None  # noqa: E731
    with (
        FaultProxy(platform.environment["PLATFORM_URL"], rule) as proxy,
        platform.start("logs", str(key), "-f", PLATFORM_URL=proxy.url) as going,
    ):
        going.until(lambda: proxy.steps.total() > 3)
        refuses[0] = True
        assert going.end() == 1
    assert len(going.said().splitlines()) == 1
    assert "403" in going.said()


def test_a_platform_that_is_not_there_is_reported_at_once(platform: Platform) -> None:
    done = platform.run("logs", "1/2/3", "-f", PLATFORM_URL="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "PLATFORM_URL" in done.stderr


@pytest.mark.long
def test_a_job_that_is_deleted_ends_the_following(platform: Platform) -> None:
    key = platform.job()
    platform.call(lambda client: client.logs.write(key, log(0, 2), 0))
    with platform.start("logs", str(key), "-f") as going:
        going.until(lambda: len(going.lines()) == 2)
        platform.call(lambda client: client.jobs.delete(platform.project, key))
        assert going.end() == 0
    assert len(going.lines()) == 2


@pytest.mark.long
def test_csv_is_followed_with_named_fields(platform: Platform) -> None:
    key = platform.job()
    assert "name them with --fields" in platform.refused("items", str(key), "--csv", "--follow")
    with platform.start("items", str(key), "--csv", "--fields", "n,m", "--follow") as going:
        platform.call(lambda client: client.items.write(key, lines([{"n": 1}, {"n": 2, "m": "x"}]), 0))
        going.until(lambda: going.text() == "n,m\n1,\n2,x\n")
        assert going.interrupt() == 130


def events(going: Going) -> list[tuple[str, Any]]:
    return [(message["event"], message.get("n")) for message in going.lines()]


@pytest.mark.long
def test_activity_is_followed_in_the_order_in_which_it_happened(platform: Platform) -> None:
    def tell(*numbers: int) -> None:
        async def post(client: Any) -> None:
            for n in numbers:
                await client.activity.post(platform.project, {"event": "posted", "n": n})

        platform.call(post)

    tell(0, 1)
    with platform.start("activity", "--follow") as going:
        going.until(lambda: len(going.lines()) == 2)
        tell(2)
        going.until(lambda: len(going.lines()) == 3)
        # More than one answer has, and the same message again and again.
        tell(*range(3, 70), *[70] * 80)
        going.until(lambda: len(going.lines()) >= 150)
        assert going.interrupt() == 130
    assert events(going) == [("posted", n) for n in (*range(70), *[70] * 80)]
    newest = platform.lines("activity", "--count", "2")
    assert [message["n"] for message in newest] == [70, 70]
    assert json.dumps(newest)
    assert isinstance(newest[0]["_ts"], int)


def test_the_jobs_own_events_are_shown(platform: Platform) -> None:
    key: JobKey = platform.job(state="pending")
    platform.call(lambda client: client.jobs.stop(platform.project, key))
    posted = [(message["event"], message["job"]) for message in platform.lines("activity")]
    assert ("job:cancelled", str(key)) in posted
    assert ("job:scheduled", str(key)) in posted
