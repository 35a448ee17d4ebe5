"""The server as a process on PostgreSQL: how it refuses to start, and what survives the database's end."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from scrapy.settings import BaseSettings

from scrapy_ext.embedded import platform_client
from tests.postgresql import Cluster, cluster
from tests.server.http import Http
from tests.servers import RunningServer, command, without_keys


def failed_start(*options: str, **environment: str) -> tuple[int, str]:
    """Return code and last line of a server that cannot start."""
    done = subprocess.run(
        command("--port", "0", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        env={**without_keys(), "EXTRACT_API_KEY": "a", "PLATFORM_API_KEY": "b", **environment},
        check=False,
    )
    assert done.stdout == ""
    assert "opensesame" not in done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


def test_a_wrong_password_is_told_and_not_shown(postgresql: Cluster) -> None:
    url = postgresql.url("postgres", "opensesame")
    for code, text in (failed_start("--database", url), failed_start(SERVER_DATABASE=url)):
        assert code == 1
        assert text.startswith(f"error: postgresql://scrapy@127.0.0.1:{postgresql.port}/postgres refused user scrapy")


def test_an_address_of_another_form_is_refused_and_not_shown() -> None:
    for code, text in (
        failed_start("--database", "http://u:opensesame@h/d"),
        failed_start(SERVER_DATABASE="postgresql://u:open/sesame@h/d"),
    ):
        assert code == 2
        assert text.endswith("must have the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE.")


def test_a_data_directory_and_a_database_are_not_both_served(tmp_path: Path) -> None:
    code, text = failed_start("--data", str(tmp_path), "--database", "postgresql://u@h/d")
    assert code == 2
    assert "not allowed with" in text


def test_a_data_directory_that_is_named_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SERVER_DATABASE", "postgresql://nobody@127.0.0.1:1/nothing")
    with RunningServer(tmp_path):
        assert (tmp_path / "platform.db").exists()


async def test_what_was_answered_with_200_survives_the_end_of_postgresql(tmp_path: Path) -> None:
    """Nothing here may be sent again: without ``start``, an item that is sent twice is stored twice."""
    stored: list[str] = []
    sent: list[str] = []
    new = 0
    with cluster() as own, RunningServer(tmp_path, database=own.database()) as server:
        async with Http(server.url, server.platform_key) as http:
            done = asyncio.Event()

            async def write(worker: int) -> None:
                number = 0
                while not done.is_set():
                    mark = f"{worker}/{number}"
                    number += 1
                    sent.append(mark)
                    answer = await http.post(f"/items/1/1/{worker}", [{"mark": mark}])
                    assert answer.status in (200, 503), server.log()
                    if answer.status == 200:
                        stored.append(mark)

            async def add(worker: int) -> None:
                nonlocal new
                number = 0
                while not done.is_set():
                    answer = await http.post(f"/hcf/1/f/s/{worker % 2}", [{"fp": f"{number}"}])
                    if answer.status == 200:  # else it is added again, by the same name
                        new += answer.json["newcount"]
                        number += 1

            async def kill() -> None:
                for turn in range(2):
                    while len(stored) < 40 * (turn + 1):
                        await asyncio.sleep(0.01)
                    await asyncio.to_thread(own.kill)
                    await asyncio.to_thread(own.start)
                while len(stored) < 120:
                    await asyncio.sleep(0.01)
                done.set()

            await asyncio.gather(kill(), *map(write, range(4)), *map(add, range(4)))
            marks = Counter(item["mark"] for item in (await http.get("/items/1/1")).lines)
            assert set(marks.values()) == {1}
            assert set(stored) <= marks.keys() <= set(sent)
            stats = [(await http.get(f"/items/1/1/{worker}/stats")).json for worker in range(4)]
            assert sum(each["totals"]["input_values"] for each in stats) == len(marks)
            queued = []
            for slot in (0, 1):
                batches = (await http.get(f"/hcf/1/f/s/{slot}/q?mincount=100000")).lines
                queued += [(slot, fp) for batch in batches for fp, _ in batch["requests"]]
            assert len(queued) == len(set(queued))
            assert new <= len(queued)


async def test_an_embedded_server_keeps_its_data_there_too(postgresql: Cluster, tmp_path: Path) -> None:
    url = postgresql.database()
    settings = BaseSettings({"SERVER_DATABASE": url, "SERVER_DATA": str(tmp_path / "data"), "PLATFORM_PROJECT": 7})
    async with platform_client(settings) as (client, project):
        await client.jobs.run(project, "spider")
    assert postgresql.query(url, "SELECT project, name FROM spiders") == [["7", "spider"]]
    assert not (tmp_path / "data").exists()
