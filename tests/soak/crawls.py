"""The crawls of the soak: jobs of seven spiders, run again and again, each with an outcome that is known exactly."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
from collections import Counter, deque
from typing import Any, ClassVar
from urllib.parse import urlencode

from tests.soak import referee
from tests.soak.sites import TREE_PAGES, PacedMaze
from tests.soak.system import AS_FORM, System, ask, pulses_of
from tests.support.crash.maze import outcome
from tests.support.http import Http

#: Jobs at once; one crawl more may begin while there are fewer.
AT_ONCE = 6
#: Jobs of a crawl; one that is not done after so many is given up, which is a fault.
MOST_JOBS = 12
#: Crawls that have ended and are kept until the end of the run; older ones are checked once more, and deleted.
KEPT = 12
_MAZE_PAGES = (24, 28, 36)
_ITEMS = 20
_LINES = 25


class Crawl:
    """One crawl, of one job or of several; a job that was killed may have a successor."""

    spider = ""
    workers = 1
    #: Processes of a job that work at once, at most.
    processes_of_job = 1

    def __init__(self, system: System, number: int, chance: random.Random) -> None:
        self.system = system
        self.name = f"{self.spider.replace('.', '-').replace(':', '-')}-{number}"
        self.jobs: list[str] = []
        #: Metadata of each job that has ended.
        self.ends: dict[str, dict[str, Any]] = {}

    def fields(self) -> dict[str, str]:
        """Arguments of the spider, and what else ``run.json`` takes."""
        return {"pulses": str(self.system.pulses)}

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def running(self) -> list[str]:
        return [job for job in self.jobs if job not in self.ends]

    @property
    def is_done(self) -> bool:
        return bool(self.jobs) and not self.running and not self.needs_successor

    @property
    def needs_successor(self) -> bool:
        """True while its work is not done and no job of it runs."""
        reasons = [end.get("close_reason") for end in self.ends.values()]
        return len(self.ends) == len(self.jobs) and "finished" not in reasons

    async def begin(self, clients: list[Http]) -> None:
        """Start the jobs, or the successor of those that were killed."""
        for place in range(self.workers if not self.jobs else 1):
            self.jobs.append(await self._run(clients, f"{self.name}-{len(self.jobs)}", place))

    async def _run(self, clients: list[Http], tag: str, place: int) -> str:
        """Start a job once, also when the answer of a call is lost: its tag is its own."""
        form = {"project": "1", "spider": self.spider, "add_tag": tag, **self.fields()}
        if self.settings:
            form["job_settings"] = json.dumps(self.settings)
        if not self.spider.startswith("py:"):
            form["tag"] = tag  # no two jobs have the same arguments

        while True:
            answer = await ask(clients, "POST", "/api/run.json", form, first=place)
            if answer.status == 200:
                return str(answer.json["jobid"])
            # Refused as a duplicate: an answer was lost.
            found = await ask(clients, "GET", f"/jobq/1/list?has_tag={tag}&{_STATES}")
            if found.lines:
                return str(found.lines[0]["key"])
            assert "already scheduled" in answer.text, answer
            await asyncio.sleep(0.5)

    async def look(self, clients: list[Http]) -> None:
        """Note which jobs have ended."""
        for job in self.running:
            answer = await ask(clients, "GET", f"/jobs/{job}")
            if answer.status == 200 and answer.json["state"] == "finished":
                self.ends[job] = answer.json

    async def check(self, clients: list[Http]) -> list[str]:
        """Compare all of it with what must be."""
        faults = []
        for job, end in self.ends.items():
            killed = job in self.system.killed_jobs
            if wrong := referee.end_of_job(job, end, killed=killed, shared=self.workers > 1):
                faults += wrong
                await self._keep_log(clients, job)
            faults += referee.processes_at_once(job, self.pulses(job), self.processes_of_job)
        faults += await self.check_tags(clients)
        return faults + await self.compare(clients)

    async def _keep_log(self, clients: list[Http], job: str) -> None:
        """Write the log of a job to a file that the report takes along."""
        found = await ask(clients, "GET", f"/logs/{job}")
        folder = self.system.folder / "jobs" / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"job-{job.replace('/', '-')}.log").write_bytes(found.body)

    async def check_tags(self, clients: list[Http]) -> list[str]:
        """No call of ``run.json`` made two jobs."""
        faults = []
        for number, job in enumerate(self.jobs):
            tag = f"{self.name}-{number}"
            found = await ask(clients, "GET", f"/jobq/1/list?has_tag={tag}&{_STATES}")
            if (keys := [line["key"] for line in found.lines]) != [job]:
                faults.append(f"{tag} was started once, as {job}, and the jobs with its tag are {keys}")
        return faults

    async def compare(self, clients: list[Http]) -> list[str]:
        raise NotImplementedError

    def pulses(self, job: str) -> dict[int, tuple[float, float]]:
        return pulses_of(self.system.pulses / job.replace("/", "-"))

    @property
    def processes(self) -> int:
        """Number of processes that worked at it."""
        return len(self._works())

    def _works(self) -> list[tuple[float, float]]:
        """The first and the last sign of work of each process."""
        return [times for job in self.jobs for times in self.pulses(job).values()]

    async def stored(self, clients: list[Http]) -> Counter[str]:
        """The items of all jobs together."""
        found = Counter[str]()
        for job in self.jobs:
            for item in await _records(clients, f"/items/{job}"):
                text = item["text"]
                if (length := re.search(r"\+(\d+)", text)) and len(item["pad"]) != int(length[1]):
                    text = f"{text} with {len(item['pad'])} characters"
                found[text] += 1
        return found

    async def records(self, clients: list[Http]) -> int:
        """Number of items that it has stored."""
        return (await self.stored(clients)).total()

    async def delete(self, clients: list[Http]) -> list[str]:
        """Delete it from the platform, with its frontiers; returns what is wrong with that. Deleted jobs stay readable
        (:doc:`/reference/platform-jobs`)."""
        form = [("project", "1"), *(("job", job) for job in self.jobs)]
        await ask(clients, "POST", "/api/jobs/delete.json", _form(form), **AS_FORM)
        faults = []
        for job in self.jobs:
            state = (await ask(clients, "GET", f"/jobs/{job}")).json["state"]
            if state != "deleted":
                faults.append(f"job {job} was deleted, and is {state}")
            (self.system.pulses / job.replace("/", "-")).unlink(missing_ok=True)
        for frontier in self.frontiers:
            for slot in await _slots(clients, frontier):
                path = f"/hcf/1/{frontier}/s/{slot}"
                await ask(clients, "DELETE", path)
        return faults

    @property
    def frontiers(self) -> list[str]:
        return []

    def close(self) -> None:
        """Let go of what it had of its own."""


class MazeCrawl(Crawl):
    """A maze with a frontier of its own; a successor goes on in that."""

    spider = "maze"

    def __init__(self, system: System, number: int, chance: random.Random) -> None:
        super().__init__(system, number, chance)
        self._site = PacedMaze(chance.choice(_MAZE_PAGES), system.pace)
        self._start_items = chance.choice((0, 2))
        self.expected = outcome(self._site.pages, self._start_items)

    def fields(self) -> dict[str, str]:
        maze = self._site.arguments[1].removeprefix("maze=")
        return {**super().fields(), "maze": maze, "start_items": str(self._start_items)}

    @property
    def frontiers(self) -> list[str]:
        return ["job-" + "-".join(self.jobs[0].split("/")[1:])] if self.jobs else []

    @property
    def settings(self) -> dict[str, Any]:
        return {"FRONTIER_NAME": self.frontiers[0]} if self.jobs else {}

    async def compare(self, clients: list[Http]) -> list[str]:
        found = await self.stored(clients)
        if self.workers == 1:
            # A crawl of one worker counts the items of start() by job (promises), so that a successor stores its own.
            for name in (f"start {number}" for number in range(self._start_items)):
                if 1 < found[name] <= len(self.jobs):
                    found[name] = 1
        faults = referee.items_once(f"items of {self._label}", found, self.expected.items)
        dead, left = Counter[str](), Counter[str]()
        for frontier in self.frontiers:
            for slot in await _slots(clients, frontier):
                if slot.isdigit() or slot == "dead-letters":
                    found = await _requests(clients, frontier, slot)
                    (dead if slot == "dead-letters" else left).update(found)
        faults += referee.items_once(f"dead letters of {self._label}", dead, self.expected.dead_letters)
        faults += referee.items_once(f"requests left in the frontier of {self._label}", left, Counter())
        if self.processes == 1:
            hits, of = self._site.hits, self.expected
            jumps = sum(first <= jump <= last for first, last in self._works() for jump in self.system.clock_jumps)
            faults += referee.hits_of_maze(f"site of {self._label}", hits, of.hits, of.dead_letters, jumps)
        return faults

    @property
    def _label(self) -> str:
        return f"{self.name} ({', '.join(self.jobs)})"

    def close(self) -> None:
        self._site.close()


class SharedCrawl(MazeCrawl):
    """A maze with three workers that share a frontier with a name; they go on where one of them was killed."""

    spider = "shared"
    workers = 3

    @property
    def frontiers(self) -> list[str]:
        return [self.name]

    @property
    def settings(self) -> dict[str, Any]:
        return {"FRONTIER_NAME": self.name, "FRONTIER_WORKER": "auto"}


class GroupedCrawl(MazeCrawl):
    """A maze, one job of several workers: where one of them is killed, another takes its place."""

    spider = "grouped"
    processes_of_job = 2

    def fields(self) -> dict[str, str]:
        return {**super().fields(), "job_workers": str(self.processes_of_job)}


class TreeCrawl(Crawl):
    """A tree by the extraction service: each page is paid once, but for those that a killed process had begun."""

    spider = "routed"
    _PAGES: ClassVar = [str(number) for number in range(TREE_PAGES)]

    def fields(self) -> dict[str, str]:
        return {**super().fields(), "host": self.system.trees.host, "crawl": self.name}

    @property
    def frontiers(self) -> list[str]:
        return ["job-" + "-".join(self.jobs[0].split("/")[1:])] if self.jobs else []

    @property
    def settings(self) -> dict[str, Any]:
        return {"FRONTIER_NAME": self.frontiers[0]} if self.jobs else {}

    async def compare(self, clients: list[Http]) -> list[str]:
        faults = referee.items_once(f"items of {self.name}", await self.stored(clients), Counter(self._PAGES))
        # A site that does not answer in time is asked once more.
        most = self.processes * (2 if self.system.site_was_harmed else 1)
        return faults + referee.paid_once(f"pages of {self.name}", self.hits(), self._PAGES, most)

    def hits(self) -> Counter[str]:
        return self.system.trees.hits_of(self.name)

    def close(self) -> None:
        self.system.trees.forget(f"/tree/{self.name}/")


class PlainCrawl(TreeCrawl):
    """A tree under Scrapy's own scheduler: each item at least once, and not more often than its job was begun."""

    spider = "plain"

    @property
    def frontiers(self) -> list[str]:
        return []

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def needs_successor(self) -> bool:
        return False

    async def compare(self, clients: list[Http]) -> list[str]:
        (end,) = self.ends.values()
        found, wanted = await self.stored(clients), Counter(self._PAGES)
        # A process may be lost before its first sign.
        runs = max(self.processes, 1) + int(end.get("nodes_lost", 0))
        if end.get("close_reason") == "finished":
            return referee.items_at_least_once(f"items of {self.name}", found, wanted, runs=runs)
        most = Counter(dict.fromkeys(self._PAGES, runs))
        return referee.items_at_most(f"items of {self.name}", found, most)


