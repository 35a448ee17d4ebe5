"""``CRAWL_WORKERS``: several processes of one machine run a crawl as one job, whichever of them is killed."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.jobprocess import proc
from tests.support.crawls import Crawl, Project, Running, ask_server, collect, key
from tests.support.eventually import eventually
from tests.support.relay import Relay
from tests.support.servers import RunningServer
from tests.support.sites import Answer, ListeningSite

JOB = "1/1/1"
CHAINS = 8
SPIDERS = """
import asyncio
import os
from pathlib import Path

import scrapy


class Chains(scrapy.Spider):
    name = "chains"

    async def start(self):
        for chain in range(8):
            yield self.page(chain, 0)

    def page(self, chain, number):
        return scrapy.Request(f"{self.site}/{chain}/{number}", meta={"frontier_slot": str(chain)})

    async def parse(self, response):
        Path("workers", str(os.getpid())).touch()
        chain, number = map(int, response.url.split("/")[-2:])
        yield {"chain": chain, "number": number}
        await asyncio.sleep(0.02)
        if not Path("go").exists() or number < 5:
            yield self.page(chain, number + 1)

    def closed(self, reason):
        self.logger.info("information")
        self.logger.warning("warning")
"""
#: Name of the site for the extraction API, which takes no IP addresses.
HOST = "shop.example"
#: The lease time is longer than any test: the end of a process is noticed without it.
SETTINGS = """
FRONTIER_LEASE_TIME = 600
CONCURRENT_REQUESTS_PER_DOMAIN = 16
CRAWL_WORKERS = 2
"""


class Pages(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, b"<p>", {"Set-Cookie": "a=b"})


class Group:
    """A crawl by several workers, which goes on until it is let finish."""

    def __init__(self, folder: Path, site: Pages, *, is_forked: bool) -> None:
        self.site = site
        to_site = f'SERVER_CONNECT_TO = ["{HOST}:{site.port}=127.0.0.1:{site.port}"]'
        self.project = Project(folder / "crawl", SPIDERS, SETTINGS + to_site, is_forked=is_forked)
        self.folder = self.project.folder
        (self.folder / "workers").mkdir()

    def start(self, *arguments: str, by_extraction: bool = False, environment: dict[str, str] | None = None) -> Running:
        """Start the command with these settings."""
        site = f"site=http://{HOST if by_extraction else '127.0.0.1'}:{self.site.port}"
        settings = ("LOG_LEVEL=INFO", f"EXTRACT_API_ENABLED={by_extraction}", *arguments)
        words = ["-a", site, *(word for setting in settings for word in ("-s", setting))]
        return self.project.start("chains", *words, environment=environment)

    def workers(self, number: int, running: Running) -> set[int]:
        """The process IDs of workers that have crawled, once they are so many."""
        folder = self.folder / "workers"
        found = eventually(
            lambda: os.listdir(folder), lambda names: len(names) >= number, details=running.log.read_text
        )
        return set(map(int, found))

    def go(self) -> None:
        """Let the crawl finish."""
        (self.folder / "go").touch()

    def state(self) -> tuple[str, str]:
        """The state and the close reason of the job."""
        metadata = self.project.stored(lambda client, _project: client.jobs.metadata(key(JOB)))
        return metadata["state"], metadata.get("close_reason", "")

    def check(self, found: list[dict] | None = None) -> None:
        """Each item is stored once, of each page that was crawled, and no worker is left."""
        found = self.project.items(JOB) if found is None else found
        items = Counter((item["chain"], item["number"]) for item in found)
        assert set(items.values()) == {1}
        last = Counter(chain for chain, _ in items)
        assert set(items) == {(chain, number) for chain in range(CHAINS) for number in range(last[chain])}
        assert {f"/{chain}/{number}" for chain, number in items} == set(self.site.hits)
        assert os.listdir(self.folder / ".scrapy" / "platform" / "groups") == []

    def logs(self) -> list[str]:
        """The messages of the job's log."""
        found = self.project.stored(lambda client, _project: collect(client.logs.iter(key(JOB))))
        return [record["message"] for record in found]

    def lives(self) -> list[int]:
        """The processes of this project that have not ended, with its servers."""
        folder = str(self.folder)
        return [pid for pid in proc.table() if _folder_of(pid) == folder]

    def find(self, role: str) -> int:
        """The process ID of a role: server, keeper, template, or a worker that is not the keeper; 0 for none."""
        table, crawled = proc.table(), {int(name) for name in os.listdir(self.folder / "workers")}
        live = [pid for pid in self.lives() if pid in table]
        server = next((pid for pid in live if b"server.launch" in _command_of(pid)), 0)
        keeper = table[server].parent if server else 0
        template = next((pid for pid in live if b"template" in _command_of(pid) and pid not in crawled), 0)
        worker = next((pid for pid in live if pid in crawled and pid != keeper), 0)
        return {"server": server, "keeper": keeper, "template": template, "worker": worker}[role]


