"""The job queue with the client underneath, as workers of the platform use it."""

from __future__ import annotations

import json

import pytest
from requests import HTTPError
from scrapinghub import HubstorageClient
from scrapinghub.hubstorage.jobq import DuplicateJobError

SPIDER = "hs-test-spider"


@pytest.fixture
def project(hubstorage, project_id):
    return hubstorage.get_project(project_id)


@pytest.fixture
def jobq(project):
    return project.jobq


def keys(jobs):
    return [job["key"] for job in jobs]


def test_a_pushed_job_goes_through_its_states(hubstorage, jobq):
    pushed = jobq.push(SPIDER, foo="bar")
    assert pushed["auth"] is None
    job = hubstorage.get_job(pushed["key"])
    metadata = dict(job.metadata)
    assert metadata.pop("pending_time") > 0
    assert metadata.pop("scheduled_by")
    assert metadata == {
        "project": int(pushed["key"].split("/")[0]),
        "spider": SPIDER,
        "state": "pending",
        "units": 1,
        "priority": 2,
        "foo": "bar",
    }
    for change, state in ((jobq.start, "running"), (jobq.finish, "finished"), (jobq.delete, "deleted")):
        change(job)
        job.metadata.expire()
        assert job.metadata["state"] == state
    assert job.metadata["foo"] == "bar"


def test_a_running_job_has_a_token_for_its_data(server, hubstorage, jobq):
    pushed = jobq.push(SPIDER, state="running")
    assert hubstorage.get_job(pushed["key"]).metadata.authtoken() == pushed["auth"]
    worker = HubstorageClient(endpoint=f"{server.url}/", jobq_endpoint=f"{server.url}/")
    job = worker.get_job(pushed["key"], jobauth=(pushed["key"], pushed["auth"]))
    job.update_metadata(a=1)
    assert job.metadata["a"] == 1
    with pytest.raises(HTTPError, match="401"):
        worker.get_job(jobq.push(SPIDER)["key"], jobauth=(pushed["key"], pushed["auth"])).metadata.liveget("state")
    worker.close()


def test_unique_pushes(jobq):
    for unique in ({}, {}, {"unique": None}, {"unique": None}):
        jobq.push(SPIDER, **unique)
    first = jobq.push(SPIDER, unique="h1")
    jobq.push("another", unique="h2")
    with pytest.raises(DuplicateJobError, match="Active job exists with key"):
        jobq.push("another", unique="h1")
    jobq.finish(first)
    with pytest.raises(DuplicateJobError):
        jobq.push(SPIDER, unique="h2")
    jobq.push(SPIDER, unique="h1")


def test_jobs_start_by_priority_and_then_in_their_order(jobq):
    assert jobq.start() is None
    pushed = [jobq.push(name, priority=p) for name, p in ((SPIDER, 2), ("b", 0), ("b", 2), ("a", 4), ("a", 2))]
    order = [3, 0, 2, 4, 1]
    assert [jobq.start()["key"] for _ in order] == [pushed[place]["key"] for place in order]
    assert jobq.start() is None


def test_a_started_job_is_returned_whole(jobq):
    extras = {"string": "foo", "float": 3.2, "mixed": ["b", 1, None, True, {"k": "c"}], "empty": {}, "nil": None}
    pushed = jobq.push(SPIDER, **extras)
    job = jobq.start(**{f"s_{name}": value for name, value in extras.items()})
    assert job["key"] == pushed["key"]
    assert (job["state"], job["spider"], job["priority"]) == ("running", SPIDER, jobq.PRIO_NORMAL)
    assert job["auth"]
    assert job["running_time"] >= job["pending_time"] > 0
    for name, value in extras.items():
        assert job[name] == job[f"s_{name}"] == value


def test_workers_of_a_group_get_the_jobs_of_projects_in_it(project, jobq):
    pushed = jobq.push(SPIDER)
    assert jobq.start(botgroup="g1") is None
    project.settings["botgroups"] = ["g1"]
    project.settings.save()
    assert jobq.start(botgroup="g2") is None
    assert jobq.start(botgroup="g1")["key"] == pushed["key"]


def test_a_change_of_priority_counts(hubstorage, jobq):
    _, second = jobq.push(SPIDER), jobq.push(SPIDER)
    hubstorage.get_job(second["key"]).update_metadata(priority=4)
    assert jobq.start()["key"] == second["key"]


def test_lists_by_state_and_up_to_a_job(jobq):
    one, two, three, four = (jobq.push(SPIDER, state=state) for state in ("finished", "running", "pending", "finished"))
    assert keys(jobq.list()) == keys([four, one])
    assert keys(jobq.list(state=["running", "pending"])) == keys([three, two])
    assert keys(jobq.list(count=1)) == keys([four])
    assert keys(jobq.list(stop=one["key"])) == keys([four])
    assert keys(jobq.list(key=[one["key"], two["key"]])) == keys([two, one])


