"""Collections and frontiers from the command line."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform.frontier import DEAD_LETTERS, dead_letter
from scrapy_ext.client.platform.json_lines import encode
from tests.support import forked
from tests.support.eventually import TIMEOUT
from tests.support.faults import Fault, FaultProxy
from tests.support.terminal_commands import Platform, lines

Requests = list[dict[str, Any]]


@pytest.fixture
def seen(platform: Platform) -> Platform:
    """A project with a collection of 120 records."""
    records = [{"_key": f"k{n:03}", "n": n} for n in range(120)]
    platform.call(lambda client: client.collections.write(platform.project, "s", "seen", lines(records)))
    return platform


def numbers(platform: Platform, *options: str) -> list[int]:
    return [record["n"] for record in platform.lines("collections", "get", "seen", *options)]


def test_records_of_a_collection_are_chosen_by_conditions_and_text(seen: Platform, tmp_path: Path) -> None:
    def found(*options: str) -> list[int]:
        return [record["n"] for record in seen.lines("collections", "get", "seen", *options)]

    assert found("--where", "n >= 3 and n < 6") == [3, 4, 5]
    assert found("--where", "n > 3", "--count", "2", "--after", "k010") == [11, 12]
    assert found("--where", "n = 7", "--where", "other is missing") == [7]
    assert found("--where", "n < 2", "--key", "k001", "--key", "k009") == [1]
    assert found("--search", "no such text") == []
    seen.run("collections", "get", "seen", "--where", "n < 2", "--output", str(tmp_path / "seen.jl"))
    assert [json.loads(line)["n"] for line in (tmp_path / "seen.jl").read_text().splitlines()] == [0, 1]


def test_collections_and_their_records_are_shown(seen: Platform) -> None:
    listed = [{"type": "s", "name": "seen", "records": 120}]
    assert seen.lines("collections") == seen.lines("collections", "list") == listed
    assert seen.lines("collections", "count", "seen", "--prefix", "k01") == [{**listed[0], "records": 10}]
    assert seen.lines("collections", "get", "seen", "--count", "1") == [{"_key": "k000", "n": 0}]
    assert numbers(seen) == [*range(120)]
    assert numbers(seen, "--prefix", "k01") == [*range(10, 20)]
    assert numbers(seen, "--after", "k110", "--count", "2") == [111, 112]
    assert numbers(seen, "--key", "k005", "--key", "absent") == [5]
    assert seen.lines("collections", "get", "seen", "--count", "1", "--meta")[0]["_ts"] > 1_700_000_000_000


def test_a_collection_goes_to_a_file_and_back(seen: Platform, tmp_path: Path) -> None:
    file = tmp_path / "seen.jsonl"
    file.write_text(seen.run("collections", "get", "seen").stdout)
    assert seen.lines("collections", "put", "copy", str(file), "--type", "vs") == [
        {"type": "vs", "name": "copy", "written": 120}
    ]
    assert seen.lines("collections", "get", "copy") == seen.lines("collections", "get", "seen")
    # Of one that is there, the type is known.
    assert seen.lines("collections", "put", "copy", str(file))[0]["type"] == "vs"


def test_records_are_taken_from_standard_input(platform: Platform) -> None:
    command = [sys.executable, "-m", "scrapy", "platform", "collections", "put", "new"]
    given = '{"_key": "a", "n": 1.50}\n\n{"_key": "b"}'
    done = forked.run(command, cwd=platform.folder, env=platform.environment, input=given)
    assert json.loads(done.stdout) == {"type": "s", "name": "new", "written": 2}
    assert platform.lines("collections", "get", "new") == [{"_key": "a", "n": 1.5}, {"_key": "b"}]


@pytest.mark.parametrize(
    ("line", "message"), [("[1]", "not a JSON object"), ('{"a": 1}', "has no _key"), ('{"_key": 1}', "has no _key")]
)
def test_a_line_that_is_no_record_is_named_and_those_before_it_are_written(
    platform: Platform, tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"_key": "a"}\n{"_key": "b"}\n' + line + '\n{"_key": "c"}\n')
    said = platform.refused("collections", "put", "new", str(file))
    assert f"{file}, line 3: " in said
    assert message in said
    assert "2 records before it are written" in said
    assert [record["_key"] for record in platform.lines("collections", "get", "new")] == ["a", "b"]


def test_a_file_that_is_not_there_is_reported(platform: Platform) -> None:
    assert "No such file" in platform.refused("collections", "put", "new", "absent.jsonl")


def test_records_and_collections_are_deleted_and_renamed(seen: Platform) -> None:
    assert "Delete 10 records of seen?" in seen.refused("collections", "delete", "seen", "--prefix", "k01")
    assert seen.run("collections", "delete", "seen", "--prefix", "k01", "--yes").returncode == 0
    assert seen.run("collections", "delete", "seen", "--key", "k000", "--key", "k001", "--yes").returncode == 0
    assert numbers(seen) == [*range(2, 10), *range(20, 120)]
    assert seen.run("collections", "rename", "seen", "known").returncode == 0
    assert [row["name"] for row in seen.lines("collections")] == ["known"]
    assert "there is no collection 'seen'" in seen.refused("collections", "rename", "seen", "x")
    assert seen.run("collections", "delete", "known", "--yes").returncode == 0
    assert seen.lines("collections") == []


# ── frontiers ──


@pytest.fixture
def crawl(platform: Platform) -> Platform:
    """A project with a frontier: 450 requests of three priorities in slot 3, none any more in slot 4."""
    requests = [{"fp": f"f{n}", "qdata": {"n": n}, "p": n % 3 - 1} for n in range(450)]

    async def fill(client: Any) -> None:
        await client.frontier.add(platform.project, "crawl", "3", lines(requests))
        await client.frontier.add(platform.project, "crawl", "4", lines([{"fp": "done"}]))
        done = await client.frontier.read(platform.project, "crawl", "4")
        await client.frontier.delete_batches(platform.project, "crawl", "4", [batch.id for batch in done])

    platform.call(fill)
    return platform


def dumped(platform: Platform, name: str) -> Requests:
    return platform.lines("frontier", "dump", name)


def test_frontiers_slots_and_requests_are_shown_and_stay(crawl: Platform) -> None:
    assert crawl.lines("frontier") == [{"frontier": "crawl", "slots": 2}]
    slots = {slot["slot"]: slot for slot in crawl.lines("frontier", "list", "crawl")}
    assert slots["3"] == {"frontier": "crawl", "slot": "3", "queued": 450, "next": "f0"}
    assert slots["4"] == {"frontier": "crawl", "slot": "4", "queued": 0, "next": None}
    for _ in range(2):
        requests = crawl.lines("frontier", "show", "crawl", "3", "--count", "120")
        assert len({request["fp"] for request in requests}) == 120
    assert crawl.lines("frontier", "show", "crawl", "4", "--fingerprints") == [{"fp": "done"}]
    counted = crawl.lines("frontier", "count", "crawl", "--fingerprints")
    assert [(row["slot"], row["queued"], row["fingerprints"]) for row in counted] == [("3", 450, 450), ("4", 0, 1)]


def test_a_whole_queue_is_dumped_in_its_order(crawl: Platform) -> None:
    requests = dumped(crawl, "crawl")
    assert [request["qdata"]["n"] for request in requests] == sorted(range(450), key=lambda n: (n % 3, n))
    assert requests[0] == {"slot": "3", "fp": "f0", "qdata": {"n": 0}, "p": -1}
    assert crawl.lines("frontier", "count", "crawl", "3") == [{"frontier": "crawl", "slot": "3", "queued": 450}]


_WORK = """\
from scrapy_ext.commands import output
output.AFTER = {after}
with output.bar("requests", 4) as advance:
    advance(3)
