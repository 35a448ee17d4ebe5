"""Jobs on a system without ``/proc`` and subreapers, such as macOS: the ways that the server has there, forced here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from scrapy_ext.jobprocess import proc, ps
from tests.integration.server.jobs.test_processes import born, gone
from tests.support.eventually import eventually
from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.running_jobs import Platform
from tests.support.servers import RunningServer


@pytest.fixture(scope="module")
def without_proc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "8", "--unit-memory", "300", "--stop-grace", "3"]
    data = tmp_path_factory.mktemp("server") / "data"
    with RunningServer(data, options=options, program="tests.support.as_macos") as server:
        yield server


@pytest.fixture
async def platform(without_proc: RunningServer) -> AsyncIterator[Platform]:
    async with Http(without_proc.url, without_proc.platform_key) as http:
        yield Platform(http)


@pytest.mark.parametrize(("how", "reason"), [("end", "finished"), ("stay", "cancelled")])
@pytest.mark.long
async def test_nothing_that_a_job_has_started_outlives_it(
    platform: Platform, tmp_path: Path, how: str, reason: str
) -> None:
    job = await platform.run("py:family.py", cmd_args=f"{tmp_path} {how}")
    pids = await born(tmp_path)
    if how == "stay":
        await platform.says(job, "all are born")
        await platform.stop(job)
    assert await platform.reason(job) == reason
    await gone(pids)


@pytest.mark.long
async def test_a_crawl_runs_and_one_with_too_much_memory_is_killed(platform: Platform) -> None:
    crawl = await platform.run("quick")
    much = await platform.run("py:memory.py", cmd_args="600")
    assert await platform.reason(much) == "killed by oom"
    assert await platform.reason(crawl) == "finished"


@pytest.mark.long
async def test_nothing_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop")
    (tmp_path / "pids").mkdir()
    options = ["--local-project", str(folder)]
    with RunningServer(tmp_path / "data", options=options, program="tests.support.as_macos") as server:
        async with Http(server.url, server.platform_key) as http:
            await Platform(http).run("py:family.py", cmd_args=f"{tmp_path / 'pids'} stay")
            pids = await born(tmp_path / "pids")
        server.kill()
    await gone(pids)


def test_ps_lists_the_same_as_proc() -> None:
    script = "import os, time; os.fork(); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as process:
        try:
            tree = eventually(lambda: _two(process.pid))
            rows = {row.pid: row for row in ps.rows()}
            for pid, known in tree.items():
                assert (rows[pid].parent, rows[pid].group) == (known.parent, process.pid)
                assert 0.5 < rows[pid].memory / known.memory < 2
                assert next(ps.rows(pid)).started == rows[pid].started
                assert script.encode() in ps.command_line(pid)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert list(ps.rows(process.pid)) == []


def test_a_list_that_a_signal_cuts_short_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ps"
    program.write_text(
        f'#!/bin/sh\necho "{os.getpid()} one"\n'
        f"echo >> {tmp_path}/calls; [ $(wc -l < {tmp_path}/calls) -lt 8 ] && kill -9 $$\n"
        f'echo "{os.getppid()} two VARIABLE=value"\n'
    )
    program.chmod(0o700)
    monkeypatch.setattr(ps, "_FOLDERS", str(tmp_path))
    assert ps.with_variable("VARIABLE", "value") == [os.getppid()]


def _two(root: int) -> dict[int, proc.Process] | None:
    tree = proc.below([root], proc.table())[root]
    return {process.pid: process for process in tree} if len(tree) == 2 else None
