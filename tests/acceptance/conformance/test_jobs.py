"""Jobs with the client of the hosted platform: run, count, list, tag, cancel, and their metadata."""

from __future__ import annotations

import pytest
from scrapinghub import BadRequest, DuplicateJobError, NotFound, ScrapinghubClient, Unauthorized

SPIDER = "hs-test-spider"


@pytest.fixture
def project(client, project_id):
    return client.get_project(project_id)


def run(project, n, state="pending", **more):
    return project.jobs.run(SPIDER, job_args={"subid": str(n)}, meta={"state": state}, **more)


def test_a_run_is_recorded_as_it_was_asked_for(project):
    job = project.jobs.run(
        SPIDER,
        job_args={"arg1": "val1", "arg2": "val2"},
        priority=3,
        units=3,
        add_tag=["tagA", "tagB"],
        meta={"state": "running", "meta1": "val1"},
        environment={"VAR1": "VAL1"},
        job_settings={"LOG_LEVEL": "INFO"},
        cmd_args="--loglevel=INFO",
    )
    metadata = dict(job.metadata.list())
    assert metadata["spider_args"] == {"arg1": "val1", "arg2": "val2"}
    assert (metadata["priority"], metadata["units"], metadata["tags"]) == (3, 3, ["tagA", "tagB"])
    assert (metadata["state"], metadata["meta1"], metadata["spider_type"]) == ("running", "val1", "manual")
    assert (metadata["environment"], metadata["cmd_args"]) == ({"VAR1": "VAL1"}, "--loglevel=INFO")
    assert metadata["job_settings"] == {"LOG_LEVEL": "INFO"}
    assert (metadata["spider"], metadata["project"]) == (SPIDER, int(project.key))
    assert metadata["running_time"] > 0
    assert metadata["started_by"]
    assert "auth" not in metadata
    assert dict(project.jobs.run(SPIDER).metadata.list())["tags"] == []


def test_the_same_run_is_refused_until_the_first_is_done(project):
    job = project.jobs.run(SPIDER)
    with pytest.raises(DuplicateJobError, match=f"{SPIDER} already scheduled"):
        project.jobs.run(SPIDER)
    assert run(project, 1).key != job.key
    job.finish()
    assert project.jobs.run(SPIDER).metadata.get("state") == "pending"


def test_what_is_wrong_with_a_run_is_reported(project):
    with pytest.raises(BadRequest, match="priority: must be 0 to 4"):
        project.jobs.run(SPIDER, priority=9)


def test_jobs_are_counted_by_state_and_spider(project):
    for n, state in enumerate(["pending", "running", "running", "finished", "finished", "finished"]):
        run(project, n, state)
    project.jobs.run("other", meta={"state": "finished"})
    assert project.jobs.count() == 4
    assert project.jobs.count(state="pending") == 1
    assert project.jobs.count(state=["pending", "running", "finished"]) == 7
    assert project.spiders.get(SPIDER).jobs.count() == 3


def test_jobs_are_listed_newest_first(project):
    jobs = [run(project, n, "finished", add_tag=[f"t{n}"]) for n in range(3)]
    keys = [job.key for job in jobs][::-1]
    found = project.jobs.list()
    assert [job["key"] for job in found] == keys
    assert found[0]["state"] == "finished"
    assert found[0]["spider"] == SPIDER
    assert found[0]["ts"] == found[0]["finished_time"]
    assert found[0]["elapsed"] >= 0
    assert [job["key"] for job in project.jobs.iter(count=1, start=1)] == [keys[1]]
    assert [job["key"] for job in project.jobs.iter(has_tag=["t0", "t2"])] == [keys[0], keys[2]]
    assert [job["key"] for job in project.jobs.iter(lacks_tag=["t0", "t2"])] == [keys[1]]
    assert [job["key"] for job in project.jobs.iter(has_tag="t1", lacks_tag="t2")] == [keys[1]]
    start, end = found[1]["ts"], found[0]["ts"]
    between = [job["key"] for job in found if start <= job["ts"] < end]
    assert [job["key"] for job in project.jobs.iter(startts=start, endts=end)] == between
    assert list(project.jobs.iter(state="running")) == []


def test_fields_of_a_listing_can_be_chosen(project):
    job = run(project, 1, "finished", add_tag=["t"])
    (found,) = project.jobs.list(meta=["units", "completed_by", "absent"])
    assert found["completed_by"]
    assert set(found) == {"key", "state", "ts", "elapsed", "units", "completed_by"}
    assert (found["key"], found["state"], found["units"]) == (job.key, "finished", 1)
    (found,) = project.jobs.list(meta="units", has_tag="t")
    assert found["tags"] == ["t"]
    assert "spider" not in found


def test_summaries_count_all_and_show_the_newest(project):
    assert project.jobs.summary() == [
        {"count": 0, "name": state, "summary": []} for state in ("pending", "running", "finished")
    ]
    keys = [run(project, n, "finished").key for n in range(6)][::-1]
    other = project.jobs.run("other", meta={"state": "running"})
    summaries = {each["name"]: each for each in project.jobs.summary()}
    assert {name: each["count"] for name, each in summaries.items()} == {"pending": 0, "running": 1, "finished": 6}
    assert [job["key"] for job in summaries["finished"]["summary"]] == keys[:5]
    assert project.jobs.summary("running")["summary"][0]["key"] == other.key
    page = project.jobs.summary("finished", start=1, count=2, jobmeta=["units"])
    assert [(job["key"], job["units"]) for job in page["summary"]] == [(key, 1) for key in keys[1:3]]
    assert project.spiders.get(SPIDER).jobs.summary("running")["count"] == 0


