"""The limits of the extraction service, compared with one another and with Scrapy's."""

from __future__ import annotations

from scrapy.settings.default_settings import DOWNLOAD_TIMEOUT

from scrapy_ext.server.config.extraction_limits import ServiceLimits

LIMITS = ServiceLimits()


def test_a_crawl_waits_longer_than_the_service_works_so_that_it_gets_the_answer() -> None:
    assert LIMITS.request < DOWNLOAD_TIMEOUT


def test_a_request_that_waited_for_its_domain_has_the_time_of_a_whole_fetch() -> None:
    assert LIMITS.domain_patience + LIMITS.fetch <= LIMITS.request
    assert LIMITS.domain_patience + LIMITS.navigate + LIMITS.load + LIMITS.settle <= LIMITS.request