def test_old_filters_come_along_and_do_no_harm(project):
    wanted = project.push_job(SPIDER, state="finished", close_reason="finished", tags=["t1"])
    project.push_job(SPIDER, state="finished", close_reason="finished", tags=["t2"])
    project.push_job(SPIDER, state="finished", close_reason="failed", tags=["t1"])
    project.push_job(f"{SPIDER}skip", state="finished", close_reason="failed", tags=["t1"])
    filters = [
        ["spider", "=", [SPIDER]],
        ["state", "=", ["finished"]],
        ["close_reason", "=", ["finished"]],
        ["tags", "haselement", ["t1"]],
        ["tags", "hasnotelement", ["t2"]],
    ]
    with pytest.warns(Warning, match="deprecated"):
        jobs = list(project.get_jobs(filter=[json.dumps(each) for each in filters]))
    assert [job.key for job in jobs] == [wanted.key]


def test_several_jobs_change_at_once(project, jobq):
    one, two, three = jobq.push(SPIDER), jobq.push(SPIDER), jobq.push(SPIDER)
    ids = [one, two["key"], project.get_job(three["key"])]
    for change, previous in ((jobq.start, "pending"), (jobq.finish, "running"), (jobq.delete, "finished")):
        changed = list(change(ids))
        assert [each["prevstate"] for each in changed] == [previous] * 3
        assert keys(changed) == keys([one, two, three])


def test_all_jobs_of_a_spider_change_at_once(project, jobq):
    pushed = [jobq.push(SPIDER, state=state) for state in ("pending", "running", "finished", "deleted")]
    other = jobq.push("other")
    spider = f"{project.projectid}/{project.ids.spider(SPIDER)}"
    finished = {each["key"]: each["prevstate"] for each in jobq.finish(spider)}
    assert finished == dict(zip(keys(pushed), ("pending", "running", "finished"), strict=False))
    assert keys(jobq.delete(spider)) == keys(pushed[:3])
    assert list(jobq.delete(spider)) == []
    assert project.get_job(other["key"]).metadata["state"] == "pending"


def test_summaries_follow_changes_of_state(project, jobq):
    one, two, three = jobq.push(SPIDER), jobq.push(SPIDER), jobq.push(SPIDER)
    four = jobq.push(SPIDER, state="running")
    spider = project.ids.spider(SPIDER)

    def queue(name):
        summary = jobq.summary(name, spiderid=spider)
        assert summary["count"] == len(summary["summary"])
        return keys(summary["summary"])

    assert (queue("pending"), queue("running"), queue("finished")) == (keys([three, two, one]), keys([four]), [])
    jobq.start(one)
    jobq.finish(two)
    jobq.finish(four)
    assert (queue("pending"), queue("running")) == (keys([three]), keys([one]))
    assert queue("finished") == keys([four, two])


def test_fields_of_named_jobs_in_the_order_of_their_names(project):
    jobs = [project.push_job(SPIDER, foo=n) for n in range(5)]
    order = [jobs[place].key for place in (3, 0, 4)]
    found = list(project.jobq.jobsummary(jobkeys=order, jobmeta=["key", "foo"]))
    assert [(job["key"], job["foo"]) for job in found] == list(zip(order, (3, 0, 4), strict=True))
    assert list(project.jobq.jobsummary([f"{project.projectid}/1/77"], ["foo"])) == []


def test_the_metadata_of_all_jobs_of_a_project(project):
    jobs = [project.push_job(name, n=n) for n, name in enumerate((SPIDER, "b", SPIDER))]
    found = list(project.jobs.list(meta="_key"))
    assert [(job["_key"], job["n"]) for job in found] == [(jobs[n].key, n) for n in (0, 2, 1)]
    assert [job["n"] for job in project.jobs.list(project.ids.spider("b"))] == [1]
    assert [job["n"] for job in project.jobs.list(count=2)] == [0, 2]


def test_without_a_key_nothing_is_pushed(server, project_id):
    nobody = HubstorageClient(endpoint=f"{server.url}/", jobq_endpoint=f"{server.url}/", auth=None)
    with pytest.raises(HTTPError) as caught:
        nobody.push_job(project_id, SPIDER)
    assert caught.value.response.status_code == 401
    assert caught.value.response.headers["WWW-Authenticate"] == 'Basic realm="apikey"'
    assert caught.value.response.json()["message"] == "Unauthorized"
    nobody.close()