def _folder_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def group(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Group]:
    """``param``: whether the command and its server are forked."""
    site = Pages()
    made = Group(tmp_path, site, is_forked=getattr(request, "param", True))
    yield made
    for pid in made.lives():
        os.kill(pid, signal.SIGKILL)
    site.close()


def finished(crawl: Crawl) -> None:
    assert (crawl.returncode, crawl.reason) == (0, "finished"), crawl.log[-3000:]


def test_workers_of_one_machine_run_one_job(group):
    running = group.start()
    workers = group.workers(2, running)
    assert running.process.pid in workers
    group.go()
    crawl = running.end()
    finished(crawl)
    # The command ends as the last one.
    assert group.lives() == []
    group.check()
    assert group.state() == ("finished", "finished")
    assert f"Job 1/1/1 finished: {len(group.project.items(JOB))} items, " in crawl.log
    assert crawl.log.count("WARNING: warning") == 2
    assert len(re.findall(r"^\[1\] .* WARNING: warning$", crawl.log, re.MULTILINE)) == 1
    assert crawl.log.count("INFO: information") == 1
    assert crawl.log.count("Each worker has its own cookies") <= 2
    assert {line for line in group.logs() if "information" in line} == {"[0] information", "[1] information"}


@pytest.mark.long
def test_a_killed_worker_is_replaced(group):
    running = group.start(by_extraction=True)
    (other,) = group.workers(2, running) - {running.process.pid}
    os.kill(other, signal.SIGKILL)
    group.workers(3, running)
    group.go()
    crawl = running.end()
    finished(crawl)
    assert f"process ID {other} was killed (SIGKILL) and is replaced" in crawl.log
    group.check()


@pytest.mark.long
def test_the_crawl_goes_on_when_its_command_is_killed_with_the_server(group):
    running = group.start("CRAWL_WORKERS=3")
    workers = group.workers(3, running)
    running.process.kill()
    running.process.wait()
    restarted = "The worker with the embedded server has ended. This one starts the server again"
    eventually(lambda: restarted in running.log.read_text(), details=running.log.read_text)
    before = len(group.site.hits)
    eventually(lambda: len(group.site.hits) > before + 20, details=running.log.read_text)
    refused = group.start(f"PLATFORM_JOB={JOB}").end()
    group.go()
    assert refused.reason == "bad_setting"
    assert "PLATFORM_JOB names 1/1/1, which runs in 2 workers of this machine" in refused.log
    assert refused.returncode == 1
    eventually(group.lives, lambda lives: not lives, details=running.log.read_text)
    group.check()
    assert group.state() == ("finished", "finished")
    assert running.log.read_text().count(restarted) == 1
    assert workers


@pytest.mark.full
@pytest.mark.parametrize("group", [False], indirect=True, ids=["real processes"])
@pytest.mark.parametrize(
    "killed",
    [["keeper", "keeper"], ["server", "keeper"], ["template", "keeper"], ["worker", "keeper", "template"]],
    ids="-".join,
)
def test_the_crawl_goes_on_as_long_as_one_worker_lives(group, killed):
    running = group.start("CRAWL_WORKERS=3")
    group.workers(3, running)
    for role in killed:
        os.kill(eventually(lambda role=role: group.find(role), details=running.log.read_text), signal.SIGKILL)
        before = len(group.site.hits)
        eventually(lambda before=before: len(group.site.hits) > before + 20, details=running.log.read_text)
    group.go()
    running.process.wait()
    eventually(group.lives, lambda lives: not lives, details=running.log.read_text)
    group.check()
    assert group.state() == ("finished", "finished")


