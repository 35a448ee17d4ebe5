"""Periodic jobs from the command line."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest

from scrapy_ext.compatibility.python import datetime_of_iso
from tests.support.terminal_commands import Platform, plain


def test_a_schedule_is_made_shown_changed_paused_and_deleted(platform: Platform) -> None:
    (made,) = platform.lines(
        "schedule", "add", "30 4 * * *", "books", "-a", "category=travel", "--tag", "nightly", "--priority", "3",
        "--description", "every night",
    )  # fmt: skip
    number = str(made["id"])
    (task,) = made["tasks"]
    assert (task["name"], task["priority"], task["spider_args"]) == ("books", 3, {"category": "travel"})
    assert (made["addtags"], made["disabled"], made["description"]) == (["nightly"], False, "every night")
    assert made["next"].endswith("Z")
    following = datetime_of_iso(made["next"])
    assert (following.hour, following.minute) == (4, 30)
    assert dt.timedelta() < following - dt.datetime.now(dt.timezone.utc) <= dt.timedelta(days=1)
    assert platform.lines("schedule") == platform.lines("schedule", "show", number) == [made]

    (edited,) = platform.lines(
        "schedule", "edit", number, "--cron", "0 5 * * 1", "--add-tag", "eu", "--remove-tag", "nightly"
    )
    assert (edited["cron"], edited["addtags"], edited["tasks"]) == ("0 5 * * 1", ["eu"], made["tasks"])
    (paused,) = platform.lines("schedule", "pause", number)
    assert (paused["disabled"], paused["next"]) == (True, None)
    (resumed,) = platform.lines("schedule", "resume", number)
    assert resumed == edited
    assert "add --yes" in platform.refused("schedule", "delete", number)
    assert platform.run("schedule", "delete", number, "--yes").returncode == 0
    assert platform.lines("schedule") == []


def test_a_script_is_scheduled_with_its_arguments(platform: Platform) -> None:
    (made,) = platform.lines("schedule", "add", "0 0 1 * *", "py:report.py", "--paused", "--", "--days", "7")
    assert (made["type"], made["disabled"], made["next"]) == ("script", True, None)
    assert made["tasks"][0]["script_args"] == "--days 7"
    tasks: list[Any] = [{"name": "py:other.py"}]
    (edited,) = platform.lines("schedule", "edit", str(made["id"]), "--tasks", '[{"name": "py:other.py"}]')
    assert [task["name"] for task in edited["tasks"]] == [tasks[0]["name"]]


def test_a_terminal_gets_a_table_with_the_next_runs(platform: Platform) -> None:
    platform.lines("schedule", "add", "30 4 * * *", "books", "-a", "category=travel")
    platform.lines("schedule", "add", "0 0 29 2 *", "never", "--paused")
    text = plain(platform.terminal("schedule", columns=140))
    assert re.search(r"30 4 \* \* \* +\d{4}-\d\d-\d\d 04:30 +books category=travel", text)
    assert f"periodic jobs of project {platform.project}: 2" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "*/5 * * * *", "books"), "ranges, steps and lists are not supported"),
        (("add", "* * *", "books"), "must have five fields"),
        (("add", "0 0 * * *", "books", "--", "x"), "give a spider -a"),
        (("edit", "999", "--cron", "0 0 * * *"), "has no periodic job 999"),
        (("edit", "999"), "no change is given"),
        (("pause", "999"), "has no periodic job 999"),
        (("show", "999"), "has no periodic job 999"),
        (("delete", "999", "--yes"), "has no periodic job 999"),
    ],
)
def test_what_cannot_be_scheduled_is_reported_in_one_line(
    platform: Platform, arguments: tuple[str, ...], message: str
) -> None:
    assert message in platform.refused("schedule", *arguments)
    assert platform.lines("schedule") == []
