"""Projects and spiders with the client of the hosted platform, and with the one before it."""

from __future__ import annotations

import pytest
from scrapinghub import BadRequest, Connection, NotFound

SPIDER = "hs-test-spider"


@pytest.fixture
def project(client, project_id):
    return client.get_project(project_id)


def test_projects_are_listed_once_they_have_something(client, project, project_id):
    assert project_id not in client.projects.list()
    project.jobs.run(SPIDER)
    assert project_id in client.projects.list()


def test_projects_with_active_jobs_are_summarized(client, project, project_id):
    def summary(**which):
        return {each["project"]: each for each in client.projects.summary(**which)}.get(project_id)

    for n, state in enumerate(["finished", "finished", "running"]):
        assert summary() is None
        project.jobs.run(SPIDER, job_args={"n": str(n)}, meta={"state": state})
    assert summary() == {"project": project_id, "pending": 0, "running": 1, "finished": 2, "has_capacity": True}
    assert summary(state=["pending"]) is None
    assert summary(state="finished") == summary()


def test_the_summary_of_a_project(hubstorage, project_id):
    project = hubstorage.get_project(project_id)
    project.push_job(SPIDER)
    summary = project.jobsummary()
    assert (summary["project"], summary["pending"], summary["running"]) == (project_id, 1, 0)
    assert summary["has_capacity"] is True


def test_settings_are_set_merged_and_deleted(project):
    assert project.settings.list() == []
    assert project.settings.get("job_runtime_limit") is None
    project.settings.set("job_runtime_limit", 20)
    project.settings.update({"default_job_units": 2, "job_runtime_limit": {"hours": 24}})
    assert project.settings.get("job_runtime_limit") == {"hours": 24}
    assert sorted(project.settings.iter()) == [("default_job_units", 2), ("job_runtime_limit", {"hours": 24})]
    for _ in range(2):
        project.settings.delete("job_runtime_limit")
    assert project.settings.list() == [("default_job_units", 2)]


def test_spiders_have_numbers(project):
    with pytest.raises(NotFound, match="doesn't exist"):
        project.spiders.get(SPIDER)
    job = project.jobs.run(SPIDER)
    spider = project.spiders.get(SPIDER)
    assert job.key.startswith(f"{spider.key}/")
    made = project.spiders.get("made/now", create=1)
    assert made.key != spider.key
    assert project.spiders.get("made/now").key == made.key


def test_spiders_are_listed_with_their_tags(project):
    for name in (SPIDER, "another"):
        project.jobs.run(name)
    spider = project.spiders.get(SPIDER)
    assert spider.list_tags() == []
    spider.update_tags(add=["new", "verified"])
    spider.update_tags(add=["old"], remove=["new", "absent"])
    assert spider.list_tags() == ["verified", "old"]
    assert project.spiders.list() == [
        {"id": SPIDER, "tags": ["verified", "old"], "type": "manual", "version": None},
        {"id": "another", "tags": [], "type": "manual", "version": None},
    ]
    with pytest.raises(BadRequest, match="add"):
        spider.update_tags()


def test_the_jobs_of_a_spider_are_its_own(project):
    job = project.jobs.run(SPIDER)
    project.jobs.run("another")
    spider = project.spiders.get(SPIDER)
    assert [each["key"] for each in spider.jobs.iter(state="pending")] == [job.key]
    assert spider.jobs.get(job.key).metadata.get("spider") == SPIDER


def test_the_legacy_client_schedules_lists_and_deletes(server, project_id):
    project = Connection(server.platform_key, url=f"{server.url}/api/")[project_id]
    key = project.schedule(SPIDER, category="new")
    job = project.job(key)
    assert (job.info["state"], job.info["spider_args"]) == ("pending", {"category": "new"})
    assert job.update(add_tag="seen") == 1
    assert [each.id for each in project.jobs(has_tag="seen")] == [key]
    assert project.jobs(state="pending").count() == 1
    assert job.stop()
    assert job.delete() == 1
    assert project.jobs().count() == 0
    assert [each["id"] for each in project.spiders()] == [SPIDER]