@pytest.mark.long
def test_the_crawl_goes_on_without_its_template(group):
    running = group.start()
    group.workers(2, running)
    os.kill(group.find("template"), signal.SIGKILL)
    group.go()
    finished(running.end())
    group.check()


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 3])
def test_a_killed_crawl_is_resumed_by_another_number_of_workers(group, number):
    running = group.start()
    workers = group.workers(2, running)
    for pid in (group.find("template"), *workers):
        os.kill(pid, signal.SIGKILL)
    running.process.wait()
    eventually(group.lives, lambda lives: not lives)
    group.go()
    again = group.start(f"PLATFORM_JOB={JOB}", f"CRAWL_WORKERS={number}").end()
    finished(again)
    group.check()
    assert group.state() == ("finished", "finished")


@pytest.mark.long
def test_an_interrupt_closes_the_crawl_of_all_workers(group):
    running = group.start()
    group.workers(2, running)
    running.process.send_signal(signal.SIGINT)
    crawl = running.end()
    assert (crawl.returncode, crawl.reason) == (0, "shutdown")
    assert group.lives() == []
    assert group.state() == ("finished", "shutdown")
    group.go()
    finished(group.start(f"PLATFORM_JOB={JOB}").end())
    group.check()


@pytest.mark.long
def test_an_interrupt_of_another_worker_closes_the_crawl_as_well(group):
    running = group.start()
    (other,) = group.workers(2, running) - {running.process.pid}
    os.kill(other, signal.SIGINT)
    crawl = running.end()
    assert (crawl.returncode, crawl.reason) == (0, "shutdown")
    assert group.state() == ("finished", "shutdown")


@pytest.mark.long
def test_workers_of_one_machine_share_a_platform_elsewhere(group, tmp_path):
    with RunningServer(tmp_path / "elsewhere") as server:
        environment = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key}
        running = group.start(environment=environment)
        (other,) = group.workers(2, running) - {running.process.pid}
        running.process.kill()
        running.process.wait()
        group.go()
        eventually(group.lives, lambda lives: not lives, details=running.log.read_text)
        assert other
        group.check(ask_server(server.url, server.platform_key, lambda client: collect(client.items.iter(key(JOB)))))


@pytest.mark.long
def test_what_workers_cannot_share_is_refused_before_there_is_a_job(group):
    crawl = group.start("PLATFORM_ITEMS_MODE=streaming").end()
    assert (crawl.returncode, crawl.reason) == (1, "bad_setting")
    assert [re.sub(r".*ERROR: ", "", line) for line in crawl.errors] == [
        "PLATFORM_ITEMS_MODE must be exact with CRAWL_WORKERS: else the items of a worker that died would be stored "
        "again. Remove it, or CRAWL_WORKERS."
    ]
    assert group.project.stored(lambda client, project: client.jobq.count(project)) == 0


@pytest.mark.long
def test_a_platform_without_reports_is_refused_before_there_is_a_job(group, tmp_path):
    def has_the_call(_method: str, path: str) -> int | None:
        return 404 if path.partition("?")[0].endswith(("/report", "/workers")) else None

    with RunningServer(tmp_path / "elsewhere") as server, Relay(server.url, has_the_call) as relay:
        environment = {"PLATFORM_URL": relay.url, "PLATFORM_API_KEY": server.platform_key}
        crawl = group.start(environment=environment).end()
        jobs = ask_server(server.url, server.platform_key, lambda client: client.jobq.count(1))
    assert (crawl.returncode, crawl.reason) == (1, "bad_setting")
    assert [re.sub(r".*ERROR: ", "", line) for line in crawl.errors] == [
        "CRAWL_WORKERS needs a platform to which workers of one job can report, and this one does not have that call "
        "(404). Remove it, or start several crawls with one FRONTIER_NAME and FRONTIER_WORKER = auto, each with a job "
        "of its own."
    ]
    assert jobs == 0
    assert group.site.hits == {}
