"""Calendar of a week, beside the next runs of each expression one after the other."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from scrapy_ext.api.platform.common_schedules import next_times
from scrapy_ext.api.platform.periodic import PeriodicJob, Task
from scrapy_ext.server.ui.schedule_week import week_of

#: A Wednesday, in a week with the first of a month.
NOW = datetime(2026, 7, 29, 12, 30, tzinfo=timezone.utc)


def schedule(number: int, cron: str, name: str = "books") -> PeriodicJob:
    task = Task(name=name)
    return PeriodicJob(
        id=number, project=1, disabled=False, type="", description="", cron=cron, addtags=[], tasks=[task]
    )


@pytest.mark.parametrize(
    "cron",
    [
        "30 4 * * *",
        "15 * * * *",
        "* 3 * * *",
        "* * * * 0",
        "0 0 1 * *",
        "0 6 1 * 5",
        "0 6 * 8 *",
        "0 0 29 2 *",
        "0 0 31 12 3",
    ],
)
def test_each_day_has_as_many_runs_as_the_expression_has_times(cron: str) -> None:
    start = NOW.replace(hour=0, minute=0)
    times = next_times([cron], start - timedelta(minutes=1), 10_080)
    days = [start + timedelta(days=each) for each in range(7)]
    week = week_of([schedule(1, cron)], int(NOW.timestamp() * 1000))
    assert list(week.days) == [int(day.timestamp()) * 1000 for day in days]
    assert list(week.runs) == [sum(time.date() == day.date() for time in times) for day in days]


def test_schedules_of_the_same_tasks_share_a_row_and_rows_are_in_the_order_of_their_times() -> None:
    weekdays = [schedule(each, f"15 6 * * {each}") for each in range(1, 6)]
    many = [schedule(100 + hour, f"0 {hour} * * *", "often") for hour in range(7, 24)]
    wrong = schedule(99, "no cron", "wrong")
    week = week_of([*weekdays, *many, schedule(50, "5 5 * * *", "first"), wrong], int(NOW.timestamp() * 1000))
    assert [row.label for row in week.rows] == ["first", "books", "often"]
    books = [[(each.schedule, each.times) for each in cell.entries] for cell in week.rows[1].days]
    assert books == [[(3, "06:15")], [(4, "06:15")], [(5, "06:15")], [], [], [(1, "06:15")], [(2, "06:15")]]
    cell = week.rows[2].days[0]
    assert ([each.times for each in cell.entries], cell.more) == ([f"{hour:02}:00" for hour in range(7, 13)], 11)
    assert [each.has_ended for each in cell.entries] == [True] * 6
    assert not any(each.has_ended for each in week.rows[0].days[1].entries)