class ScriptRun(Crawl):
    """A script, which is not run again when it is lost: its output is there once."""

    spider = "py:report.py"

    def fields(self) -> dict[str, str]:
        return {"cmd_args": f"{self.system.pulses} {_LINES} {self.name}"}

    @property
    def needs_successor(self) -> bool:
        return False

    async def compare(self, clients: list[Http]) -> list[str]:
        (job,) = self.jobs
        log = [str(record["message"]) for record in await _records(clients, f"/logs/{job}")]
        found = Counter(line for line in log if line.startswith("line "))
        wanted = Counter(f"line {number}" for number in range(_LINES))
        if self.ends[job].get("close_reason") == "finished":
            return referee.items_once(f"output of {self.name}", found, wanted)
        return referee.items_at_most(f"output of {self.name}", found, wanted)

    async def records(self, clients: list[Http]) -> int:
        return 0


class Tick(Crawl):
    """A run of the periodic job, which the servers start themselves."""

    spider = "tick"

    def __init__(self, system: System, job: str, metadata: dict[str, Any]) -> None:
        super().__init__(system, int(job.rpartition("/")[2]), random.Random())
        self.jobs = [job]
        self.metadata = metadata

    @property
    def needs_successor(self) -> bool:
        return False

    async def check_tags(self, clients: list[Http]) -> list[str]:
        return []

    async def compare(self, clients: list[Http]) -> list[str]:
        (end,) = self.ends.values()
        found = await self.stored(clients)
        wanted = Counter(str(number) for number in range(_ITEMS))
        if end.get("close_reason") == "finished":
            return referee.items_once(f"items of {self.name}", found, wanted)
        return referee.items_at_most(f"items of {self.name}", found, wanted)


