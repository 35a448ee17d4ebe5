"""The server as a process: starting, refusing to start, ending, and what survives it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.eventually import eventually
from tests.support.http import Http
from tests.support.servers import RunningServer, command, limit_files, without_keys
from tests.support.stores import ENGINES


def failed_start(*options: str, file_limit: int | None = None) -> str:
    """The one line that a server says that cannot start."""
    done = subprocess.run(
        command("--port", "0", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        env={**without_keys(), "EXTRACT_API_KEY": "a", "PLATFORM_API_KEY": "b"},
        check=False,
        preexec_fn=None if file_limit is None else lambda: limit_files(file_limit),
    )
    assert done.returncode == 1
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "Traceback" not in done.stderr
    return errors[0]


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        text = failed_start("--port", port, "--data", str(tmp_path / "data"))
    assert port in text
    assert "--port" in text


def test_a_data_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    text = failed_start("--data", str(tmp_path / "file" / "data"))
    assert str(tmp_path / "file" / "data") in text
    assert "--data" in text


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "platform.db").write_bytes(b"this is not a database " * 1000)
    text = failed_start("--data", str(tmp_path))
    assert str(tmp_path / "platform.db") in text
    assert "backup" in text


@pytest.mark.long
def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    assert RunningServer(tmp_path).terminate() == 0
    with sqlite3.connect(tmp_path / "platform.db") as database:
        database.execute("INSERT INTO schema_version (version) VALUES (9999)")
    database.close()
    text = failed_start("--data", str(tmp_path))
    assert "9999" in text
    assert "Upgrade scrapy-ext" in text


def test_a_data_directory_that_takes_no_writes_is_named(tmp_path: Path) -> None:
    # Root may write whatever the mode bits say, so the place of the file is taken instead.
    (tmp_path / "platform.db").mkdir()
    text = failed_start("--data", str(tmp_path))
    assert str(tmp_path / "platform.db") in text
    assert "permissions" in text


def test_a_full_disk_is_named_at_the_start(tmp_path: Path) -> None:
    text = failed_start("--data", str(tmp_path), file_limit=10_000)
    assert str(tmp_path / "platform.db") in text
    assert "make room" in text


@pytest.mark.long
def test_options_of_extraction_that_cannot_be_read_are_reported_without_credentials(tmp_path: Path) -> None:
    text = failed_start("--data", str(tmp_path), "--proxy", "US=socks4://me:hidden@proxy:1")
    assert "proxy US must have an address with a scheme (http, https, socks5) and a port" in text
    assert "hidden" not in text
    listed = tmp_path / "list"
    listed.write_text("example.com\nnot a domain\n")
    assert "line 2" in failed_start("--data", str(tmp_path), "--block-list", str(listed))


@pytest.mark.long
async def test_options_of_extraction_reach_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_PROXIES", "US:residential=http://me:hidden@127.0.0.1:9 DE=http://127.0.0.1:9")
    listed = tmp_path / "list"
    listed.write_text("blocked.example\n")
    options = ("--block-list", str(listed), "--key-domain-rate", "0.001", "--proxy", "*:datacenter=http://127.0.0.1:9")
    with RunningServer(tmp_path / "data", options=options) as server:
        async with Http(server.url, server.extract_key) as http:

            async def asked(**fields: str) -> Any:
                body = {"url": "http://blocked.example/", "httpResponseBody": True, **fields}
                return (await http.post("/v1/extract", json.dumps(body).encode())).json

            refused = await asked(geolocation="FR", ipType="residential")
            assert "*:datacenter, DE, US:residential" in refused["detail"]
            assert (await asked())["blockedDomain"] == "blocked.example"
            assert (await asked())["type"] == "/limits/over-org-domain-limit"
        assert "hidden" not in server.log()


def test_wrong_options_are_explained() -> None:
    done = subprocess.run(command("--port", "70000"), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "must be 0 to 65535" in done.stderr
    done = subprocess.run(command("--browser", "/no/such"), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "/no/such is not a program" in done.stderr


@pytest.mark.long
async def test_keys_are_made_once_and_kept_as_hashes(tmp_path: Path) -> None:
    with RunningServer(tmp_path, keys=False) as server:
        shown = dict(re.findall(r"(EXTRACT_API_KEY|PLATFORM_API_KEY)\b.*?: ([0-9a-f]{32}) ", server.log()))
        assert set(shown) == {"EXTRACT_API_KEY", "PLATFORM_API_KEY"}
        assert len(set(shown.values())) == 2
    assert (tmp_path / "platform.db").stat().st_mode & 0o077 == 0
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not any(key.encode() in stored for key in shown.values())
    with RunningServer(tmp_path, keys=False) as server:
        assert "API_KEY" not in server.log()
        async with Http(server.url, shown["PLATFORM_API_KEY"]) as http:
            assert (await http.get("/hcf/1/list")).status == 200
        async with Http(server.url, shown["EXTRACT_API_KEY"]) as http:
            assert (await http.get("/hcf/1/list")).status == 401
    with RunningServer(tmp_path) as server:  # keys of the environment hold for a run
        async with Http(server.url, server.platform_key) as http:
            assert (await http.get("/hcf/1/list")).status == 200
        async with Http(server.url, shown["PLATFORM_API_KEY"]) as http:
            assert (await http.get("/hcf/1/list")).status == 401


@pytest.mark.long
def test_it_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    starter = textwrap.dedent(
        """
        import subprocess, sys
        server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        server.stdout.readline()
        print(server.pid, flush=True)
        server.wait()
        """
    )
    arguments = command("--port", "0", "--data", str(tmp_path), "--exit-with-stdin")
    with subprocess.Popen(
        [sys.executable, "-c", starter, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**without_keys(), "EXTRACT_API_KEY": "a", "PLATFORM_API_KEY": "b"},
    ) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        watched = os.pidfd_open(server) if hasattr(os, "pidfd_open") else None
        process.kill()
    _wait_for_end(server, watched)


def _wait_for_end(process: int, watched: int | None) -> None:
    if watched is not None:
        assert select.select([watched], [], [], 60)[0], "the server outlived its starter"
        os.close(watched)
        return
    eventually(lambda: is_gone(process), what="the end of the server with its starter")


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_log_of_a_server_without_a_runner_names_no_units(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--port", "0", "--data", str(tmp_path / "data"), "--no-runner"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**without_keys(), "EXTRACT_API_KEY": "a" * 32, "PLATFORM_API_KEY": "b" * 32},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        log = process.communicate(timeout=60)[1]
    assert f", data in {tmp_path / 'data'}, runs no jobs\n" in log


def test_the_log_says_what_is_ready_and_that_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--port", "0", "--data", str(tmp_path / "data"), "--units", "3"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**without_keys(), "EXTRACT_API_KEY": "a" * 32, "PLATFORM_API_KEY": "b" * 32},
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("ready ").strip()
        process.terminate()
        log = process.communicate(timeout=60)[1]
    assert f"Ready at {url}: scrapy-ext " in log
    assert f", data in {tmp_path / 'data'}, 3 units for jobs" in log
    assert "Ending: 0 requests are under way; running jobs continue on another node, or at the next start" in log


def test_a_signal_ends_it_gracefully(tmp_path: Path) -> None:
    server = RunningServer(tmp_path)
    assert server.process.stdin is not None
    server.process.stdin.write(b"what is sent does not matter")
    server.process.stdin.flush()
    server.process.send_signal(signal.SIGINT)
    assert server.stop() == 0
    assert not (tmp_path / "platform.db-wal").exists()


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> str | None:
    """The address of a new database; None for a data directory."""
    return request.getfixturevalue("postgresql").database() if request.param == "postgresql" else None


async def test_what_was_answered_with_200_survives_sigkill(tmp_path: Path, database: str | None) -> None:
    stored: list[tuple[int, int]] = []
    for turn in range(3):
        stored += await _written_until_killed(tmp_path, database, [turn * 8 + worker for worker in range(8)])
    assert len(stored) >= 3 * 40
    with RunningServer(tmp_path, database=database) as server:
        async with Http(server.url, server.platform_key) as http:
            marks = [tuple(item["mark"]) for item in (await http.get("/items/1")).lines]
    assert len(marks) == len(set(marks))
    assert set(stored) <= set(marks)


async def _written_until_killed(data: Path, database: str | None, jobs: list[int]) -> list[tuple[int, int]]:
    """Items are written to several jobs at once until SIGKILL; returns those that were answered with 200."""
    stored: list[tuple[int, int]] = []
    server = RunningServer(data, database=database)
    async with Http(server.url, server.platform_key) as http:

        async def write(job: int) -> None:
            for number in range(1000):
                answer = await http.post(f"/items/1/1/{job}?start={number}", [{"mark": [job, number]}])
                assert answer.status == 200
                stored.append((job, number))
                if len(stored) == 40:
                    server.process.kill()

        outcomes = await asyncio.gather(*map(write, jobs), return_exceptions=True)
    server.kill()
    assert all(isinstance(outcome, aiohttp.ClientError) for outcome in outcomes)
    return stored


@pytest.mark.long
async def test_a_frontier_survives_sigkill_while_its_fingerprints_are_merged(
    tmp_path: Path, database: str | None
) -> None:
    """Enough of them for six runs and more, which are merged from then on."""
    each, kill_at = 4000, (26, 4, 3)
    queued: set[str] = set()
    for turn, posts in enumerate(kill_at):
        server = RunningServer(tmp_path, database=database)
        async with Http(server.url, server.platform_key) as http:
            for number in range(posts):
                new = [f"{turn}/{number}/{i}" for i in range(each)]
                random.shuffle(new)
                known = random.sample(sorted(queued), min(len(queued), 50))
                answer = await http.post("/hcf/1/f/s/0", [{"fp": fp} for fp in new + known])
                assert answer.json == {"newcount": each}
                queued.update(new)
            # One more, which nobody waits for: the kill comes while it is being stored, or before, or after.
            late = asyncio.create_task(http.post("/hcf/1/f/s/0", [{"fp": f"{turn}/late/{i}"} for i in range(each)]))
            await asyncio.sleep(random.uniform(0, 0.1))
            server.process.kill()
            await asyncio.gather(late, return_exceptions=True)
        server.kill()
    with RunningServer(tmp_path, database=database) as server:
        async with Http(server.url, server.platform_key) as http:
            known = [line["fp"] for line in (await http.get("/hcf/1/f/s/0/f")).lines]
            batches = (await http.get("/hcf/1/f/s/0/q?mincount=1000000")).lines
    late = [fp for fp in known if "late" in fp]
    assert known == sorted(queued | set(late)), "in order, each once, and what was answered is there"
    assert len(late) % each == 0, "all of a post or nothing"
    assert sorted(fp for batch in batches for fp, _ in batch["requests"]) == known


async def test_two_servers_on_one_database_lose_nothing_and_double_nothing(
    tmp_path: Path, database: str | None
) -> None:
    with RunningServer(tmp_path, database=database) as one, RunningServer(tmp_path, database=database) as two:
        async with Http(one.url, one.platform_key) as first, Http(two.url, two.platform_key) as second:
            clients = [first, second]

            async def work(worker: int) -> int:
                http, new = clients[worker % 2], 0
                for number in range(25):
                    # every worker adds the same fingerprints, and items of a job of its own
                    added = await http.post("/hcf/1/shared/s/0", [{"fp": f"{number}/{i}"} for i in range(10)])
                    new += added.json["newcount"]
                    items = [{"n": number * 4 + i} for i in range(4)]
                    assert (await http.post(f"/items/1/1/{worker}?start={number * 4}", items)).status == 200
                    await http.post("/jobq/1/push", [{"spider": "s"}])
                return new

            new = await asyncio.gather(*map(work, range(6)))
            assert sum(new) == 250
            batches = (await first.get("/hcf/1/shared/s/0/q?mincount=1000")).lines
            assert batches == (await second.get("/hcf/1/shared/s/0/q?mincount=1000")).lines
            requests = [fp for batch in batches for fp, _ in batch["requests"]]
            assert len(requests) == len(set(requests)) == 250
            for worker in range(6):
                items = (await clients[worker % 2 - 1].get(f"/items/1/1/{worker}")).lines
                assert items == [{"n": n} for n in range(100)]
            jobs = (await second.get("/jobq/1/list?state=pending")).lines
            assert sorted(int(job["key"].split("/")[2]) for job in jobs) == list(range(1, 151))


@pytest.mark.long
async def test_a_full_disk_is_reported_and_nothing_is_half_stored(tmp_path: Path) -> None:
    blob = os.urandom(40_000).hex()
    stored = 0
    with RunningServer(tmp_path, file_limit=2_000_000) as server:
        async with Http(server.url, server.platform_key) as http:
            for _ in range(200):
                answer = await http.post(f"/items/1/1/1?start={stored}", [{"blob": blob}] * 3)
                if answer.status != 200:
                    break
                stored += 3
            assert answer.status == 507
            assert "make room" in answer.json["message"]
            assert answer.json["status"] == "error"
            # reading goes on, and so does the server
            assert (await http.get("/items/1/1/1/stats")).json["totals"]["input_values"] == stored
    assert stored
    with RunningServer(tmp_path) as server:
        async with Http(server.url, server.platform_key) as http:
            stats = (await http.get("/items/1/1/1/stats")).json
            assert stats["counts"] == {"blob": stored}
            assert len((await http.get("/items/1/1/1")).lines) == stored
            assert (await http.post(f"/items/1/1/1?start={stored}", [{"blob": 1}])).status == 200


def test_the_server_of_a_crawl_starts_without_the_libraries_of_pages_and_pages_for_people(tmp_path: Path) -> None:
    names = [
        "aiohttp",
        "playwright",
        "jinja2",
        "scrapy_ext.server.jobs.nodes.node",
        "scrapy_ext.server.delivery.writing",
        # Each of these takes a tenth of a megabyte or more.
        *("regex", "yarl", "w3lib", "urllib.request", "tarfile", "zipfile", "importlib.metadata", "backports.zstd"),
        *("importlib.resources", "encodings.idna", "xml.sax", "difflib"),
        *("starlette.applications", "html.entities", "zoneinfo", "compileall"),
        *("scrapy_ext.server.store.copying", "scrapy_ext.api.extraction.xpath"),
    ]
    code = f"""
import json, os, sys
from pathlib import Path
from scrapy_ext.server import serve
from scrapy_ext.server.config.config import ServerConfig

code = serve.serve(ServerConfig(data=Path({str(tmp_path)!r}), port=0, exit_with_stdin=True, runner=False))
print(json.dumps([code, *(name for name in {names} if name in sys.modules)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input="", capture_output=True, text=True, timeout=300, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [0], done.stderr


def test_it_starts_without_scrapy_and_the_libraries_of_archives(tmp_path: Path) -> None:
    names = ["scrapy", "obstore", "pyarrow"]
    code = f"import scrapy_ext.server.__main__, json, sys; print(json.dumps([n for n in {names} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout) == []
