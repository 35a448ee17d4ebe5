"""Budgets and limits of a crawl count all workers of its job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import faulty_service
from tests.support.faulty_service import Answer, FaultyService
from tests.support.group_crawls import Workers, responses
from tests.support.servers import RunningServer

BUDGET = 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path / "data") as server:
        yield server


@pytest.fixture
def service() -> Iterator[FaultyService]:
    yield from faulty_service.running()


def start(tmp_path: Path, server: RunningServer, service: FaultyService, settings: str, pages: int = 200) -> Workers:
    service.plays("site.example", Answer(after=0.05))
    ours = f"EXTRACT_API_URL = {service.url!r}\nEXTRACT_API_KEY = 'key'\n"
    return Workers(tmp_path, server, "https://site.example", pages, ours + settings)


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (f"EXTRACT_API_MAX_REQUESTS = {BUDGET}\n", "extract_api_max_requests"),
        (f"EXTRACT_API_MAX_COST = {BUDGET / 4}\nEXTRACT_API_PRICES = {{'http': 0.25}}\n", "extract_api_max_cost"),
    ],
)
def test_two_workers_spend_the_budget_of_one(
    tmp_path: Path, server: RunningServer, service: FaultyService, settings: str, reason: str
) -> None:
    crawls = start(tmp_path, server, service, settings).end()
    assert crawls[0].reason == reason
    assert 0.8 * BUDGET <= len(service.posts) <= BUDGET


@pytest.mark.long
def test_two_workers_close_at_the_items_of_both(tmp_path: Path, server: RunningServer, service: FaultyService) -> None:
    settings = "CLOSESPIDER_ITEMCOUNT = 40\nCLOSESPIDER_TIMEOUT_NO_ITEM = 600\nCONCURRENT_REQUESTS_PER_DOMAIN = 1\n"
    crawls = start(tmp_path, server, service, settings, pages=400).end()
    assert crawls[0].reason == "closespider_itemcount"
    assert 40 <= sum(responses(crawls)) < 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "pages", "most", "least_gap"),
    [
        ("CONCURRENT_REQUESTS_PER_DOMAIN = 3\n", 90, 3, 0.0),
        ("DOWNLOAD_DELAY = 0.4\nRANDOMIZE_DOWNLOAD_DELAY = False\n", 25, 8, 0.2),
    ],
)
def test_requests_through_the_service_count_for_the_limits_of_a_site(
    tmp_path: Path,
    server: RunningServer,
    service: FaultyService,
    settings: str,
    pages: int,
    most: int,
    least_gap: float,
) -> None:
    crawls = start(tmp_path, server, service, settings, pages).end()
    assert (crawls[0].reason, len(service.posts)) == ("finished", pages)
    assert all(responses(crawls)), responses(crawls)
    assert service.most_at_once("site.example") <= most
    times = sorted(post.at for post in service.posts)
    assert min(later - sooner for sooner, later in pairwise(times)) >= least_gap
