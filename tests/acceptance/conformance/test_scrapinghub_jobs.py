"""The client of the hosted platform, unchanged, schedules jobs, follows them and cancels them: real ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scrapinghub import ScrapinghubClient

from tests.support.eventually import eventually
from tests.support.job_projects import write_project
from tests.support.servers import ForkedServer


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    folder = write_project(tmp_path_factory.mktemp("project") / "shop")
    options = ["--local-project", str(folder), "--units", "4"]
    with ForkedServer(tmp_path_factory.mktemp("server") / "data", options=options) as server:
        client = ScrapinghubClient(server.platform_key, f"{server.url}/api/", endpoint=f"{server.url}/")
        yield client.get_project(1)
        client.close()


def test_a_job_is_scheduled_and_followed_to_its_end(project):
    job = project.jobs.run("quick", job_args={"n": "5"}, job_settings={"ANSWER": 7}, add_tag=["a"], units=2)
    eventually(lambda: job.metadata.get("state"), lambda state: state == "finished", "the end of the job")
    assert job.metadata.get("close_reason") == "finished"
    assert [item["number"] for item in job.items.iter()] == [0, 1, 2, 3, 4]
    assert "answer 7" in [line["message"] for line in job.logs.iter()]
    assert [request["status"] for request in job.requests.iter()] == [200]
    stats = job.metadata.get("scrapystats")
    assert (stats["item_scraped_count"], stats["finish_reason"]) == (5, "finished")
    assert [each["scrapystats"] for each in project.jobs.iter(meta=["scrapystats"])] == [stats]
    (listed,) = project.jobs.list(has_tag=["a"])
    assert (listed["key"], listed["close_reason"]) == (job.key, "finished")


@pytest.mark.long
def test_a_running_job_is_read_from_where_the_last_read_ended_and_cancelled(project):
    job = project.jobs.run("endless")
    seen = eventually(lambda: [item["number"] for item in job.items.iter(count=3)])
    more = eventually(lambda: list(job.items.iter(start=f"{job.key}/{len(seen)}", count=3)))
    assert more[0]["number"] == seen[-1] + 1
    assert job.metadata.get("state") == "running"
    job.cancel()
    eventually(lambda: job.metadata.get("state"), lambda state: state == "finished", "the end of the job")
    assert job.metadata.get("close_reason") == "cancelled"
    numbers = [item["number"] for item in job.items.iter()]
    assert numbers == list(range(len(numbers)))


@pytest.mark.long
def test_a_script_uses_the_client_of_the_platform_as_it_would_there(project):
    job = project.jobs.run("py:client.py", cmd_args="--any")
    eventually(lambda: job.metadata.get("state"), lambda state: state == "finished", "the end of the script")
    assert job.metadata.get("close_reason") == "finished"
    assert any(job.key in line["message"] for line in job.logs.iter())
