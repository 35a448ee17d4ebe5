"""The template of workers: forks of real crawls, and the kill of each role."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from scrapy_ext.compatibility.python import Self
from scrapy_ext.jobprocess.messages import Fork, Prepare, TerminalLog
from scrapy_ext.jobprocess.template import REPLACEMENTS
from tests.support.eventually import eventually

SPIDERS = """
import asyncio
import os
import sys
import threading
from pathlib import Path

import scrapy

IMPORTED_BY = os.getpid()


class Waiting(scrapy.Spider):
    name = "waiting"

    async def start(self):
        mark = (IMPORTED_BY, self.settings["PLACE"], self.word, sys.stdin.read(), threading.active_count())
        self.logger.info("an information")
        self.logger.warning("a warning")
        # Whole, and after the lines of the log: the test kills a worker once its file is there.
        whole = Path(str(os.getpid()))
        whole.write_text(repr(mark))
        whole.rename(Path("running", whole.name))
        while not Path("go").exists():
            await asyncio.sleep(0.01)
        yield {}

    def closed(self, reason):
        Path("closed", str(os.getpid())).write_text(reason)
"""
LOG = TerminalLog(None, 10, "%(levelname)s %(name)s: %(message)s", "%H:%M", "utf-8")


class Templates:
    """A project, and templates for its workers."""

    def __init__(self, folder: Path, spiders: str = SPIDERS) -> None:
        self.folder = folder
        for name in ("running", "closed"):
            (folder / name).mkdir()
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = conf\n")
        (folder / "conf.py").write_text("SPIDER_MODULES = ['spiders']\nTELNETCONSOLE_ENABLED = False\n")
        (folder / "spiders.py").write_text(spiders)
        self.terminal = folder / "terminal"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """Start a template in a process group of its own, as a terminal has one for a command."""
        with self.terminal.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scrapy_ext.jobprocess.template"],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stderr=stream,
                start_new_session=True,
            )
        self._send(Prepare(["crawl", "waiting", "-a", "word=given"], sys.path))
        return self.process

    def fork(self, workers: int, log: TerminalLog | None = LOG) -> list[int]:
        """Fork workers; returns their process IDs once they crawl."""
        self._send(Fork([{"PLACE": place} for place in range(workers)], log))
        return self.running(workers)

    def _send(self, message: msgspec.Struct) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(message) + b"\n")
        self.process.stdin.flush()

    def running(self, number: int) -> list[int]:
        """The process IDs of all workers that have crawled, once they are so many."""
        folder = self.folder / "running"
        found = eventually(lambda: list(folder.iterdir()), lambda files: len(files) >= number, details=self.log)
        return sorted(int(file.name) for file in found)

    def marks(self) -> list[tuple]:
        """Findings of the workers."""
        return [eval(file.read_text()) for file in sorted((self.folder / "running").iterdir())]

    def closed(self, pid: int) -> str:
        """The close reason of a worker."""
        file = self.folder / "closed" / str(pid)
        return eventually(lambda: file.read_text() if file.exists() else "", details=self.log)

    def go(self) -> None:
        """Let the crawls finish."""
        (self.folder / "go").touch()

    def log(self) -> str:
        """Log of the terminal."""
        return self.terminal.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go()
        if self.process is not None:
            with self.process:
                assert self.process.stdin is not None
                self.process.stdin.close()


@pytest.fixture
def templates(tmp_path: Path) -> Iterator[Templates]:
    with Templates(tmp_path) as made:
        yield made


def end_of(process: subprocess.Popen[bytes]) -> int:
    return process.wait(180)


def test_a_worker_runs_the_command_with_its_settings_and_a_killed_one_is_replaced(templates):
    process = templates.start()
    first, second = templates.fork(2)
    # Imported before the fork, in a process with one thread.
    assert sorted(templates.marks()) == [(process.pid, place, "given", "", 1) for place in (0, 1)]
    os.kill(first, signal.SIGKILL)
    third = (set(templates.running(3)) - {first, second}).pop()
    templates.go()
    assert [templates.closed(pid) for pid in (second, third)] == ["finished", "finished"]
    assert end_of(process) == 0
    assert f"process ID {first} was killed (SIGKILL) and is replaced" in templates.log()
    lines = [line for line in templates.log().splitlines() if "a warning" in line]
    assert sorted(lines) == [f"[{place}] WARNING waiting: a warning" for place in (1, 1, 2)]
    assert "an information" not in templates.log()


def test_an_interrupt_of_the_terminal_ends_all_workers_and_none_is_replaced(templates):
    process = templates.start()
    workers = templates.fork(2)
    os.killpg(process.pid, signal.SIGINT)
    assert [templates.closed(pid) for pid in workers] == ["shutdown", "shutdown"]
    assert end_of(process) == 0
    assert templates.running(2) == workers


@pytest.mark.long
def test_a_worker_is_replaced_a_limited_number_of_times(templates):
    process = templates.start()
    killed: set[int] = set()
    templates.fork(1, None)
    for number in range(REPLACEMENTS + 1):
        (pid,) = set(templates.running(number + 1)) - killed
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
    assert end_of(process) == 0
    assert len(templates.running(REPLACEMENTS + 1)) == REPLACEMENTS + 1


@pytest.mark.long
def test_workers_go_on_without_their_template(templates):
    process = templates.start()
    workers = templates.fork(2)
    process.kill()
    assert end_of(process) == -signal.SIGKILL
    templates.go()
    assert [templates.closed(pid) for pid in workers] == ["finished", "finished"]


@pytest.mark.long
def test_workers_and_their_replacement_go_on_without_the_first_worker(templates):
    process = templates.start()
    first, second = templates.fork(2)
    assert process.stdin is not None
    process.stdin.close()  # as the system does for a killed process
    os.kill(first, signal.SIGKILL)
    third = (set(templates.running(3)) - {first, second}).pop()
    templates.go()
    assert [templates.closed(pid) for pid in (second, third)] == ["finished", "finished"]
    assert end_of(process) == 0


@pytest.mark.long
def test_the_last_worker_of_a_killed_crawl_is_not_replaced(templates):
    process = templates.start()
    (worker,) = templates.fork(1)
    assert process.stdin is not None
    process.stdin.close()
    os.kill(worker, signal.SIGKILL)
    assert end_of(process) == 0
    assert templates.running(1) == [worker]


@pytest.mark.long
def test_a_template_ends_with_a_first_worker_that_dies_before_it_has_a_job(templates):
    process = templates.start()
    assert process.stdin is not None
    process.stdin.close()
    assert end_of(process) == 0
    assert not templates.log()


@pytest.mark.long
def test_a_worker_that_ends_by_itself_is_not_replaced(templates):
    process = templates.start()
    templates.fork(2)
    templates.go()
    assert end_of(process) == 0
    assert len(templates.running(2)) == 2


@pytest.mark.long
def test_a_project_that_imports_the_reactor_cannot_be_forked(tmp_path):
    with Templates(tmp_path, "from twisted.internet import reactor\n" + SPIDERS) as templates:
        assert end_of(templates.start()) == 1
        assert "imports twisted.internet.reactor, so no worker can be forked" in templates.log()


@pytest.mark.long
def test_a_second_interrupt_ends_workers_at_once(tmp_path):
    stuck = SPIDERS.replace("def closed", "async def closed") + "        await asyncio.sleep(1000)\n"
    with Templates(tmp_path, stuck) as templates:
        process = templates.start()
        workers = templates.fork(2)
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            assert [templates.closed(pid) for pid in workers] == ["shutdown", "shutdown"]
        assert end_of(process) == 0
        assert templates.running(2) == workers