print("done")
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("after", "terminal", "shown"), [(0, True, True), (60, True, False), (0, False, False)])
def test_long_work_has_a_bar_in_a_terminal_only(after: int, terminal: bool, shown: bool) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-c", _WORK.format(after=after)]
    with subprocess.Popen(
        command,
        env={**os.environ, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=slave if terminal else subprocess.PIPE,
    ) as process:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):
            while piece := os.read(master, 4096) if terminal else b"":
                said += piece
        out, errors = process.communicate(timeout=TIMEOUT)
    os.close(master)
    assert (process.returncode, out) == (0, b"done\n")
    assert (b"3/4" in said + (errors or b"")) == shown


def test_requests_move_with_their_order_to_another_frontier_or_slot(crawl: Platform) -> None:
    before = dumped(crawl, "crawl")
    assert "Move 450 requests of crawl to other?" in crawl.refused("frontier", "move", "crawl", "--to", "other")
    assert crawl.run("frontier", "move", "crawl", "--to", "other", "--yes").returncode == 0
    assert dumped(crawl, "crawl") == []
    assert dumped(crawl, "other") == before
    assert crawl.run("frontier", "move", "other", "3", "--to-slot", "9", "--yes").returncode == 0
    assert dumped(crawl, "other") == [{**request, "slot": "9"} for request in before]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.REFUSED], ids=["away", "refused"])
