"""Jobs that cannot start: why is in their log, and in their close reason."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform.error_groups import group_errors
from tests.support.running_jobs import Platform

FAILING = {
    "an unknown spider": ("nobody", {}, "spider_not_found", "There is no spider 'nobody' in this project."),
    "a script that is not there": ("py:nothing.py", {}, "script_not_found", "There is no script 'nothing.py'"),
    "a spider that raises": ("raises", {}, "failed", "RuntimeError: the spider's own trouble"),
    "an argument that is missing": ("needs", {}, "failed", "missing 1 required positional argument: 'category'"),
    "a settings module that is none": (
        "quick",
        {"environment": {"SCRAPY_SETTINGS_MODULE": "no.such.settings"}},
        "failed",
        "No module named 'no'",
    ),
    "an add-on that is none": (
        "quick",
        {"job_settings": {"ADDONS": {"no.such.Addon": 1}}},
        "failed",
        "No module named 'no'",
    ),
    "a setting of a wrong type": (
        "quick",
        {"job_settings": {"FRONTIER_SLOTS": "many"}},
        "failed",
        "FRONTIER_SLOTS must be of type int, got 'many'",
    ),
    "a scheduler that is none": ("quick", {"job_settings": {"SCHEDULER": "no.Such"}}, "failed", "No module named 'no'"),
    "a script with an error": ("py:hello.py", {"cmd_args": "/nowhere"}, "failed", "KeyError: 'COLOUR'"),
}


@pytest.mark.parametrize("case", FAILING)
@pytest.mark.long(keep=2)
async def test_a_start_that_fails_is_reported(platform: Platform, case: str) -> None:
    spider, fields, reason, message = FAILING[case]
    job = await platform.run(spider, **fields, **({} if spider.startswith("py:") else {"case": case}))
    assert await platform.reason(job) == reason
    records = await platform.records("logs", job)
    assert any(message in record["message"] and record["level"] >= 40 for record in records), records


async def test_an_exception_before_the_crawl_is_one_error_with_its_own_title(platform: Platform) -> None:
    job = await platform.run("quick", job_settings={"ADDONS": {"no.such.Addon": 1}})
    assert await platform.reason(job) == "failed"
    records = await platform.records("logs", job)
    (message,) = [record["message"] for record in records if record["level"] >= 40]
    assert message.startswith("Traceback (most recent call last):\n  File ")
    assert [group.title for group in group_errors([(0, 0, message)])] == ["ModuleNotFoundError: No module named 'no'"]


async def test_an_exception_of_a_spider_that_is_made_is_one_error_with_its_own_title(platform: Platform) -> None:
    job = await platform.run("raises")
    assert await platform.reason(job) == "failed"
    (message,) = [record["message"] for record in await platform.records("logs", job) if record["level"] >= 40]
    # As asyncio reports it.
    assert "ERROR asyncio: Task exception was never retrieved\nfuture: " in message
    assert [group.title for group in group_errors([(0, 0, message)])] == ["RuntimeError: the spider's own trouble"]
