"""The page of nodes, over HTTP, and the counts of waiting jobs in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs import placing as waiting
from scrapy_ext.server.store.jobs.jobs import NewJob
from scrapy_ext.server.store.jobs.nodes import StoredNode
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.page_forms import page, rows, submit, texts
from tests.support.servers import ForkedServer, RunningServer


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "3", "--node-tags", "gpu"]
    with ForkedServer(tmp_path_factory.mktemp("nodes") / "data", options=options) as server:
        yield server


async def test_a_node_is_shown_with_its_units_and_jobs_and_what_waits(running: RunningServer) -> None:
    async with Http(running.url, running.platform_key) as http:

        async def start(spider: str, units: int) -> str:
            # Of two with the same arguments one would not be added.
            fields = {"project": "1", "spider": spider, "units": str(units), "n": str(units)}
            answer = await http.post("/api/run.json", fields)
            return str(answer.json["jobid"])

        job = await start("endless", 2)
        await start("quick", 2)
        await start("quick", 6)
        shown = await eventually_async(
            # The page reads its nodes before their jobs: the job may be there before its units are.
            lambda: http.get("/ui/nodes"),
            lambda answer: page(answer).xpath(f"//a[@href='/ui/{job}']") and rows(page(answer))[0][3] == "1",
        )
        document = page(shown)
        node, *queues = rows(document)
        assert node[2:4] == ["3", "1"]
        assert "gpu" in node[5]
        assert node[7].startswith(f"{job} running")
        assert [queue[1] for queue in queues] == ["2", "6"]
        assert "no free units" in queues[0][3]
        assert "No node has enough units" in queues[1][3]
        await http.post("/api/jobs/stop.json", {"project": "1", "job": job})


async def test_a_key_of_some_projects_does_not_see_the_nodes(server: RunningServer, http: Http, project: int) -> None:
    fields = {"action": "add", "name": f"nodes-{project}", "opens": "platform", "projects": str(project)}
    (key,) = texts(page(await submit(http, "/ui/keys", fields)), "//code[@class='secret']")
    async with Http(server.url, key) as other, timeout_after(60):
        answer = await eventually_async(lambda: other.get("/ui/nodes"), lambda answer: answer.status != 401)
        document = page(answer, 403)
        assert not document.xpath("//nav//a[text()='Nodes']")


async def test_waiting_jobs_are_counted_by_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_COUNTED", 3)
    store = await Store.open(tmp_path)
    jobs = [{"units": 1}] * 5 + [{"units": 2}, {"units": 1, "node_tags": ["gpu"]}]
    await store.jobs.add(1, [NewJob("s", JobState.PENDING, metadata) for metadata in jobs], "tests")
    groups = await store.waiting.groups()
    await store.close()
    assert {(tuple(group.tags), group.units): (group.jobs, group.more) for group in groups} == {
        ((), 1): (3, True),
        ((), 2): (1, False),
        (("gpu",), 1): (1, False),
    }
    node = StoredNode("n", "h", 1, frozenset({"gpu"}), None, 0, 0, False)
    assert [group.fits(node) for group in groups] == [group.units == 1 for group in groups]
    assert not any(group.fits(node._replace(draining=True)) for group in groups)
