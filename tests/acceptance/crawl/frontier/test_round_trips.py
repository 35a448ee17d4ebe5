"""A crawl that is far away from its platform starts and ends without calls that it does not need."""

from __future__ import annotations

import pytest

from tests.support.crawls import Project
from tests.support.faults import Fault, FaultProxy, Step, step_of
from tests.support.servers import ForkedServer, RunningServer

SPIDERS = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        yield scrapy.Request("data:,1")

    def parse(self, response):
        yield {"page": response.text}
        if response.text < "3":
            yield scrapy.Request(f"data:,{int(response.text) + 1}")
        elif self.fails:
            raise ValueError("odd")
"""


class Calls:
    """The calls of a crawl of three pages, in their order."""

    def __init__(self, server: RunningServer, folder, *, fails: bool = False) -> None:
        self.made: list[tuple[str, str]] = []
        with FaultProxy(server.url, self._note) as proxy:
            remote = f"PLATFORM_URL = {proxy.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\n"
            project = Project(folder, SPIDERS, "EXTRACT_API_ENABLED = False\n" + remote)
            self.crawl = project.crawl("pages", "-a", f"fails={'yes' if fails else ''}")
        assert self.crawl.reason == "finished"
        assert self.crawl.stat("item_scraped_count") == 3

    def _note(self, method: str, path: str, _number: int) -> Fault | None:
        self.made.append((method, path))
        return None

    @property
    def steps(self) -> list[Step]:
        return [step_of(*call) for call in self.made]

    def of(self, method: str, part: str) -> int:
        return sum(call[0] == method and part in call[1] for call in self.made)


@pytest.fixture
def server(tmp_path):
    with ForkedServer(tmp_path / "server") as server:
        yield server


def test_a_new_job_reads_nothing_before_its_first_request_and_proves_nothing_after_its_last(server, tmp_path):
    calls = Calls(server, tmp_path / "project")
    assert calls.made[0] == ("POST", "/jobq/1/push")
    assert calls.steps[1:3] == [Step.JOURNAL, Step.ASSIGNMENT]
    assert Step.LOOK not in calls.steps
    assert calls.of("GET", "/stats") == 0
    # Slots are read where requests were sent, for their batches, and not after the last batch is deleted.
    last = max(place for place, step in enumerate(calls.steps) if step is Step.ACKNOWLEDGE)
    assert Step.READ in calls.steps[:last]
    assert not {Step.READ, Step.JOURNAL} & {*calls.steps[last:]}
    assert len({path for method, path in calls.made if step_of(method, path) is Step.READ}) == 1
    # Nothing of it is left.
    assert calls.of("DELETE", "/hcf/1/job-1-1/s/") == 3
    assert calls.of("GET", "dead-letters") == 0


def test_a_frontier_that_is_kept_for_its_dead_letters_has_the_end_of_its_process(server, tmp_path):
    calls = Calls(server, tmp_path / "project", fails=True)
    last = max(place for place, step in enumerate(calls.steps) if step is Step.ACKNOWLEDGE)
    assert Step.JOURNAL in calls.steps[last:]
    assert calls.of("DELETE", "/hcf/") == 0
