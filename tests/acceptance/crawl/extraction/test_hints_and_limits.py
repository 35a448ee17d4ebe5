"""The service's Retry-After is obeyed for its scope and for nothing else.

Nothing here is timed but what must not come too early: what must not wait is seen in the order of the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support import faulty_service
from tests.support.crawls import Crawl
from tests.support.faulty_service import PAGE, Answer, FaultyService, Post, held, problem
from tests.support.planned_crawls import ALONE, WITH_FRONTIER, Plan, pages

#: Problems that say when to come back, and hold for one request or one domain.
HINTS = {
    "limited": "/limits/over-domain-limit",
    "limited-org": "/limits/over-org-domain-limit",
    "banned": "/download/temporary-error",
}
HEALTHY = pages("healthy.example", 50)
THROTTLED = pages("throttled.example", 40)
#: Requests at once, as in the crawl that the best peer stands still in.
AT_ONCE = 16
PER_DOMAIN = 8


@pytest.mark.usefixtures("ended")
class TestOneThrottledDomain:
    """40 requests of a domain that is throttled until all 50 pages of another, which come later, were delivered."""

    @pytest.fixture(scope="class", params=[ALONE, WITH_FRONTIER], ids=["scrapy's scheduler", "the frontier"])
    @staticmethod
    def source(request) -> str:
        return request.param

    @pytest.fixture(scope="class")
    @staticmethod
    def service(source) -> Iterator[FaultyService]:
        yield from faulty_service.running()

    @pytest.fixture(scope="class")
    @staticmethod
    def ended(service, source, tmp_path_factory) -> tuple[Plan, Crawl]:
        limit = problem("/limits/over-domain-limit", retry_after=1)

        def throttled(_: Post) -> Answer:
            return PAGE if service.answered("healthy.example") == len(HEALTHY) else limit

        service.plays("throttled.example", throttled)
        for name, hint in HINTS.items():
            service.plays(f"{name}.example", problem(hint, retry_after=1), PAGE)
        plan = Plan(
            tmp_path_factory.mktemp("hints"),
            service,
            {"CONCURRENT_REQUESTS": AT_ONCE, "CONCURRENT_REQUESTS_PER_DOMAIN": PER_DOMAIN},
            source,
        )
        hinted = [f"https://{name}.example/" for name in HINTS]
        return plan, plan.crawl([*THROTTLED, *hinted, *HEALTHY])

    def test_everything_is_delivered(self, ended):
        plan, crawl = ended
        assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
        assert len(plan.delivered()) == len(THROTTLED) + len(HEALTHY) + len(HINTS)

    @pytest.mark.parametrize("name", HINTS)
    def test_a_page_is_asked_for_again_when_the_service_said_and_no_more_often(self, ended, service, name):
        first, second = service.of(f"{name}.example")
        assert second.at - first.ended_at >= 1.0

    def test_another_domain_goes_on_meanwhile(self, ended, service):
        """Were it held back, the crawl would not have ended: the domain is throttled for as long."""
        delivered = [outcome.planned for outcome in ended[0].outcomes]
        assert not set(delivered[: len(HEALTHY)]) & set(THROTTLED)

    def test_no_page_of_the_domain_comes_back_before_it_may(self, service):
        for page in THROTTLED:
            posts = service.of(page.removeprefix("https://"))
            assert all(later.at - sooner.ended_at >= 1.0 for sooner, later in pairwise(posts))

    def test_pages_that_were_not_asked_for_yet_wait_as_well(self, service):
        """Only those come that were on their way when the domain was throttled."""
        posts = service.of("throttled.example")
        throttled = min(post.ended_at for post in posts)
        assert sum(post.at < throttled + 1.0 for post in posts) <= PER_DOMAIN

    def test_the_wait_is_counted_by_its_reason(self, ended, service):
        limits = service.count("throttled.example") - len(THROTTLED) + 1
        assert ended[1].stat("extract_api/errors/limits/over-domain-limit") == limits
        assert ended[1].stat("extract_api/retries") == len(service.posts) - len(ended[0].delivered())


@pytest.mark.long
@pytest.mark.parametrize(
    "type", ["/limits/over-user-limit", pytest.param("/limits/over-global-limit", marks=pytest.mark.full)]
)
def test_a_limit_of_the_user_or_of_all_holds_back_everything(plan, service, type):
    """Four are on their way when the limit comes, so that only its place is free, for a client that does not obey."""
    limited = "https://limited.example/"
    others = [f"https://site-{number}.example/" for number in range(12)]

    def all_have_come() -> bool:
        return len(service.posts) >= 4

    def limit_is_over() -> bool:
        (first, *_) = service.of("limited.example")
        return first.ended_at is not None and service.now() > first.ended_at + 1.0

    service.plays("limited.example", held(problem(type, retry_after=1), all_have_come), PAGE)
    for number in range(3):
        service.plays(f"site-{number}.example", held(PAGE, limit_is_over))
    crawls = plan(CONCURRENT_REQUESTS=4)
    crawl = crawls.crawl([limited, *others])
    assert (crawl.reason, len(crawls.delivered())) == ("finished", 13)
    first = service.of("limited.example")[0]
    assert [post.url for post in service.posts if post.began > first.ended and post.at < first.ended_at + 1.0] == []
    assert service.count("limited.example") == 2


@pytest.mark.long
def test_a_domain_that_is_always_throttled_is_given_up_with_the_limit_as_its_error(plan, service):
    service.plays("throttled.example", problem("/limits/over-domain-limit", retry_after=0))
    crawls = plan(EXTRACT_API_RETRY_POLICY={"/limits/over-domain-limit": 3})
    crawls.crawl(pages("throttled.example", 4))
    assert [outcome.error for outcome in crawls.outcomes] == ["LimitError"] * 4
    assert len(service.posts) == 12


#: DOWNLOAD_SLOTS.
SLOTS = {
    "wide.example": {"concurrency": 4},
    "slow.example": {"delay": 0.25, "jitter": 0, "concurrency": 8},
    "shared": {"concurrency": 1},
}


class TestCaps:
    """Concurrency and delay of Scrapy's settings, per plain domain, hold at the service."""

    @pytest.fixture(scope="class")
    @staticmethod
    def service() -> Iterator[FaultyService]:
        yield from faulty_service.running()

    @pytest.fixture(scope="class")
    @staticmethod
    def crawl(service, tmp_path_factory) -> Crawl:
        answer = Answer(after=0.02)
        for domain in ("one.example", "two.example", "a.shared.example", "b.shared.example"):
            service.plays(domain, answer)
        # Two are there at once, however slow the machine is.
        service.plays("wide.example", held(answer, lambda: len(service.of("wide.example")) >= 2))
        settings = {"CONCURRENT_REQUESTS": 6, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_SLOTS": SLOTS}
        plan = Plan(tmp_path_factory.mktemp("caps"), service, settings)
        shared = [
            {"url": url, "meta": {"download_slot": "shared"}}
            for url in (*pages("a.shared.example", 5), *pages("b.shared.example", 5))
        ]
        wave = [
            *pages("one.example", 8),
            *pages("two.example", 8),
            *pages("wide.example", 16),
            *pages("slow.example", 4),
            *shared,
        ]
        crawl = plan.crawl(wave)
        assert len(plan.delivered()) == len(wave)
        return crawl

    def test_a_domain_that_takes_one_at_a_time_never_gets_two(self, crawl, service):
        assert (service.most_at_once("one.example"), service.most_at_once("two.example")) == (1, 1)

    def test_a_domain_with_a_slot_of_its_own_gets_what_that_allows(self, crawl, service):
        assert 2 <= service.most_at_once("wide.example") <= 4

    def test_there_are_never_more_in_all_than_is_allowed(self, crawl, service):
        assert 2 <= service.most_at_once() <= 6

    def test_the_delay_of_a_domain_lies_between_its_requests(self, crawl, service):
        posts = service.of("slow.example")
        assert posts[-1].at - posts[0].at >= 0.5 * 0.25 * (len(posts) - 1)

    def test_domains_that_share_a_download_slot_share_its_cap(self, crawl, service):
        assert service.most_at_once("a.shared.example", "b.shared.example") == 1
