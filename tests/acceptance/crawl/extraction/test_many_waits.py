"""Requests that wait for the end of a ban or a limit hold back no others, however many they are."""

from __future__ import annotations

import pytest

from tests.support.faulty_service import PAGE, Answer, Post, page, problem
from tests.support.planned_crawls import IMPATIENT, pages

BAN = problem("/download/temporary-error", retry_after=1)
PATIENT = {"/download/temporary-error": 100}


@pytest.mark.long
def test_banned_pages_do_not_hold_back_the_other_pages_of_their_domain(plan, service):
    """They are banned until the fifty others, which come later, were delivered."""
    good = pages("site.example", 50)

    def banned(_: Post) -> Answer:
        return PAGE if sum(post.ended is not None and "good" in post.url for post in service.posts) == 50 else BAN

    good = [f"https://site.example/good-{n}" for n in range(50)]
    for number in range(8):
        service.plays(f"site.example/{number}", banned)
    crawls = plan(EXTRACT_API_RETRY_POLICY=PATIENT)
    crawl = crawls.crawl([*pages("site.example", 8), *good])
    assert (crawl.reason, len(crawls.delivered())) == ("finished", 58)


@pytest.mark.long
def test_many_banned_domains_do_not_hold_back_another(plan, service):
    domains = [f"banned-{number}.example" for number in range(15)]

    def banned(_: Post) -> Answer:
        return PAGE if service.answered("healthy.example") == 50 else BAN

    for domain in domains:
        service.plays(domain, banned)
    wave = [url for domain in domains for url in pages(domain, 12)]
    crawls = plan(EXTRACT_API_RETRY_POLICY=PATIENT)
    crawl = crawls.crawl([*wave, *pages("healthy.example", 50)])
    assert (crawl.reason, len(crawls.delivered())) == ("finished", 230)


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(Answer(body=b"{}"), "UnexpectedAnswerError", marks=pytest.mark.full),
        (Answer(body=b'{"error": "log in"}'), "UnexpectedAnswerError"),
        (page(httpResponseBody=None), "IncompleteAnswerError"),
    ],
)
def test_an_answer_without_the_page_that_was_asked_for_is_no_empty_page(plan, service, answer, error):
    service.plays("site.example", answer)
    crawls = plan(EXTRACT_API_RETRY_POLICY=IMPATIENT)
    crawls.crawl(["https://there.example/"], ["https://site.example/"])
    assert crawls.outcome("https://site.example/").error == error
