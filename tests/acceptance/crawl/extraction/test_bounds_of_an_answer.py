"""Scrapy's settings and meta keys bound the time of an answer and the size of its page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_ext.compatibility.scrapy import DownloadCancelledError
from tests.support import faulty_service
from tests.support.crawls import Crawl
from tests.support.faulty_service import NEVER, FaultyService, page
from tests.support.planned_crawls import IMPATIENT, Plan

LARGE = 24 * 2**20
LIMIT = 1_000_000
#: What a connection holds on its way, on both ends.
BUFFERS = 12 * 2**20
ONCE = {**IMPATIENT, "network": 1, "unexpected-answer": 1}


def asked(name: str, **meta) -> dict:
    return {"url": f"https://{name}.example/", "meta": meta}


@pytest.fixture(scope="module")
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


@pytest.fixture(scope="module")
def ended(service, tmp_path_factory) -> tuple[Plan, Crawl]:
    service.plays("silent.example", NEVER)
    service.plays("silent-twice.example", NEVER)
    service.plays("large.example", page(b"x" * LARGE))
    service.plays("large-in-browser.example", page(browserHtml="x" * LARGE))
    service.plays("just.example", page(b"x" * LIMIT))
    service.plays("over.example", page(b"x" * (LIMIT + 1)))
    service.plays("allowed.example", page(b"x" * 2 * LIMIT))
    service.plays("small.example", page(b"x" * 2000))
    settings = {
        "DOWNLOAD_TIMEOUT": 5,
        "DOWNLOAD_MAXSIZE": LIMIT,
        "EXTRACT_API_RETRY_POLICY": ONCE,
    }
    plan = Plan(tmp_path_factory.mktemp("bounds"), service, settings)
    wave = [
        asked("silent"),
        asked("silent-twice", download_timeout=0.5, extract_api_retry_policy={"network": 2}),
        asked("large", download_timeout=60),
        asked("large-in-browser", extract_api={"browserHtml": True}, download_timeout=60),
        asked("just", download_timeout=60),
        asked("over", download_timeout=60),
        asked("allowed", download_maxsize=3 * LIMIT, download_timeout=60),
        asked("small", download_maxsize=1000),
    ]
    return plan, plan.crawl([asked("there", download_timeout=60)], wave)


def outcome(ended, name: str):
    return ended[0].outcome(f"https://{name}.example/")


@pytest.mark.parametrize(("name", "attempts"), [("silent", 1), ("silent-twice", 2)])
def test_an_answer_that_does_not_come_is_given_up_after_the_timeout(ended, service, name, attempts):
    """The service would never have answered."""
    failed = outcome(ended, name)
    assert failed.error == "UnreachableServiceError"
    assert failed.ambiguous
    assert service.count(f"{name}.example") == attempts


def test_the_timeout_of_a_request_is_its_own(ended, service):
    first, second = service.of("silent-twice.example")
    assert second.at - first.at >= 0.5
    assert "0.5 s" in outcome(ended, "silent-twice").message


@pytest.mark.parametrize("name", ["large", "large-in-browser", "over", "small"])
def test_a_page_that_is_too_large_is_cancelled_as_in_scrapy_and_not_asked_for_again(ended, service, name):
    failed = outcome(ended, name)
    assert DownloadCancelledError.__name__ in failed.kinds
    assert service.count(f"{name}.example") == 1


@pytest.mark.parametrize("name", ["large", "large-in-browser"])
def test_a_page_that_is_too_large_is_not_read_to_its_end(ended, service, name):
    (post,) = service.of(f"{name}.example")
    assert post.broken
    assert post.written < BUFFERS


def test_the_size_is_that_of_the_page_and_not_of_its_base64(ended):
    assert outcome(ended, "just").size == LIMIT


def test_a_request_may_have_a_limit_of_its_own(ended):
    assert outcome(ended, "allowed").size == 2 * LIMIT
    assert outcome(ended, "small").error is not None


def test_the_crawl_ends_well(ended):
    crawl = ended[1]
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
