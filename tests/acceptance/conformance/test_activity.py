"""Activity, as the clients write and read it."""

from __future__ import annotations

import pytest


@pytest.fixture
def activity(client, project_id):
    return client.get_project(project_id).activity


def events(project_id, *names):
    return [{"event": f"job:{name}", "job": f"{project_id}/1/1", "user": "u"} for name in names]


def test_events_come_back_newest_first(activity, project_id):
    posted = events(project_id, "started", "completed", "cancelled")
    activity.add(posted[:1])
    activity.add(posted[1:])
    assert activity.list() == posted[::-1]
    assert activity.list(count=2) == posted[:0:-1]


def test_filter_and_meta(activity, project_id, client):
    activity.add(events(project_id, "started", "completed", "started"))
    assert len(activity.list(filter=[("event", "=", ["job:started"])])) == 2
    assert activity.list(filter='["event","contains",["compl"]]') == events(project_id, "completed")
    (newest,) = activity.list(count=1, meta=["_ts"])
    assert abs(newest["_ts"] - client._hsclient.server_timestamp()) < 60_000


def test_the_client_underneath(hubstorage, project_id):
    project = hubstorage.get_project(project_id)
    project.activity.add({"event": "a"})
    project.activity.add(event="b", n=1)
    assert list(project.activity.list()) == [{"event": "b", "n": 1}, {"event": "a"}]
