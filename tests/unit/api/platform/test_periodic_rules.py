"""Schedules: how often a cron expression runs, and which hour has least to do."""

from __future__ import annotations

import msgspec
import pytest

from scrapy_ext.api.platform.cron import Cron
from scrapy_ext.api.platform.periodic import PeriodicJob as Schedule
from scrapy_ext.api.platform.periodic import Task, schedule_faults, suggested_hour, type_of


def of_an_hour(cron: str, hour: int) -> float:
    return Cron.parse(cron).runs_by_hour()[hour]


def test_a_run_counts_in_its_hour():
    assert of_an_hour("30 4 * * *", 4) == 1
    assert sum(Cron.parse("30 4 * * *").runs_by_hour()) == 1
    assert Cron.parse("* * * * *").runs_by_hour() == [60] * 24
    assert Cron.parse("0 * * * *").runs_by_hour() == [1] * 24


def test_runs_on_some_days_count_less():
    daily, weekly, monthly, yearly = (of_an_hour(f"0 4 {days}", 4) for days in ("* * *", "* * 1", "1 * *", "1 1 *"))
    assert daily > weekly > monthly > yearly > 0
    assert of_an_hour("0 4 1 * 1", 4) == pytest.approx(weekly + monthly)


def test_the_hour_with_least_to_do_is_suggested():
    assert suggested_hour({}) == 0
    assert suggested_hour({"0 0 * * *": 1}) == 2  # not beside the busy one
    busy = {f"0 {hour} * * *": 10 for hour in range(24) if hour != 7}
    assert suggested_hour(busy) == 7
    assert suggested_hour({**busy, "0 7 * * *": 11, "0 9 * * *": 9}) == 9
    assert suggested_hour({**busy, "* * * * *": 5}) == 7


def test_all_faults_are_reported():
    tasks = [Task(name="", priority=7), Task(name="py:a")]
    schedule = Schedule(
        id=1,
        project=1,
        disabled=False,
        type="",
        description="x" * 3000,
        cron="a 25 * *  1-2",
        addtags=[""],
        tasks=tasks,
    )
    faults = [(fault.field, fault.rule) for fault in schedule_faults(msgspec.to_builtins(schedule))]
    assert [field for field, _ in faults] == [
        *["cron"] * 3,
        "tasks",
        "tasks.name",
        "tasks.priority",
        "addtags",
        "description",
    ]
    assert type_of(tasks[1:]).value == "script"
