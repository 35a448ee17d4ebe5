"""``scrapy platform`` as its user runs it, against a real server with known data."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.commands.platform import SUBCOMMANDS
from tests.support import forked
from tests.support.eventually import TIMEOUT
from tests.support.http import Http
from tests.support.played_server import PlayedServer, json_reply
from tests.support.terminal_commands import Platform, lines, plain, scrapy

PROJECT = 7
ITEMS = 2500
HOSTILE = "\x1b]0;owned\x07\x1b[2Jname\x9b31m\u202e"


@dataclass
class Filled(Platform):
    """A platform with known data."""

    books: JobKey
    news: JobKey


@pytest.fixture(scope="module")
def platform(served: Platform) -> Filled:
    known = served.with_project(PROJECT)
    books, news = known.call(_fill)
    return Filled(known.environment, known.folder, PROJECT, books, news)


async def _fill(client: PlatformClient) -> tuple[JobKey, JobKey]:
    books = JobKey.parse((await client.jobq.push(PROJECT, "books", tags=["nightly"])).key)
    items: list[dict[str, Any]] = [{"name": f"book {n}", "price": n / 2, "tags": ["a", "b"]} for n in range(ITEMS)]
    items[3] = {"name": HOSTILE, "price": None, "_hidden": 1}
    await client.items.write(books, lines(items), 0)
    log = [{"time": 1_700_000_000_000 + n, "level": (10, 20, 30)[n % 3], "message": f"line {n}"} for n in range(300)]
    log[5]["message"] = f"a traceback\n  of two lines {HOSTILE}"
    await client.logs.write(books, lines(log), 0)
    request = {"time": 1_700_000_000_000, "method": "GET", "status": 200, "duration": 1500, "rs": 2048}
    requests = [{**request, "url": f"http://a/{n}", **({"parent": 0} if n else {})} for n in range(40)]
    await client.requests.write(books, lines(requests), 0)
    await client.jobs.update(books, {"frameworkstats": {"item_scraped_count": ITEMS}})
    await client.jobq.update(PROJECT, books, state="finished", close_reason="finished")
    news = JobKey.parse((await client.jobq.push(PROJECT, "news")).key)
    await client.items.write(news, lines([{"headline": "one"}]), 0)
    return books, news


def test_jobs_come_newest_first(platform: Filled) -> None:
    jobs = platform.lines("jobs")
    assert [(job["id"], job["spider"], job["state"]) for job in jobs] == [
        (str(platform.news), "news", "running"),
        (str(platform.books), "books", "finished"),
    ]
    assert jobs[1]["items_scraped"] == ITEMS


@pytest.mark.parametrize(
    ("options", "spiders"),
    [
        (("--state", "running"), ["news"]),
        (("--spider", "books"), ["books"]),
        (("--tag", "nightly"), ["books"]),
        (("--needs-attention",), []),
        (("--count", "1"), ["news"]),
        (("--start", "1"), ["books"]),
        (("--start", "5"), []),
    ],
)
def test_jobs_are_selected(platform: Filled, options: tuple[str, ...], spiders: list[str]) -> None:
    assert [job["spider"] for job in platform.lines("jobs", *options)] == spiders


def test_jobs_have_their_verdicts(platform: Filled) -> None:
    """The server runs no jobs, so that it judges none."""
    assert [job.get("verdict") for job in platform.lines("jobs")] == [None, "unjudged"]
    shown = plain(platform.terminal("jobs"))
    assert re.search(r"finished +unjudged", shown)
    assert "1 finished job not judged yet (verdict: unjudged)" in shown


async def test_jobs_of_a_platform_without_verdicts_are_listed_without_them(platform: Filled) -> None:
    fields = {"state": "finished", "priority": 2, "tags": [], "updated_time": ""}
    numbers = {"responses_received": 0, "items_scraped": 4, "logs": 0, "errors_count": 0}
    listed = {"status": "ok", "count": 1, "total": 1, "jobs": [{"id": "7/1/1", "spider": "books", **fields, **numbers}]}
    server = PlayedServer()
    server.script = lambda request: (
        json_reply(listed) if request.path == "/api/jobs/list.json" else json_reply({"status": "error"}, 404)
    )
    await server.start()
    environment = {**platform.environment, "PLATFORM_URL": server.url}
    jobs = await asyncio.to_thread(scrapy, "platform", "jobs", "--json", environment=environment)
    refused = await asyncio.to_thread(scrapy, "platform", "jobs", "--needs-attention", environment=environment)
    await server.stop()
    assert [(job["id"], job["items_scraped"], job.get("verdict")) for job in jobs.records] == [("7/1/1", 4, None)]
    assert refused.returncode == 1
    assert "gives no verdicts on jobs; leave out --needs-attention" in refused.stderr


def test_a_job_is_shown_with_its_stats(platform: Filled) -> None:
    (job,) = platform.lines("job", str(platform.books))
    assert job["key"] == str(platform.books)
    assert job["close_reason"] == "finished"
    assert job["frameworkstats"]["item_scraped_count"] == ITEMS
    table = plain(platform.terminal("job", str(platform.books)))
    assert re.search(rf"item_scraped_count +{ITEMS}", table)
    assert re.search(r"close_reason +finished", table)


@pytest.mark.parametrize("name", ["key", "number"])
def test_a_job_is_named_by_its_key_or_its_number(platform: Filled, name: str) -> None:
    text = {"key": str(platform.books), "number": str(platform.books.job)}[name]
    if name == "number" and platform.books.job == platform.news.job:
        done = platform.run("items", text)
        assert done.returncode == 1
        assert str(platform.books) in done.stderr
        assert str(platform.news) in done.stderr
    else:
        assert platform.lines("items", text, "--count", "1")[0]["name"] == "book 0"


def test_the_last_job_is_meant_when_none_is_named(platform: Filled) -> None:
    assert platform.lines("items") == platform.lines("items", "last") == [{"headline": "one"}]


def test_every_item_goes_into_a_pipe_as_it_was_stored(platform: Filled) -> None:
    items = platform.lines("items", str(platform.books))
    assert len(items) == ITEMS
    assert items[0] == {"name": "book 0", "price": 0.0, "tags": ["a", "b"]}
    assert items[3]["name"] == HOSTILE
    assert [item["name"] for item in items[4:]] == [f"book {n}" for n in range(4, ITEMS)]


def test_items_are_shown_in_parts(platform: Filled) -> None:
    items = platform.lines(
        "items", str(platform.books), "--start", "1200", "--count", "3", "--fields", "name", "--meta"
    )
    assert items == [{"name": f"book {n}"} for n in range(1200, 1203)]
    (item,) = platform.lines("items", str(platform.books), "--start", str(ITEMS - 1), "--meta")
    assert item["_key"] == f"{platform.books}/{ITEMS - 1}"
    assert item["_ts"] > 1_700_000_000_000


def test_items_as_csv_have_every_field(platform: Filled) -> None:
    done = platform.run("items", str(platform.books), "--csv", "--count", "4")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0] == ["_hidden", "name", "price", "tags"]
    assert rows[1] == ["", "book 0", "0.0", '["a","b"]']
    assert rows[4] == ["1", HOSTILE, "", ""]
    chosen = platform.run("items", str(platform.books), "--csv", "--count", "1", "--fields", "price,name")
    assert chosen.stdout == "price,name\n0.0,book 0\n"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", [(), ("--json",), ("--csv",)])
def test_a_hostile_item_cannot_touch_the_terminal(platform: Filled, options: tuple[str, ...]) -> None:
    text = plain(platform.terminal("items", str(platform.books), "--count", "5", *options))
    assert "book 4" in text
    assert not set(text) & set("\x1b\x07\x9b\u202e")


@pytest.mark.long
def test_a_terminal_gets_a_screenful_and_how_to_go_on(platform: Filled) -> None:
    text = plain(platform.terminal("items", str(platform.books), columns=80))
    assert "book 49" in text
    assert "book 50" not in text
    assert f"50 of {ITEMS}; the next: --start 50" in text
    assert max(map(len, text.splitlines())) <= 80
    following = plain(platform.terminal("items", str(platform.books), "--start", "50", "--count", "1"))
    assert "book 50" in following
    assert "--start 51" in following


@pytest.mark.long
def test_requests_are_shown(platform: Filled) -> None:
    requests = platform.lines("requests", str(platform.books))
    assert len(requests) == 40
    assert "parent" not in requests[0]
    assert requests[39]["url"] == "http://a/39"
    text = plain(platform.terminal("requests", str(platform.books), "--count", "2"))
    assert re.search(r" 0 +2023-11-14 22:13:20 +GET +200 +1\.5s +http://a/0 +2048", text)
    assert "2 of 40; the next: --start 2" in text
    text = plain(platform.terminal("requests", str(platform.books), "--start", "39"))
    assert re.search(r" 39 +2023-11-14 .* http://a/39 ", text)
    assert f"requests {platform.books} --start INDEX --count 1 --json" in text
    assert platform.lines("requests", str(platform.books), "--start", "39", "--count", "1", "--json") == [requests[39]]


@pytest.mark.long
def test_logs_are_shown_from_a_level_upwards(platform: Filled) -> None:
    books = str(platform.books)
    assert len(platform.lines("logs", books)) == 300
    warnings = platform.lines("logs", books, "--level", "warning", "--start", "1", "--count", "2")
    assert [record["level"] for record in warnings] == [30, 30]
    assert [record["message"] for record in warnings][1] == "line 8"
    text = plain(platform.terminal("logs", books, "--count", "6"))
    assert "6 of 300; the next: --start 6" in text
    assert "a traceback\n" in re.sub(" +\n", "\n", text)
    assert "\x07" not in text
    counted = plain(platform.terminal("logs", books, "--level", "INFO", "--count", "1"))
    assert "1 of 200; the next: --start 1" in counted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("items", "7/1/999"), "there is no job 7/1/999"),
        (("items", "999"), "no job with number 999"),
        (("items", "7/1"), "<project>/<spider>/<job>"),
        (("collections", "get", "nothing"), "there is no collection 'nothing'"),
        (("frontier", "list", "nothing"), "there is no frontier 'nothing'"),
        (("frontier", "show", "a/b", "c"), "frontier"),
        (("stats", "7/1/999"), "there is no job 7/1/999"),
        (("stop", "7/1/999"), "there is no job 7/1/999"),
    ],
)
def test_what_is_not_there_is_reported_in_one_line(platform: Filled, arguments: tuple[str, ...], message: str) -> None:
    done = platform.run(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"scrapy platform {arguments[0]}: ")
    assert message in done.stderr


def test_a_wrong_key_is_reported_with_the_remedy_and_without_the_key(platform: Filled) -> None:
    done = platform.run("jobs", PLATFORM_API_KEY="not-the-key")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "PLATFORM_API_KEY" in done.stderr
    assert "not-the-key" not in done.stderr


def test_a_project_without_jobs_says_so(platform: Filled) -> None:
    done = platform.run("items", PLATFORM_PROJECT="999")
    assert done.returncode == 1
    assert "project 999 has no job yet" in done.stderr
    assert platform.run("jobs", PLATFORM_PROJECT="999").stdout == ""


@pytest.mark.parametrize("arguments", [("jobs",), ("serve",), ("serve", "--port", "0"), ("serve", "--help")])
def test_without_the_servers_libraries_the_command_says_what_to_install(
    platform: Filled, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # So Python remembers a module that is not there.
    monkeypatch.setitem(sys.modules, "starlette", None)
    done = platform.run(*arguments, PLATFORM_URL="", PLATFORM_API_KEY="")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert 'pip install "scrapy-ext[server]"' in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing",),
        ("--json", "items"),
        ("items", "--project", "x"),
        ("schedule", "books"),
        ("frontier", "show", "books"),
        ("logs", "--tail", "-1"),
        ("stop",),
        ("run", "books", "--priority", "5"),
        ("run", "books", "-a", "name"),
        ("completion", "tcsh"),
        ("items", "--count", "0"),
        ("items", "--start", "-1"),
        ("items", "--json", "--csv"),
        ("items", "--fields", ","),
        ("jobs", "--state", "asleep"),
        ("items", "--unknown"),
    ],
)
def test_a_wrong_call_is_a_usage_error(platform: Filled, arguments: tuple[str, ...]) -> None:
    done = platform.run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "usage: scrapy platform" in done.stderr


@pytest.mark.long
def test_help_has_examples_for_every_command(platform: Filled) -> None:
    overview = platform.run("--help").stdout
    for name in SUBCOMMANDS:
        assert re.search(rf"^  {name} ", overview, re.MULTILINE)
        done = platform.run(name, "--help")
        assert done.returncode == 0
        assert re.search(rf"examples:\n  .*scrapy platform {name}", done.stdout)


@pytest.mark.long
def test_a_reader_that_stops_early_is_no_error(platform: Filled) -> None:
    command = f"{sys.executable} -m scrapy platform items {platform.books} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=platform.folder, env=platform.environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    first, status = done.stdout.splitlines()
    assert json.loads(first)["name"] == "book 0"
    assert (status, done.stderr) == ("0", "")


@pytest.mark.long
def test_ctrl_c_ends_quietly(platform: Filled) -> None:
    with forked.start(
        [sys.executable, "-m", "scrapy", "platform", "items", str(platform.books)],
        cwd=platform.folder, env=platform.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        # It has begun, and cannot end: nobody reads the rest.
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(timeout=TIMEOUT) in (0, 130)
        assert process.stderr.read() == b""


def test_serve_runs_the_services_on_the_projects_data(tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (tmp_path / "shop").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    addon = "ADDONS = {'scrapy_ext.Addon': 500}\n"
    (tmp_path / "shop" / "settings.py").write_text(f"{addon}SERVER_ALLOW_HOSTS = ['localhost:{port}']\n")
    environment = {**os.environ, "EXTRACT_API_KEY": "e" * 32, "PLATFORM_API_KEY": "p" * 32}
    scrapy = [sys.executable, "-m", "scrapy", "platform"]
    with forked.start(
        [*scrapy, "serve", "--port", str(port)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        word, url = server.stdout.readline().decode().split()
        assert word == "ready"
        key = asyncio.run(_push(url, "p" * 32))
        assert asyncio.run(_extracted(url, f"http://localhost:{port}/healthz")) == 200
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=TIMEOUT)
    assert (tmp_path / ".scrapy" / "platform").is_dir()
    without_keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = forked.run([*scrapy, "jobs"], cwd=tmp_path, env=without_keys)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [str(key)]


async def _extracted(url: str, target: str) -> int:
    async with Http(url, "e" * 32) as http:
        body = json.dumps({"url": target, "httpResponseBody": True}).encode()
        return (await http.post("/v1/extract", body, content_type="application/json")).status


async def _push(url: str, key: str) -> str:
    async with PlatformClient(PlatformUrls.single(url), key) as client:
        return (await client.jobq.push(1, "shop")).key


def test_the_command_is_in_scrapys_list(tmp_path: Path) -> None:
    done = forked.run([sys.executable, "-m", "scrapy"], cwd=tmp_path)
    assert re.search(r"^  platform +Run jobs, show their stored data", done.stdout, re.MULTILINE)
