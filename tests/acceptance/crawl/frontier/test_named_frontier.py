"""A named frontier that many jobs work on keeps their requests, and nothing about the jobs that are finished."""

from __future__ import annotations

import pytest

from tests.support.crawls import Project

SPIDERS = """
import scrapy

class Daily(scrapy.Spider):
    name = "daily"
    custom_settings = {"EXTRACT_API_ENABLED": False, "FRONTIER_NAME": "daily"}

    async def start(self):
        yield scrapy.Request(f"data:,{self.day}")

    def parse(self, response):
        yield {"page": response.text}
"""


@pytest.mark.long
def test_finished_jobs_leave_no_journal_in_it(tmp_path) -> None:
    project = Project(tmp_path / "project", SPIDERS)
    for day in ("monday", "tuesday"):
        assert project.crawl("daily", "-a", f"day={day}").reason == "finished"
    slots = project.stored(lambda client, project: client.frontier.slots(project, "daily"))
    assert [slot for slot in slots if not slot.isdigit()] == ["assignment"]
    assert [project.items(f"1/1/{job}") for job in (1, 2)] == [[{"page": "monday"}], [{"page": "tuesday"}]]
    # The pages that were crawled are known still.
    again = project.crawl("daily", "-a", "day=monday")
    assert (again.reason, again.stat("item_scraped_count")) == ("finished", 0)
