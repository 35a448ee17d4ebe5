"""A server and workers on one PostgreSQL, whose jobs go on until they are asked to end, and report when they work."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from scrapy_ext.compatibility.python import Self
from scrapy_ext.jobprocess.proc import below, table
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster
from tests.support.servers import RunningServer

_SPIDER = '''
import os
import threading
import time

import scrapy


class Counting(scrapy.Spider):
    """Counts pages until there is a file ``gate``, and says in ``hearts`` that it works."""

    name = "counting"
    start_urls = ["data:,0"]
    custom_settings = {"DOWNLOAD_DELAY": 0.1, "RANDOMIZE_DOWNLOAD_DELAY": False}

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        hearts = os.open(self.hearts, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def beat():
            while True:
                line = f"{os.environ['PLATFORM_JOB']} {os.getpid()} {time.monotonic()}\\n"
                os.write(hearts, line.encode())
                time.sleep(0.05)

        threading.Thread(target=beat, daemon=True).start()

    def parse(self, response):
        number = int(response.text)
        yield {"number": number}
        if not os.path.exists(self.gate):
            yield scrapy.Request(f"data:,{number + 1}")
'''


class Gap:
    """Stands between a worker and the database. While it is ``cut``, nothing comes through, and what was sent waits."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self.port = 0
        ready = threading.Event()

        async def listen() -> None:
            server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()

        self._loop.create_task(listen())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        assert ready.wait(60)

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._whole.set)

    async def _pass_on(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            to_client.transport.abort()
            return
        await asyncio.gather(self._one_way(client, to_server), self._one_way(server, to_client))

    async def _one_way(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(65536):
                await self._whole.wait()
                target.write(piece)
                await target.drain()
        except OSError:
            pass
        await self._whole.wait()
        target.transport.abort()


class Farm:
    """``server`` runs jobs, too; each of ``workers`` is behind a gap of its own."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.cluster = cluster
        self._folder = folder
        package = folder / "shop" / "shop"
        package.mkdir(parents=True)
        (folder / "shop" / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
        (package / "__init__.py").touch()
        (package / "settings.py").write_text('BOT_NAME = "tests"\nSPIDER_MODULES = ["shop.spiders"]\n')
        (package / "spiders.py").write_text(_SPIDER)
        self.database = cluster.database()
        self._gaps = [Gap(cluster.port) for _ in range(2)]
        self.server = self._served()
        self.url, self.key = self.server.url, self.server.platform_key
        with ThreadPoolExecutor() as pool:
            self.workers = list(pool.map(self._work, self._gaps))
        self.jobs: list[str] = []
        self._rounds = itertools.count()
        self._round = self._next_round()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for gap in self._gaps:
            gap.mend()
        for process in (self.server, *self.workers):
            if process.process.poll() is None:
                process.process.send_signal(signal.SIGCONT)
                process.kill()

    def _options(self, units: int) -> list[str]:
        return ["--local-project", str(self._folder / "shop"), "--units", str(units), "--stop-grace", "10"]

    def _served(self, *options: str) -> RunningServer:
        return RunningServer(self._folder, database=self.database, options=[*self._options(3), *options])

    def _work(self, gap: Gap) -> RunningServer:
        database = self.database.replace(f":{self.cluster.port}/", f":{gap.port}/")
        return RunningServer(self._folder, database=database, options=self._options(4), worker=True)

    def gap(self, worker: RunningServer) -> Gap:
        return self._gaps[self.workers.index(worker)]

    def replace_server(self) -> None:
        """Start it again after it was killed, where it was."""
        port = self.url.rpartition(":")[2]
        self.server = self._served("--port", port, "--platform-key", self.key)

    def replace_worker(self, worker: RunningServer) -> None:
        """Start another in its place after it was killed."""
        place = self.workers.index(worker)
        self.workers[place] = self._work(self._gaps[place])

    # ── jobs ──

    async def run(self, count: int) -> None:
        async with Http(self.url, self.key) as http:
            for number in range(count):
                fields = {"hearts": str(self._round / "hearts"), "gate": str(self._round / "gate"), "n": str(number)}
                answer = await http.call("POST", "/api/run.json", {"project": "1", "spider": "counting", **fields})
                self.jobs.append(answer.json["jobid"])
        await self.until(lambda: len(self.hearts()) == count, "all jobs work")

    def hearts(self) -> dict[str, dict[int, tuple[float, float]]]:
        """For each job, the first and the last beat of each of its processes."""
        found: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
        path = self._round / "hearts"
        for line in path.read_text().splitlines() if path.exists() else ():
            job, pid, at = line.split()
            first, _ = found[job].get(int(pid), (float(at), 0.0))
            found[job][int(pid)] = (first, float(at))
        return found

    def on(self, process: RunningServer) -> list[tuple[str, int]]:
        """The jobs that a process runs, and theirs."""
        pid = process.process.pid
        started = {each.pid for each in below([pid], table())[pid]}
        return [(job, child) for job, beats in self.hearts().items() for child in beats if child in started]

    async def until(self, condition: Callable[[], object], what: str) -> None:
        await eventually_async(condition, what=what, details=self.logs)

    async def placed_after(self, lost: Sequence[tuple[str, int]], since: float) -> float:
        """The seconds (of the epoch) until these jobs were given to others."""
        async with Http(self.url, self.key) as http:
            times = [(await http.call("GET", f"/jobs/{job}")).json["running_time"] for job, _ in lost]
        return max(times) / 1000 - since

    async def taken_over(self, lost: Sequence[tuple[str, int]], since: float) -> float:
        """Wait until other processes have these jobs; returns the seconds since then of the last."""

        def successors() -> list[float]:
            hearts = self.hearts()
            return [
                min(later)
                for job, pid in lost
                if (later := [first for other, (first, _) in hearts[job].items() if other != pid and first > since])
            ]

        assert lost, "there was nothing to lose"
        await self.until(lambda: len(successors()) == len(lost), f"others go on with {lost}")
        return max(successors()) - since

    async def goes_on(self, jobs: Sequence[str]) -> None:
        """Wait until these jobs work again after now."""
        now = time.monotonic()
        await self.until(
            lambda: all(max(last for _, last in self.hearts()[job].values()) > now for job in jobs), "jobs go on"
        )

    def logs(self) -> str:
        return "\n".join(f"── {each.url}\n{each.log()[-2500:]}" for each in (self.server, *self.workers))

    # ── what is promised ──

    async def check(self) -> None:
        """End all jobs: none is lost, each item is there once, no two processes of a job worked at once, and nothing
        is left of them."""
        (self._round / "gate").touch()
        async with Http(self.url, self.key) as http:
            for job in self.jobs:
                answer = await eventually_async(
                    partial(http.get, f"/jobs/{job}"), lambda answer: answer.json["state"] == "finished",
                    f"the end of job {job}", details=self.logs,
                )  # fmt: skip
                assert answer.json.get("close_reason") == "finished", self.logs()
                items = [item["number"] for item in (await http.call("GET", f"/items/{job}?format=json")).json]
                assert sorted(items) == list(range(len(items))), f"{job}: {items}"
        hearts = self.hearts()
        assert set(hearts) == set(self.jobs)
        for job, processes in hearts.items():
            ordered = sorted(processes.values())
            for (_, last), (first, _) in itertools.pairwise(ordered):
                assert last < first, f"two processes of {job} worked at once: {processes}"
        await self.until(lambda: not self._count("attempts"), "no attempt is left")
        pids = [pid for processes in hearts.values() for pid in processes]
        await self.until(lambda: not any(map(is_there, pids)), "no process is left")
        self.jobs, self._round = [], self._next_round()

    def _next_round(self) -> Path:
        folder = self._folder / f"round-{next(self._rounds)}"
        folder.mkdir()
        return folder

    def _count(self, table: str) -> int:
        return int(self.cluster.query(self.database, f"SELECT count(*) FROM {table}")[0][0])


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