KINDS: tuple[type[Crawl], ...] = (MazeCrawl, TreeCrawl, SharedCrawl, GroupedCrawl, PlainCrawl, ScriptRun)
_STATES = "&".join(f"state={state}" for state in ("pending", "running", "finished")) + "&count=10"


class Work:
    """Keeps jobs running, checks each crawl when it has ended, and deletes the oldest."""

    def __init__(self, system: System, clients: list[Http], seed: int) -> None:
        self._system = system
        self._clients = clients
        self._chance = random.Random(f"work {seed}")
        self._numbers = itertools.count(1)
        self._kinds = itertools.cycle(KINDS)
        self.active: list[Crawl] = []
        self.kept: deque[Crawl] = deque()
        self._ticks: dict[str, Tick] = {}
        self._runs: list[dict[str, Any]] = []
        self._schedule = 0
        self.jobs = 0
        self.records = 0
        self.of_kind: Counter[str] = Counter()
        #: Jobs with more processes than workers, or a successor.
        self.resumed = 0
        self.is_ending = False

    async def run(self) -> None:
        """Until :attr:`is_ending`, and all that was begun has ended."""
        await self._add_schedule()
        while self.active or not self.is_ending:
            await self._start_more()
            await self._find_ticks()
            for crawl in list(self.active):
                await crawl.look(self._clients)
                if crawl.is_done:
                    self.active.remove(crawl)
                    await self._ended(crawl)
                elif crawl.needs_successor and crawl.jobs:
                    await self._go_on(crawl)
            await asyncio.sleep(0.5)

    async def _start_more(self) -> None:
        while not self.is_ending and sum(len(crawl.running) for crawl in self.active) < AT_ONCE:
            crawl = next(self._kinds)(self._system, next(self._numbers), self._chance)
            self.active.append(crawl)
            await crawl.begin(self._clients)

    async def _go_on(self, crawl: Crawl) -> None:
        """Start a successor of the jobs that were killed."""
        if len(crawl.jobs) < MOST_JOBS:
            self.resumed += 1
            await crawl.begin(self._clients)
            return
        reasons = Counter(str(end.get("close_reason")) for end in crawl.ends.values())
        self._system.fault(f"{crawl.name} is not done after {len(crawl.jobs)} jobs: {dict(reasons)}")
        self.active.remove(crawl)
        self.jobs += len(crawl.jobs)
        crawl.close()

    async def _add_schedule(self) -> None:
        task = {"name": "tick", "spider_args": {"pulses": str(self._system.pulses), "n": str(_ITEMS)}}
        body = json.dumps({"cron": "* * * * *", "tasks": [task], "addtags": ["tick"]}).encode()
        answer = await ask(self._clients, "POST", "/api/projects/1/periodicjobs", body)
        assert answer.status in (200, 201), answer
        self._schedule = answer.json["id"]

    async def end_schedule(self) -> None:
        """Let no more runs be added."""
        path = f"/api/projects/1/periodicjobs/{self._schedule}"
        await ask(self._clients, "PATCH", path, b'{"disabled": true}')
        await self._find_ticks()

    async def _find_ticks(self) -> None:
        answer = await ask(self._clients, "GET", f"/jobq/1/list?has_tag=tick&{_STATES}")
        for line in answer.lines:
            job = line["key"]
            if job not in self._ticks:
                metadata = (await ask(self._clients, "GET", f"/jobs/{job}")).json
                self._ticks[job] = Tick(self._system, job, metadata)
                self._runs.append(metadata)
                self.active.append(self._ticks[job])

    async def _ended(self, crawl: Crawl) -> None:
        self.jobs += len(crawl.jobs)
        self.of_kind[crawl.spider] += len(crawl.jobs)
        self.resumed += sum(len(crawl.pulses(job)) > crawl.processes_of_job for job in crawl.jobs)
        self.records += await crawl.records(self._clients)
        await self._check(crawl)
        self.kept.append(crawl)
        if len(self.kept) > KEPT:
            old = self.kept.popleft()
            await self._check(old)
            for fault in await old.delete(self._clients):
                self._system.fault(fault)
            old.close()

    async def _check(self, crawl: Crawl) -> None:
        for fault in await crawl.check(self._clients):
            self._system.fault(fault)

    async def check(self) -> None:
        """Compare all that is kept once more, and the runs of the periodic job."""
        for crawl in self.kept:
            await self._check(crawl)
        for fault in referee.ran_once_each(self._runs):
            self._system.fault(fault)
        answer = await ask(self._clients, "GET", "/jobq/1/count?state=pending&state=running")
        if answer.json:
            self._system.fault(f"{answer.json} jobs are pending or running at the end")

    @property
    def ticks(self) -> int:
        return len(self._runs)

    def close(self) -> None:
        for crawl in (*self.active, *self.kept):
            crawl.close()


async def _records(clients: list[Http], path: str) -> list[dict[str, Any]]:
    answer = await ask(clients, "GET", f"{path}?format=json")
    if answer.status == 404:
        return []
    found: list[dict[str, Any]] = answer.json
    return found


async def _slots(clients: list[Http], frontier: str) -> list[str]:
    answer = await ask(clients, "GET", f"/hcf/1/{frontier}/list")
    return list(answer.json) if answer.status == 200 else []


async def _requests(clients: list[Http], frontier: str, slot: str) -> list[str]:
    answer = await ask(clients, "GET", f"/hcf/1/{frontier}/s/{slot}/q?mincount=1000")
    return [_address(pair[1]) for batch in answer.lines for pair in batch["requests"]]


def _address(qdata: Any) -> str:
    """Host and path of a stored request, wherever in its record the URL is."""
    found = re.search(r"http://([\d.]+):\d+(/[\w/]+)", str(qdata))
    return found[1] + found[2] if found else str(qdata)


def _form(fields: list[tuple[str, str]]) -> bytes:
    return urlencode(fields).encode()
