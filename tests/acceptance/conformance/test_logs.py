"""Logs, as the clients write and read them."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture
def logs(client, project_id):
    logs = client.get_job(f"{project_id}/1/1").logs
    logs.debug("first")
    logs.info("second", spider="s")
    logs.warn("third")
    logs.error("fourth \u00e9")
    logs.log("fifth", level=logging.CRITICAL, ts=1_000)
    logs.flush()
    return logs


def test_lines_come_back_in_order_with_their_level(logs):
    found = logs.list()
    assert [line["message"] for line in found] == ["first", "second", "third", "fourth \u00e9", "fifth"]
    assert [line["level"] for line in found] == [10, 20, 30, 40, 50]
    assert found[1]["spider"] == "s"
    assert found[4] == {"message": "fifth", "level": 50, "time": 1_000}


def test_offset_level_and_filters(logs):
    assert [line["message"] for line in logs.list(offset=3)] == ["fourth \u00e9", "fifth"]
    assert [line["level"] for line in logs.list(level="WARNING")] == [30, 40, 50]
    assert [line["level"] for line in logs.list(level="INFO", filter=[("message", "contains", ["ir"])])] == [30]
    assert [line["level"] for line in logs.list(level="INFO", count=1)] == [20]


def test_one_line(logs):
    assert logs.get(2)["message"] == "third"


def test_keys_in_json(hubstorage, project_id, server):
    logs = hubstorage.get_job(f"{project_id}/1/1").logs
    logs.info("a")
    logs.flush()
    assert [set(line) for line in logs.iter_values()] == [{"time", "level", "message"}]
    hubstorage.use_msgpack = False
    assert [line["_key"] for line in logs.iter_values()] == [f"{project_id}/1/1/0"]


def test_stats_count_levels_and_bytes(logs):
    assert logs.stats() == {
        "counts": {"10": 1, "20": 1, "30": 1, "40": 1, "50": 1},
        "totals": {"input_values": 5, "input_bytes": 6 + 7 + 6 + 10 + 6},
    }


def test_append_mode_goes_on_behind_the_last_line(hubstorage, project_id):
    logs = hubstorage.get_job(f"{project_id}/1/1").logs
    logs.info("a")
    logs.info("b")
    logs.close()
    again = type(logs)(hubstorage, f"{project_id}/1/1", appendmode=True)
    assert again.batch_write_start() == 2
    again.info("c")
    again.close()
    assert [line["message"] for line in logs.iter_values()] == ["a", "b", "c"]


def test_logs_of_a_project_and_a_spider(hubstorage, project_id):
    for spider in (1, 2):
        logs = hubstorage.get_job(f"{project_id}/{spider}/1").logs
        logs.info(f"of {spider}")
        logs.flush()
    project = hubstorage.get_project(project_id)
    assert [line["message"] for line in project.logs.list()] == ["of 1", "of 2"]
    assert [line["message"] for line in project.logs.list(2)] == ["of 2"]
