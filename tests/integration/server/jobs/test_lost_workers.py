"""Nodes with the workers of a job that are killed or drained: the others go on, and each item is there once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.postgresql import Cluster
from tests.support.running_jobs import Platform, has_each_item_once
from tests.support.servers import RunningServer

pytestmark = pytest.mark.long

MakeNode = Callable[[], RunningServer]


@pytest.fixture
def database(postgresql: Cluster) -> str:
    return postgresql.database()


@pytest.fixture
async def platform(database: str, tmp_path: Path) -> AsyncIterator[Platform]:
    """A server that runs no jobs itself."""
    with RunningServer(tmp_path / "data", database=database, options=["--units", "0"]) as server:
        async with Http(server.url, server.platform_key) as http:
            yield Platform(http)


@pytest.fixture
def make_node(database: str, platform: Platform, tmp_path: Path) -> Iterator[MakeNode]:
    """Starts a node for two workers."""
    project = write_project(tmp_path / "shop")
    options = ["--local-project", str(project), "--units", "2", "--unit-memory", "300", "--stop-grace", "20"]
    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            RunningServer(tmp_path / "data", database=database, options=options, worker=True)
        )


async def test_the_workers_of_a_killed_node_are_replaced_while_the_others_go_on(
    platform: Platform, make_node: MakeNode, tmp_path: Path
) -> None:
    killed, _ = make_node(), make_node()
    gate = tmp_path / "gate"
    job = await platform.run("spread", n="150", gate=str(gate), job_workers="4")
    before = await platform.working(job, 4)
    lost = {each["attempt"] for each in before if f"-{killed.process.pid}-" in each["node"]}
    assert len(lost) == 2
    killed.kill()
    make_node()
    after = await platform.working(job, 4, without=sorted(lost))
    assert [each["worker"] for each in after] == [0, 1, 2, 3]
    gate.touch()
    await has_each_item_once(platform, job, 150)
    metadata = await platform.metadata(job)
    assert (metadata["attempt"], metadata.get("nodes_lost")) == (1, None)


async def test_a_drained_node_gives_its_places_back(platform: Platform, make_node: MakeNode, tmp_path: Path) -> None:
    drained, _ = make_node(), make_node()
    gate = tmp_path / "gate"
    job = await platform.run("spread", n="150", gate=str(gate), job_workers="4")
    before = await platform.working(job, 4)
    gate.touch()
    drained.terminate()
    make_node()
    await has_each_item_once(platform, job, 150)
    assert len(before) == 4


async def test_a_job_that_has_lost_all_of_its_workers_begins_anew(
    platform: Platform, make_node: MakeNode, tmp_path: Path
) -> None:
    node = make_node()
    gate = tmp_path / "gate"
    job = await platform.run("spread", n="100", gate=str(gate), job_workers="2")
    await platform.working(job, 2)
    node.kill()
    gate.touch()
    make_node()
    await has_each_item_once(platform, job, 100)
