"""Scrapy's own components do for a routed request what they do for a direct one, and both work side by side."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import pytest

from tests.support import faulty_service
from tests.support.crawls import Crawl
from tests.support.faulty_service import PAGE, Answer, FaultyService, page
from tests.support.h2_site import H2Site
from tests.support.planned_crawls import Plan, pages, routed

SITE = "https://site.example"
HANDLERS = "scrapy.core.downloader.handlers."


def redirect(place: str, status: int = 302) -> Answer:
    headers = [{"name": "Location", "value": place}]
    return page(b"", status=status, httpResponseHeaders=headers)


class TestOneCrawl:
    """Redirects, cookies and the offsite filter, together in one crawl."""

    @pytest.fixture(scope="class")
    @staticmethod
    def service() -> Iterator[FaultyService]:
        yield from faulty_service.running()

    @pytest.fixture(scope="class")
    @staticmethod
    def ended(service, tmp_path_factory) -> tuple[Plan, Crawl]:
        service.plays("site.example/old", redirect("/new"))
        service.plays("site.example/old-post", redirect("/new-post", 307))
        service.plays("site.example/old-shot", redirect("/new-shot"))
        service.plays("site.example/kept", redirect("/elsewhere"))
        service.plays("site.example/refresh", page(b'<meta http-equiv="refresh" content="0; url=/refreshed">'))
        service.plays("site.example/away", redirect("https://other.example/"))
        service.plays(
            "site.example/login", page(b"<p>", httpResponseHeaders=cookies("id=7; Path=/", "x=1; Path=/private"))
        )
        wave = [
            f"{SITE}/old",
            {"url": f"{SITE}/old-post", "method": "POST", "body": "q=1"},
            routed(f"{SITE}/old-shot", screenshot=True, httpResponseHeaders=True),
            {"url": f"{SITE}/kept", "meta": {"dont_redirect": True, "handle_httpstatus_list": [302]}},
            f"{SITE}/refresh",
            {"url": f"{SITE}/with-inline", "meta": {"inline": f"{SITE}/inline"}},
            f"{SITE}/away",
            {
                "url": f"{SITE}/login",
                "then": [
                    {"url": f"{SITE}/inside"},
                    {"url": f"{SITE}/private/inside"},
                    {"url": f"{SITE}/unknown", "meta": {"dont_merge_cookies": True}},
                    {"url": f"{SITE}/other-jar", "meta": {"cookiejar": 2}},
                    {"url": "https://offsite.example/"},
                ],
            },
        ]
        plan = Plan(tmp_path_factory.mktemp("parts"), service)
        return plan, plan.crawl(wave, options=("-a", "domains=site.example"))

    def test_the_crawl_ends_well(self, ended):
        crawl = ended[1]
        assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])

    def test_redirects_are_followed_through_the_service(self, ended, service):
        assert ended[0].outcome(f"{SITE}/old").url == f"{SITE}/new"
        assert ended[0].outcome(f"{SITE}/refresh").url == f"{SITE}/refreshed"
        assert service.count("site.example/new") == service.count("site.example/refreshed") == 1

    def test_a_redirect_keeps_method_body_and_fields_as_in_scrapy(self, ended, service):
        (post,) = service.of("site.example/new-post")
        assert post.fields["httpRequestMethod"] == "POST"
        assert base64.b64decode(post.fields["httpRequestBody"]) == b"q=1"
        (post,) = service.of("site.example/new-shot")
        assert post.fields["screenshot"] is True

    def test_a_redirected_request_does_not_gain_the_default_headers_of_scrapy(self, ended, service):
        (post,) = service.of("site.example/new")
        assert {header["name"] for header in post.fields.get("customHttpRequestHeaders", [])} <= {"Referer"}

    def test_what_a_callback_downloads_itself_is_routed_as_well(self, ended, service):
        assert ended[0].outcome(f"{SITE}/inline").flags == ["extract-api"]
        assert service.count("site.example/inline") == 1

    def test_a_redirect_can_be_kept(self, ended):
        assert ended[0].outcome(f"{SITE}/kept").status == 302

    def test_what_is_offsite_is_not_sent(self, ended, service):
        assert service.count("offsite.example") == service.count("other.example") == 0
        assert ended[1].stat("offsite/filtered") >= 1

    def test_cookies_of_a_page_are_sent_with_the_next(self, ended, service):
        assert sent_cookies(service, "inside") == {"id": "7"}
        assert sent_cookies(service, "private/inside") == {"id": "7", "x": "1"}

    def test_cookies_stay_in_their_jar_and_where_they_are_not_wanted_are_not_sent(self, ended, service):
        assert sent_cookies(service, "unknown") == sent_cookies(service, "other-jar") == {}

    def test_a_cookie_is_never_a_header(self, service, ended):
        sent = [header for post in service.posts for header in post.fields.get("customHttpRequestHeaders", [])]
        assert not [header for header in sent if header["name"].lower() == "cookie"]


def cookies(*values: str) -> list[dict[str, str]]:
    return [{"name": "Content-Type", "value": "text/html"}, *({"name": "Set-Cookie", "value": v} for v in values)]


def sent_cookies(service: FaultyService, path: str) -> dict[str, str]:
    (post,) = service.of(f"site.example/{path}")
    return {cookie["name"]: cookie["value"] for cookie in post.fields.get("requestCookies", [])}


@pytest.mark.long
def test_autothrottle_does_not_slow_routed_requests_down(plan, service, site):
    """It halves the delay after each response. A latency that had the wait for the delay in it would keep it at 6."""
    crawls = plan(
        AUTOTHROTTLE_ENABLED=True,
        AUTOTHROTTLE_START_DELAY=6,
        AUTOTHROTTLE_MAX_DELAY=90,
        AUTOTHROTTLE_DEBUG=True,
        DOWNLOAD_DELAY_JITTER=0,
        RANDOMIZE_DOWNLOAD_DELAY=False,
    )
    direct = {"url": f"{site.url}/page/1", "meta": {"extract_api": False}}
    crawl = crawls.crawl([*pages("site.example", 4), direct])
    assert (crawl.reason, crawl.errors) == ("finished", [])
    assert len(crawls.delivered()) == 5
    line = r"slot: site\.example \| conc:.*?delay:\s*(\d+) ms.*?latency:\s*(\d+) ms"
    delays, latencies = zip(*(map(int, found) for found in re.findall(line, crawl.log)), strict=True)
    assert len(delays) == 4
    # On a loaded machine an answer takes a second, and so the delay gets no shorter than that.
    for wait, latency in zip((6000, delays[0]), latencies[1:3], strict=True):
        assert latency < wait, "the request has waited for so long, and that is not in its latency"
    for before, delay, latency in zip((6000, *delays), delays, latencies, strict=False):
        assert delay <= max(latency, (before + latency) / 2) + 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "handler",
    ["http11.HTTP11DownloadHandler", "_httpx.HttpxDownloadHandler", "_aiohttp.AiohttpDownloadHandler"],
)
def test_direct_requests_go_through_the_handler_of_the_project_beside_routed_ones(plan, service, site, handler):
    handlers = dict.fromkeys(("http", "https"), HANDLERS + handler)
    check_mixed(plan(DOWNLOAD_HANDLERS=handlers), service, site.url + "/page/{}")
    assert sum(site.hits.values()) == 10


@pytest.mark.long
def test_direct_requests_go_over_http2_beside_routed_ones(plan, service, tmp_path):
    with H2Site(tmp_path) as site:
        crawls = plan(DOWNLOAD_HANDLERS={"https": HANDLERS + "http2.H2DownloadHandler"})
        check_mixed(crawls, service, site.url + "/page/{}")
        assert len(site.paths) == 10


def check_mixed(crawls: Plan, service: FaultyService, place: str) -> None:
    direct = [{"url": place.format(n), "meta": {"extract_api": False}} for n in range(10)]
    mixed = [row for pair in zip(direct, pages("site.example", 10), strict=True) for row in pair]
    crawl = crawls.crawl(mixed)
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    assert crawls.delivered() == sorted([*pages("site.example", 10), *(row["url"] for row in direct)])
    flags = {outcome.planned: outcome.flags for outcome in crawls.outcomes}
    assert all(flags[row["url"]] == [] for row in direct)
    assert all(flags[url] == ["extract-api"] for url in pages("site.example", 10))
    assert len(service.posts) == 10
    assert crawl.stat("downloader/response_count") == 20


def test_what_is_stored_in_the_http_cache_is_the_page_and_not_the_answer(plan, service, site):
    """A page that was cached through the service is the same page when it comes direct, and the other way round."""
    service.plays("localhost", PAGE)
    crawls = plan(HTTPCACHE_ENABLED=True)
    url = f"{site.url}/page/3"
    crawls.crawl([url, {"url": f"{site.url}/page/4", "meta": {"extract_api": False}}])
    crawls.crawl([{"url": url, "meta": {"extract_api": False}}, f"{site.url}/page/4"])
    first, second, *again = sorted(crawls.outcomes, key=lambda outcome: outcome.order)
    texts = {outcome.planned: outcome.text for outcome in (first, second)}
    assert [outcome.text for outcome in again] == [texts[outcome.planned] for outcome in again]
    assert (len(service.posts), sum(site.hits.values())) == (1, 1)
