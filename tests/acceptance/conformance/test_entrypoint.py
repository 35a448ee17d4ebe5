"""scrapinghub-entrypoint-scrapy from PyPI: what a job of the hosted platform runs in.

It hands items, requests and log lines to its runner through a pipe, and reaches the storage itself with the job's
token, which it takes from the environment.
"""

from __future__ import annotations

import json

import pytest
from requests import HTTPError
from sh_scrapy.hsref import _HubstorageRef
from sh_scrapy.writer import _PipeWriter

RESOURCES = {"LOG": "logs", "REQ": "requests", "ITM": "items"}


def test_a_job_reaches_its_data_with_what_is_in_its_environment(server, hubstorage, project_id, monkeypatch):
    job = hubstorage.push_job(project_id, "spider", state="running", spider_args={"a": "1"})
    token = job.metadata.authtoken()
    monkeypatch.setenv("SHUB_JOBKEY", job.key)
    monkeypatch.setenv("SHUB_JOBAUTH", f"{job.key}:{token}".encode().hex())
    monkeypatch.setenv("SHUB_STORAGE", f"{server.url}/")
    own = _HubstorageRef()
    assert (own.projectid, own.jobid) == (project_id, 1)
    assert own.job.metadata["spider_args"] == {"a": "1"}
    own.job.items.write({"n": 1})
    own.job.items.flush()
    own.job.metadata["scrapystats"] = {"item_scraped_count": 1}
    own.job.metadata.save()
    assert [item["n"] for item in job.items.iter_values()] == [1]
    with pytest.raises(HTTPError, match="401"):
        own.project.jobq.finish(own.job)
    own.close()


def test_what_goes_through_its_pipe_is_stored_as_it_is(hubstorage, project_id, tmp_path):
    """The lines of the pipe, handed on by a runner that changes nothing in them."""
    pipe = tmp_path / "pipe"
    writer = _PipeWriter(str(pipe))
    writer.open()
    writer.write_log(20, "Spider opened \u00e9")
    writer.write_request("http://a/", 200, "GET", 5, 1.5, None, "f0")
    writer.write_request("http://a/b", 404, "GET", 5, 1, 0, "f1")
    writer.write_item({"name": "a", "_type": "Item"})
    writer.set_outcome("finished")
    writer.close()
    job = hubstorage.push_job(project_id, "spider", state="running")
    for line in pipe.read_text().splitlines():
        command, _, payload = line.partition(" ")
        if command in RESOURCES:
            getattr(job, RESOURCES[command]).write(json.loads(payload))
    for name in RESOURCES.values():
        getattr(job, name).flush()
    assert [line["message"] for line in job.logs.iter_values()] == ["Spider opened \u00e9"]
    assert [(each["status"], each.get("parent")) for each in job.requests.iter_values()] == [(200, None), (404, 0)]
    assert [item["name"] for item in job.items.iter_values()] == ["a"]
    assert job.items.stats()["counts"] == {"name": 1}
