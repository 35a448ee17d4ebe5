"""Navigation among jobs: where a page of openings leads."""

from __future__ import annotations

from zyte_common_items import JobPostingNavigation, JobPostingNavigationMetadata

from scrapy_ext.server.extraction.auto.lists import items as list_items
from scrapy_ext.server.extraction.auto.lists.jobs import jobs_on
from scrapy_ext.server.extraction.auto.navigation.pagination import Pagination
from scrapy_ext.server.extraction.auto.page.page import Page


def extract(page: Page) -> JobPostingNavigation:
    """The links to jobs and to the next page. Only ``url`` and ``metadata`` are sure to be there."""
    pagination = Pagination(page)
    return JobPostingNavigation(
        url=page.url,
        items=list_items.requests(jobs_on(page)),
        nextPage=pagination.next,
        pageNumber=pagination.number,
        metadata=list_items.metadata().cast(JobPostingNavigationMetadata),
    )
