"""Request records, as the clients write and read them."""

from __future__ import annotations

import pytest
from scrapinghub.hubstorage.utils import millitime

TIME = 1_700_000_000_000


@pytest.fixture
def requests(client, project_id):
    requests = client.get_job(f"{project_id}/1/1").requests
    first = requests.add(url="http://a/", status=200, method="GET", rs=1337, duration=5, ts=TIME, parent=None, fp=None)
    requests.add(url="http://a/b", status=404, method="GET", rs=400, duration=1, ts=TIME + 1, parent=first, fp="1234")
    requests.flush()
    return requests


def test_absent_parents_and_fingerprints_are_left_out(requests):
    assert requests.list() == [
        {"url": "http://a/", "status": 200, "method": "GET", "rs": 1337, "duration": 5, "time": TIME},
        {
            "url": "http://a/b",
            "status": 404,
            "method": "GET",
            "rs": 400,
            "duration": 1,
            "time": TIME + 1,
            "parent": 0,
            "fp": "1234",
        },
    ]


def test_filter_get_and_keys(requests):
    assert [each["url"] for each in requests.list(filter=[("status", ">=", [400])])] == ["http://a/b"]
    assert requests.get(1)["fp"] == "1234"
    assert [each["_key"].rpartition("/")[2] for each in requests.list(meta=["_key"])] == ["0", "1"]
    assert abs(requests.list(meta=["_ts"])[0]["_ts"] - millitime()) < 60_000


def test_stats(requests):
    stats = requests.stats()
    assert stats["counts"] == {"url": 2, "status": 2, "method": 2, "rs": 2, "duration": 2, "parent": 1, "fp": 1}
    assert stats["totals"]["input_values"] == 2