@pytest.mark.parametrize(
    ("step", "left", "moved"), [("/other/s/3", 25, 20), ("/crawl/s/3/q/deleted", 25, 40)], ids=["adding", "deleting"]
)
def test_a_move_that_is_interrupted_loses_nothing_and_goes_on(
    platform: Platform, fault: Fault, step: str, left: int, moved: int
) -> None:
    # Each priority makes a batch of its own, and twenty batches move together.
    requests = [{"fp": f"f{n}", "qdata": {"n": n}, "p": n} for n in range(45)]
    platform.call(lambda client: client.frontier.add(platform.project, "crawl", "3", lines(requests)))

    def rule(method: str, path: str, number: int) -> Fault | None:
        return fault if method == "POST" and path.endswith(step) and number > 0 else None

    move = ("frontier", "move", "crawl", "3", "--to", "other", "--yes")
    with FaultProxy(platform.environment["PLATFORM_URL"], rule) as proxy:
        done = platform.run(*move, "-s", "PLATFORM_RETRY_TIME=0.1", PLATFORM_URL=proxy.url)
    assert done.returncode == 1
    done_in_secret = 20 if fault is Fault.LOST_REPLY else 0
    here, there = dumped(platform, "crawl"), dumped(platform, "other")
    if "deleted" in step:
        assert (len(here), len(there)) == (left - done_in_secret, moved)
    else:
        assert (len(here), len(there)) == (left, moved + done_in_secret)
    assert {request["fp"] for request in (*here, *there)} == {f"f{n}" for n in range(45)}
    assert platform.run(*move).returncode == 0
    assert dumped(platform, "crawl") == []
    assert [request["qdata"]["n"] for request in dumped(platform, "other")] == [*range(45)]


def test_dead_letters_are_shown_and_enqueued_again(platform: Platform) -> None:
    letters = encode(dead_letter(2, f"f{n}", {"url": f"http://a/{n}", "priority": 5}, "boom") for n in range(3))
    platform.call(lambda client: client.frontier.add(platform.project, "crawl", DEAD_LETTERS, letters))
    shown = platform.lines("frontier", "show", "crawl", DEAD_LETTERS)
    assert [letter["qdata"]["error"] for letter in shown] == ["boom"] * 3
    assert platform.run("frontier", "requeue", "crawl").returncode == 0
    found = dumped(platform, "crawl")
    assert [(request["slot"], request["p"], request["qdata"]["url"]) for request in found] == [
        ("2", -5, f"http://a/{n}") for n in range(3)
    ]


def test_a_frontier_is_deleted_slot_by_slot_or_whole(crawl: Platform) -> None:
    assert "with 450 queued requests" in crawl.refused("frontier", "delete", "crawl")
    assert crawl.run("frontier", "delete", "crawl", "3", "--yes").returncode == 0
    assert [slot["slot"] for slot in crawl.lines("frontier", "list", "crawl")] == ["4"]
    assert crawl.run("frontier", "delete", "crawl", "--yes").returncode == 0
    assert crawl.lines("frontier") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "crawl", "9"), "has no slot '9'"),
        (("dump", "nothing"), "there is no frontier 'nothing'"),
        (("move", "crawl"), "name the target"),
        (("move", "crawl", "3", "--to-slot", "3", "--yes"), "the same slot"),
        (("requeue", "nothing"), "there is no frontier 'nothing'"),
    ],
)
def test_what_a_frontier_cannot_do_is_reported(crawl: Platform, arguments: tuple[str, ...], message: str) -> None:
    assert message in crawl.refused("frontier", *arguments)


def test_a_collection_alone_is_shown(seen: Platform) -> None:
    assert seen.lines("collections", "seen", "--count", "1") == [{"_key": "k000", "n": 0}]


def test_a_frontier_and_a_slot_alone_are_shown(crawl: Platform) -> None:
    assert crawl.lines("frontier", "crawl") == crawl.lines("frontier", "list", "crawl")
    shown = crawl.lines("frontier", "crawl", "3", "--count", "2")
    assert len(shown) == 2
    assert shown == crawl.lines("frontier", "show", "crawl", "3", "--count", "2")
    assert crawl.run("frontier", "crawl", "--delete").returncode == 0
    assert "no frontier 'crawl'" in crawl.refused("frontier", "list", "crawl")