def test_the_last_job_of_each_spider(project):
    assert list(project.jobs.iter_last()) == []
    run(project, 1, "finished")
    second = run(project, 2, "finished")
    run(project, 3, "running")
    other = project.jobs.run("other", meta={"state": "finished", "close_reason": "finished", "version": "1.2"})
    last = list(project.jobs.iter_last())
    assert [job["key"] for job in last] == [second.key, other.key]
    assert (last[1]["spider"], last[1]["close_reason"], last[1]["version"]) == ("other", "finished", "1.2")
    assert [job["key"] for job in project.spiders.get(SPIDER).jobs.iter_last()] == [second.key]
    assert [job["key"] for job in project.jobs.iter_last(count=1)] == [second.key]
    assert [job["key"] for job in project.jobs.iter_last(start_after=1)] == [other.key]
    assert [job["key"] for job in project.jobs.iter_last(start=2)] == [other.key]


def test_tags_of_a_job_keep_their_order(project):
    job, other = run(project, 1, add_tag=["tag1"]), run(project, 2, add_tag=["tag2"])
    job.update_tags(add=["tagA1", "tagA2"])
    assert job.metadata.get("tags") == ["tag1", "tagA1", "tagA2"]
    job.update_tags(remove=["tag1", "tagx"])
    assert job.metadata.get("tags") == ["tagA1", "tagA2"]
    job.update_tags(add=["tagB"], remove=["tagA2"])
    assert job.metadata.get("tags") == ["tagA1", "tagB"]
    assert other.metadata.get("tags") == ["tag2"]


def test_tags_of_all_jobs_of_a_spider(project):
    jobs = [run(project, n) for n in range(2)]
    assert project.spiders.get(SPIDER).jobs.update_tags(add=["consumed"]) == 2
    assert [job.metadata.get("tags") for job in jobs] == [["consumed"]] * 2
    assert project.jobs.update_tags(remove=["consumed"], spider=SPIDER) == 2
    assert project.jobs.update_tags(add=["x"], spider="no such spider") == 0


def test_states_follow_each_other(project):
    job = project.jobs.run(SPIDER)
    assert job.start(string="foo", mapping={"alpha": 5}, nil=None) == "pending"
    assert (job.metadata.get("string"), job.metadata.get("mapping"), job.metadata.get("nil")) == (
        "foo",
        {"alpha": 5},
        None,
    )
    assert job.finish(close_reason="no_reason") == "running"
    assert job.metadata.get("close_reason") == "no_reason"
    assert job.metadata.get("completed_by")
    assert job.delete(meta2="val2") == "finished"
    assert (job.metadata.get("state"), job.metadata.get("meta2")) == ("deleted", "val2")
    with pytest.raises(NotFound):
        project.jobs.get(f"{project.key}/1/77").start()
    with pytest.raises(BadRequest, match="deleted and cannot become running"):
        job.start()


def test_cancelling_ends_what_waits_and_asks_what_runs(project):
    waiting, running = run(project, 1), run(project, 2, "running")
    waiting.cancel()
    running.cancel()
    assert waiting.metadata.get("state") == "finished"
    assert running.metadata.get("state") == "running"
    assert running.metadata.get("cancelled_by")
    with pytest.raises(NotFound):
        project.jobs.get(f"{project.key}/1/77").cancel()


def test_several_jobs_are_cancelled_at_once(project):
    jobs = [run(project, n, state) for n, state in enumerate(["running", "pending", "finished"])]
    absent = f"{project.key}/1/77"
    assert project.jobs.cancel([*(job.key for job in jobs), absent]) == {"count": 2}
    waiting = [run(project, n) for n in (10, 11, 12)]
    assert list(project.jobs.cancel(count=2)) == [{"count": 2}]
    assert [job.metadata.get("state") for job in waiting] == ["pending", "finished", "finished"]
    with pytest.raises(BadRequest, match="is not of project"):
        list(project.jobs._project.jobq.apipost("cancel", data='[{"key": "999999/1/1"}]'))


def test_metadata_is_set_merged_and_deleted_by_field(project):
    job = project.jobs.run(SPIDER, meta={"meta1": "data1"})
    job.metadata.set("meta2", 123)
    job.metadata.update({"meta1": "data2", "meta3": None})
    assert [job.metadata.get(name) for name in ("meta1", "meta2", "meta3")] == ["data2", 123, None]
    for _ in range(2):
        job.metadata.delete("meta1")
    assert job.metadata.get("meta1") is None
    assert "meta1" not in dict(job.metadata.list())
    assert job.metadata.get("state") == "pending"
    assert dict(project.jobs.get(f"{project.key}/1/77").metadata.list()) == {}


def test_a_wrong_key_is_refused_as_such(server):
    stranger = ScrapinghubClient("0" * 32, f"{server.url}/api/", endpoint=f"{server.url}/", max_retries=0)
    project = stranger.get_project(1)
    for call in (stranger.projects.list, project.jobs.count, project.spiders.list, project.settings.list):
        with pytest.raises(Unauthorized):
            call()
    with pytest.raises(Unauthorized):
        project.jobs.run(SPIDER)
    stranger.close()
