"""Every public method of the hosted platform's client, called once and more, as its documentation shows them.

What each gives is held by the files of its resource; here none is forgotten, also of a later version.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest
from scrapinghub import APIError, Connection, HubstorageClient, ScrapinghubClient
from scrapinghub.client import activity, collections, frontiers, items, jobs, logs, projects, requests, samples, spiders
from scrapinghub.hubstorage import activity as hs_activity
from scrapinghub.hubstorage import collectionsrt, frontier, job, jobq, project, resourcetype

#: What no server answers: helpers of the classes themselves.
NOT_CALLED = {"ResourceType.apirequest", "ResourceType.apidelete", "ResourceType.apipost", "ResourceType.apiget"}
MODULES = (activity, collections, frontiers, items, jobs, logs, projects, requests, samples, spiders)
BENEATH = (hs_activity, collectionsrt, frontier, job, jobq, project, resourcetype)
#: Of the client before these: what is about extraction by templates, and reports that jobs had then.
GONE = {"Project.autoscraping_project_slybot", "Project.autoscraping_spider_properties", "Job.add_report"}


class Calls:
    """Notes which methods of some classes are called, by the class that has them in its own body."""

    def __init__(self, classes: list[type], monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: set[str] = set()
        for each in classes:
            for name, function in list(vars(each).items()):
                if inspect.isfunction(function) and not name.startswith("_"):
                    self.left.add(f"{each.__name__}.{name}")
                    monkeypatch.setattr(each, name, self._noting(f"{each.__name__}.{name}", function))

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def noted(*arguments: Any, **named: Any) -> Any:
            self.left.discard(name)
            return function(*arguments, **named)

        return noted


def classes_of(*modules: Any) -> list[type]:
    return [
        each
        for module in modules
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__
    ]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Calls]]:
    return lambda classes: Calls(classes, monkeypatch)


def test_of_the_client(calls, client: ScrapinghubClient, project_id: int):
    noted = calls([*classes_of(*MODULES), ScrapinghubClient])
    own = client.get_project(project_id)
    first = own.jobs.run("spider", meta={"state": "running"})
    assert client.projects.get(project_id).key == str(project_id)
    assert project_id in list(client.projects.iter())
    assert project_id in client.projects.list()
    assert [each["running"] for each in client.projects.summary() if each["project"] == project_id] == [1]
    own.settings.set("a", 1)
    _a_job(client.get_job(first.key))
    _jobs(own)
    _spiders(own)
    _a_frontier(own.frontiers)
    _collections(own.collections)
    own.activity.add([{"event": "job:started", "job": first.key, "user": "u"}])
    assert next(own.activity.iter(count=1))["user"] == "u"
    client.close()
    assert noted.left == set()


def _a_job(own):
    own.items.write({"n": 0})
    for level in ("debug", "info", "warn", "warning", "error"):
        getattr(own.logs, level)(level)
    own.logs.log("critical", level=50)
    own.requests.add(url="http://a/", status=200, method="GET", rs=1, duration=1, ts=1)
    own.samples.write([1, 2])
    own.close_writers()  # which are not those of its resources
    own.items.flush()
    for resource in (own.items, own.logs, own.requests, own.samples):
        resource.close()
    for resource, number in ((own.items, 1), (own.logs, 6), (own.requests, 1), (own.samples, 1)):
        assert len(list(resource.iter())) == len(resource.list()) == number
        assert resource.get(0)
    assert own.logs.batch_write_start() == 0
    assert [len(part) for part in own.items.list_iter(chunksize=2)] == [1]
    assert own.items.stats()["totals"]["input_values"] == 1
    own.metadata.set("k", 1)
    own.metadata.update({"l": 2})
    assert (own.metadata.get("k"), dict(own.metadata.iter())["l"]) == (1, 2)
    own.metadata.delete("k")
    assert dict(own.metadata.list()).get("k") is None


def _jobs(own):
    waiting = own.jobs.run("spider", job_args={"n": "1"}, add_tag="t")
    assert own.jobs.count(state="pending") == 1
    assert next(own.jobs.iter(state="pending"))["key"] == waiting.key
    assert own.jobs.list(state="pending", count=1)[0]["tags"] == ["t"]
    assert own.jobs.summary("pending")["count"] == 1
    assert own.jobs.update_tags(add=["u"], spider="spider") == 2
    waiting.update_tags(remove=["t"])
    assert own.jobs.get(waiting.key).metadata.get("tags") == ["u"]
    assert waiting.start() == "pending"
    assert waiting.update("running", k=1) == "running"
    assert waiting.finish() == "running"
    assert next(own.jobs.iter_last())["key"] == waiting.key
    assert waiting.delete() == "finished"
    last = own.jobs.run("spider", job_args={"n": "2"})
    last.cancel()
    assert own.jobs.cancel(keys=[last.key]) == {"count": 0}


def _spiders(own):
    assert own.spiders.list()[0]["id"] == next(own.spiders.iter())["id"] == "spider"
    spider = own.spiders.get("spider")
    spider.update_tags(add=["t"])
    assert spider.list_tags() == ["t"]


def _a_frontier(all_frontiers):
    slot = all_frontiers.get("f").get("0")
    slot.q.add([{"fp": "a"}])
    slot.flush()
    slot.f.add(["b"])
    all_frontiers.get("f").flush()
    all_frontiers.flush()
    assert (slot.newcount, all_frontiers.get("f").newcount, all_frontiers.newcount) == (2, 2, 2)
    assert all_frontiers.list() == list(all_frontiers.iter()) == ["f"]
    assert all_frontiers.get("f").list() == list(all_frontiers.get("f").iter()) == ["0"]
    assert slot.f.list() == list(slot.f.iter()) == ["a", "b"]
    assert slot.q.list() == list(slot.q.iter(mincount=1))
    slot.q.delete([batch["id"] for batch in slot.q.list()])
    assert slot.q.list() == []
    slot.delete()
    all_frontiers.close()


def _collections(own):
    stores = [
        own.get("s", "n"),
        own.get_store("n"),
        own.get_cached_store("n"),
        own.get_versioned_store("n"),
        own.get_versioned_cached_store("n"),
    ]
    for store in stores:
        store.set({"_key": "a", "n": 1})
    assert len(own.list()) == len(list(own.iter())) == 4
    writer = store.create_writer()
    writer.write({"_key": "b"})
    writer.close()
    assert store.get("a") == {"n": 1}
    assert [each["_key"] for each in store.iter()] == [each["_key"] for each in store.list()] == ["a", "b"]
    assert store.count() == 2
    store.delete("a")
    store.truncate()
    assert own.list() == []


def test_of_the_client_beneath(calls, hubstorage: HubstorageClient, project_id: int):
    noted = calls([*classes_of(*BENEATH), HubstorageClient])
    assert hubstorage.server_timestamp() > 0
    own = hubstorage.get_project(project_id)
    first = hubstorage.push_job(project_id, "spider", state="running")
    second = own.push_job("spider")
    _a_job_beneath(hubstorage.get_job(first.key))
    _the_queue_beneath(own, first, second)
    _project_data_beneath(own)
    _frontier_beneath(own.frontier)
    _collections_beneath(own.collections)
    hubstorage.close()
    assert noted.left - NOT_CALLED == set()


def _a_job_beneath(own):
    own.update_metadata(a=1)
    assert (own.metadata["a"], own.metadata.liveget("a"), bool(own.metadata.authtoken())) == (1, 1, True)
    own.items.write({"n": 0})
    own.items.write({"n": 1})
    for level in ("debug", "info", "warn", "warning", "error"):
        getattr(own.logs, level)(level)
    own.requests.add("http://a/", 200, "GET", 1, None, 1, 1)
    own.samples.write([1])
    with pytest.raises(NotImplementedError):
        own.samples.stats()
    own.items.flush()
    own.close_writers()
    assert [each["n"] for each in own.items.iter_values()] == [0, 1]
    assert len(list(own.items.iter_json())) == len(list(own.items.list())) == 2
    assert b"".join(own.items.iter_msgpack()).count(f"{own.key}/".encode()) == 2
    assert own.items.get(1)["n"] == 1
    assert own.items.stats()["totals"]["input_values"] == 2


def _the_queue_beneath(own, first, second):
    queue = own.jobq
    assert [each["key"] for each in queue.list(state=["pending", "running"])] == [second.key, first.key]
    assert queue.summary("pending")["count"] == 1
    assert [each["key"] for each in queue.jobsummary([first.key], ["state"])] == [first.key]
    assert queue.start()["key"] == second.key
    second.request_cancel()
    assert own.get_job(second.key).metadata["cancelled_by"]
    assert [each["prevstate"] for each in queue.finish(first)] == ["running"]
    assert [each["prevstate"] for each in queue.update(second, state="finished")] == ["running"]
    second.purged()
    assert second.metadata["state"] == "deleted"
    with pytest.warns(Warning, match="deprecated"):
        assert [each.key for each in own.get_jobs()] == [first.key]
    assert own.jobsummary()["finished"] == 1
    assert [each["key"] for each in own.spiders.lastjobsummary()] == [first.key]
    assert [each["key"] for each in own.spiders.lastjobsummary(1, count=1)] == [first.key]


def _project_data_beneath(own):
    assert own.ids.spider("spider") == 1
    for resource, number in ((own.jobs, 2), (own.items, 2), (own.logs, 5), (own.samples, 1)):
        assert len(list(resource.list())) == len(list(resource.list(1))) == number
    own.settings["k"] = 1
    own.settings.save()
    own.settings.expire()
    assert own.settings["k"] == 1
    own.activity.add(event="e", n=1)
    own.activity.post([{"n": 2}, {"n": 3}])
    assert [each.get("n") for each in own.activity.list(count=3)] == [3, 2, 1]
    assert next(own.activity.get(count=1)) == {"n": 3}


def _frontier_beneath(own):
    own.add("f", "0", [{"fp": "a"}, {"fp": "b"}])
    own.flush()
    assert own.newcount == 2
    batches = list(own.read("f", "0", mincount=1))
    assert [fp for fp, _ in batches[0]["requests"]] == ["a", "b"]
    own.delete("f", "0", [batch["id"] for batch in batches])
    own.delete_slot("f", "0")
    own.close()


def _collections_beneath(own):
    made = [
        own.new_collection("s", "n"),
        own.new_store("n"),
        own.new_cached_store("n"),
        own.new_versioned_store("n"),
        own.new_versioned_cached_store("n"),
    ]
    for collection in made:
        collection.set({"_key": "a", "n": 1})
        assert (collection.get("a"), collection.count()) == ({"n": 1}, 1)
    one = made[0]
    assert [each["n"] for each in one.iter_values()] == [1]
    assert len(list(one.iter_json())) == len(list(own.iter_json("s", "n"))) == 1
    assert b"".join(own.iter_msgpack("s", "n")).endswith(b"_key\xa1a")
    assert next(own.get("s", "n", meta="_key"))["_key"] == "a"
    writer = one.create_writer()
    writer.write({"_key": "b"})
    writer.close()
    own.set("s", "n", {"_key": "c"})
    assert own.count("s", "n") == 3
    one.delete("a")
    own.delete("s", "n", "b")
    assert [each["_key"] for each in own.get("s", "n", meta="_key")] == ["c"]
    one.truncate()
    own.truncate("n")
    assert own.count("s", "n") == 0


def test_of_the_oldest_client(calls, server, hubstorage, project_id):
    legacy = inspect.getmodule(Connection.__mro__[1])
    noted = calls(classes_of(SimpleNamespace(**vars(legacy))))
    connection = Connection(server.platform_key, url=f"{server.url}/api/")
    own = connection[project_id]
    key = own.schedule("spider", arg="1")
    stored = hubstorage.get_job(key)
    for n in range(3):
        stored.items.write({"n": n})
        stored.logs.info(f"line {n}")
    stored.close_writers()
    assert project_id in connection.project_ids()
    with pytest.warns(UserWarning, match="deprecated"):
        assert project_id in connection.project_names()
    job = own.job(key)
    assert [item["n"] for item in job.items()] == [0, 1, 2]
    assert list(job.items(offset=1, count=1, meta="_key")) == [{"n": 1, "_key": f"{key}/1"}]
    assert [line["message"] for line in job.log(count=2)] == ["line 0", "line 1"]
    assert [each["id"] for each in own.spiders()] == ["spider"]
    assert own.jobs(job=key).count() == 1
    assert own.jobs(job=key).update(add_tag="t") == 1
    assert job.update(add_tag="u") == 1
    assert own.job(key).info["tags"] == ["t", "u"]
    assert job.stop()
    own.jobs(spider="spider").stop()
    own.jobs(spider="spider").delete()
    assert job.delete() == 0
    with pytest.raises(APIError, match="Not found"):
        job.add_report("k", "text")
    assert noted.left - GONE == set()
