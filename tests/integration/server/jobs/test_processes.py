"""The processes of a job: what they write, what they may have, and that all of them end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scrapy_ext.jobprocess.proc import below, shared_memory, table
from tests.support.eventually import eventually_async
from tests.support.running_jobs import Platform
from tests.support.servers import RunningServer


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def born(folder: Path) -> list[int]:
    """Processes that have written their IDs into a folder."""

    async def look() -> list[int] | None:
        texts = [path.read_text() for path in folder.iterdir()]
        return [int(text) for text in texts] if len(texts) == 2 and all(texts) else None

    found: list[int] = await eventually_async(look, what="two processes")
    return found


async def gone(pids: list[int]) -> None:
    async def look() -> bool:
        return not any(map(is_there, pids))

    await eventually_async(look, what="the end of processes")


async def test_a_script_is_followed_while_it_runs(platform: Platform, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    job = await platform.run("py:hello.py", cmd_args=f"{there} 'two words'", environment={"COLOUR": "red"})
    await platform.says(job, f"to the log ['{there}', 'two words'] red")
    await platform.says(job, "\ufffd\0 binary")
    assert (await platform.metadata(job))["state"] == "running"
    there.unlink()
    assert await platform.reason(job) == "finished"
    records = await platform.records("logs", job)
    assert {record["message"]: record["level"] for record in records}["an error"] == 40
    assert records[-1]["message"] == "done"


async def test_scripts_find_the_platform_and_no_secrets_in_their_environment(
    platform: Platform, running: RunningServer
) -> None:
    job = await platform.run("py:client.py")
    assert await platform.reason(job) == "finished"
    names, secrets, last = await platform.log(job)
    assert f'"PLATFORM_JOB": "{job}"' in names
    assert running.url in names
    assert secrets == "[]"
    assert last.startswith("True ")
    log = running.log()
    assert running.platform_key not in log


@pytest.mark.long
async def test_a_flood_without_an_end_of_line_is_bounded(platform: Platform) -> None:
    job = await platform.run("py:flood.py", cmd_args="60")
    assert await platform.reason(job) == "finished"
    lines = await platform.log(job)
    assert lines[0].startswith("0000000 ")
    assert lines[-1] == "the end of the flood"
    assert any("lines of output are left out here" in line for line in lines)
    assert sum(map(len, lines)) < 20 * 2**20


@pytest.mark.long
async def test_one_with_too_much_memory_is_killed_whichever_of_its_processes_has_it(platform: Platform) -> None:
    job = await platform.run("py:memory.py", cmd_args="600")
    fine = await platform.run("py:memory.py", cmd_args="600", units="4", second="1")
    assert await platform.reason(job) == "killed by oom"

    async def much() -> bool:
        samples = await platform.records("samples", fine)
        return any(sample[4] > 600 * 2**20 for sample in samples)

    await eventually_async(much, what="a sample of much memory")
    assert (await platform.metadata(fine))["state"] == "running"
    await platform.stop(fine)
    assert await platform.reason(fine) == "cancelled"


async def test_one_with_too_much_memory_in_files_is_killed(platform: Platform) -> None:
    job = await platform.run("py:shared.py", cmd_args="350")
    assert await platform.reason(job) == "killed by oom"


HOLD = """
import mmap, os, sys
first = os.memfd_create("held")
os.write(first, b"x" * (3 * 2**20))
second = open("/dev/shm/" + sys.argv[1], "w+b")
os.unlink(second.name)
second.write(b"x" * 2**20)
second.flush()
if os.fork() == 0:
    os.dup(first)
    mmap.mmap(first, 0)[:]
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_files_in_memory_are_counted_once_whoever_has_them_open() -> None:
    command = [sys.executable, "-I", "-c", HOLD, f"held-{os.getpid()}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        assert shared_memory(pids) == shared_memory(pids[:1]) == 4 * 2**20
        process.stdin.close()
        process.wait()
        assert shared_memory([process.pid]) == 0


@pytest.mark.parametrize(
    ("how", "reason"), [("end", "finished"), ("fail", "failed"), ("crash", "killed by SIGSEGV"), ("stay", "cancelled")]
)
@pytest.mark.long(keep=1)
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
    assert "all are born" in await platform.log(job)


async def test_nothing_outlives_a_supervisor_that_is_killed(
    platform: Platform, running: RunningServer, tmp_path: Path
) -> None:
    job = await platform.run("py:family.py", cmd_args=f"{tmp_path} stay")
    pids = await born(tmp_path)
    there = 1000 * time.time()

    async def measured() -> bool:
        """Return True if the node has sampled the job since all its processes started."""
        return any(sample[0] > there + 1000 for sample in await platform.records("samples", job))

    await eventually_async(measured, what="a sample of all processes")
    server = running.process.pid
    processes = table()
    (supervisor,) = [
        process.pid
        for process in below([server], processes)[server][1:]
        if process.parent == server and pids[0] in {each.pid for each in below([process.pid], processes)[process.pid]}
    ]
    os.kill(supervisor, signal.SIGKILL)
    assert await platform.reason(job) == "killed by SIGKILL"
    await gone(pids)


@pytest.mark.long
async def test_ended_processes_do_not_pile_up(platform: Platform, running: RunningServer) -> None:
    for _ in range(3):
        assert await platform.reason(await platform.run("py:client.py")) == "finished"
    server = running.process.pid
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        assert (fields[0], fields[1]) != ("Z", str(server))
