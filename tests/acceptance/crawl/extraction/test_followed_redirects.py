"""Redirects that a service follows by itself, because it does not know ``followRedirect`` or uses a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import faulty_service
from tests.support.crawls import Crawl, Project
from tests.support.faulty_service import Answer, FaultyService, page
from tests.support.planned_crawls import ALONE, KEY

SPIDER = """
import json

import scrapy

META = ("redirect_urls", "redirect_times", "redirect_reasons", "redirect_ttl")


class Followed(scrapy.Spider):
    name = "followed"
    allowed_domains = ["site.example", "other-allowed.example"]

    async def start(self):
        for row in json.load(open("cases.json")):
            yield scrapy.Request(**row, callback=self.parse, errback=self.failed, cb_kwargs={"asked": row["url"]})

    def parse(self, response, asked):
        request = response.request
        yield {
            "asked": asked, "url": response.url, "request": [request.method, request.url, request.body.decode()],
            "meta": {name: response.meta[name] for name in META if name in response.meta},
            "spider": self.name,
        }

    def failed(self, failure):
        yield {
            "asked": failure.request.cb_kwargs["asked"], "error": type(failure.value).__name__,
            "message": str(failure.value), "url": failure.request.url,
        }
"""
SITE = "https://site.example"


def moved(to: str, *statuses: int, **more: Any) -> Answer:
    """The page at the end of redirects, as a service answers that follows them."""
    hops = [{"url": f"{SITE}/hop{n}", "statusCode": status} for n, status in enumerate(statuses)]
    return page(b"<p>end</p>", url=to, **({"redirects": hops} if hops else {}), **more)


def crawled(folder: Any, service: FaultyService, cases: list[dict[str, Any]], **settings: Any) -> tuple[Crawl, Any]:
    import json

    given = {"EXTRACT_API_URL": service.url, "EXTRACT_API_KEY": KEY, **settings}
    project = Project(folder, SPIDER, ALONE + "".join(f"{name} = {value!r}\n" for name, value in given.items()))
    (folder / "cases.json").write_text(json.dumps(cases))
    crawl = project.crawl("followed", "-O", "items.json")
    items = json.loads((folder / "items.json").read_text())
    return crawl, {item["asked"].removeprefix(SITE): item for item in items}


class TestByAService:
    """One that does not know the field."""

    @pytest.fixture(scope="class")
    @staticmethod
    def service() -> Iterator[FaultyService]:
        yield from faulty_service.running()

    @pytest.fixture(scope="class")
    @staticmethod
    def ended(service, tmp_path_factory) -> tuple[Crawl, Any]:
        kept: list[dict[str, Any]] = [
            {"dont_redirect": True},
            {"handle_httpstatus_list": [404, 302]},
            {"handle_httpstatus_all": True},
        ]
        for number in range(len(kept)):
            service.plays(f"site.example/kept{number}", moved(f"{SITE}/elsewhere"))
        service.plays("site.example/moved", moved(f"{SITE}/new#part"))
        service.plays("site.example/same?a=b%20c", moved(f"{SITE}:443/same?a=b%20c"))
        service.plays("site.example/away", moved("https://offsite.example/"))
        service.plays("site.example/away-allowed", moved("https://other-allowed.example/"))
        cases = [
            *({"url": f"{SITE}/kept{number}", "meta": meta} for number, meta in enumerate(kept)),
            {"url": f"{SITE}/not-moved", "meta": {"dont_redirect": True}},
            {"url": f"{SITE}/moved"},
            {"url": f"{SITE}/same?a=b c#here", "meta": {"dont_redirect": True}},
            {"url": f"{SITE}/away"},
            {"url": f"{SITE}/away-allowed"},
        ]
        return crawled(tmp_path_factory.mktemp("followed"), service, cases)

    def test_the_field_is_not_sent_and_the_service_is_asked_once_by_those_that_depend_on_it(self, ended, service):
        assert [post.url for post in service.posts if "followRedirect" in post.fields] == []
        assert service.asked == 1

    @pytest.mark.parametrize(
        ("path", "named"),
        [
            ("/kept0", "meta key dont_redirect"),
            ("/kept1", "meta key handle_httpstatus_list"),
            ("/kept2", "meta key handle_httpstatus_all"),
        ],
    )
    def test_one_that_was_not_to_be_followed_is_an_error_that_names_the_meta_key(self, ended, service, path, named):
        item = ended[1][path]
        assert item["error"] == "RedirectFollowedError"
        assert named in item["message"]
        assert f"{SITE}/elsewhere" in item["message"]
        assert service.count(f"site.example{path}") == 1

    def test_a_page_that_was_not_moved_comes_as_ever(self, ended):
        assert ended[1]["/not-moved"]["meta"] == {}
        assert ended[1]["/same?a=b c#here"]["url"] == f"{SITE}/same?a=b%20c"

    def test_the_request_of_the_response_is_that_of_the_page(self, ended):
        item = ended[1]["/moved"]
        assert item["url"] == f"{SITE}/new"
        assert item["request"] == ["GET", f"{SITE}/new", ""]
        assert item["meta"] == {
            "redirect_urls": [f"{SITE}/moved"],
            "redirect_times": 1,
            "redirect_ttl": 19,
            "redirect_reasons": ["extract-api"],
        }

    @pytest.mark.scrapy(oldest="2.18", why="the message of the offsite middleware")
    def test_one_that_led_offsite_has_the_message_of_scrapy(self, ended):
        assert "offsite" in ended[1]["/away"]["message"]

    def test_one_that_led_offsite_is_filtered_as_in_scrapy(self, ended):
        crawl, items = ended
        assert items["/away"]["error"] == "IgnoreRequest"
        assert crawl.stat("offsite/filtered") == 1
        assert items["/away-allowed"]["url"] == "https://other-allowed.example/"


class TestThatAreReported:
    """A service that knows the field reports the redirects that it followed, as the package's own does."""

    @pytest.fixture(scope="class")
    @staticmethod
    def service() -> Iterator[FaultyService]:
        yield from faulty_service.running()

    @pytest.fixture(scope="class")
    @staticmethod
    def ended(service, tmp_path_factory) -> tuple[Crawl, Any]:
        service.extensions = ("followRedirect",)
        service.plays("site.example/hop0", moved(f"{SITE}/end", 301, 302, browserHtml="<p>"))
        service.plays("site.example/app", moved(f"{SITE}/app/1", browserHtml="<p>"))
        service.plays("site.example/many", moved(f"{SITE}/end", *[302] * 4, browserHtml="<p>"))
        service.plays("site.example/post", moved(f"{SITE}/posted", 302))
        browser = {"browserHtml": True, "httpResponseHeaders": True}
        cases = [
            {"url": f"{SITE}/app", "meta": {"extract_api": browser, "dont_redirect": True}},
            {"url": f"{SITE}/hop0", "meta": {"extract_api": browser}},
            {"url": f"{SITE}/many", "meta": {"extract_api": browser}},
            {"url": f"{SITE}/post", "method": "POST", "body": "a=1", "meta": {"extract_api": {"followRedirect": True}}},
            {"url": f"{SITE}/plain"},
            {"url": f"{SITE}/exact", "meta": {"extract_api": {"httpResponseBody": True}, "extract_api_automap": False}},
            {"url": f"{SITE}/item", "meta": {"extract_api": {"product": True, "extractFrom": "httpResponseBody"}}},
        ]
        folder = tmp_path_factory.mktemp("reported")
        return crawled(folder, service, cases, REDIRECT_MAX_TIMES=3, CONCURRENT_REQUESTS=1)

    def test_each_is_in_the_meta_with_its_status(self, ended):
        item = ended[1]["/hop0"]
        assert item["request"] == ["GET", f"{SITE}/end", ""]
        assert item["meta"] == {
            "redirect_urls": [f"{SITE}/hop0", f"{SITE}/hop1"],
            "redirect_times": 2,
            "redirect_ttl": 1,
            "redirect_reasons": [301, 302],
        }

    def test_a_page_that_changes_its_address_by_itself_was_not_redirected(self, ended):
        assert ended[1]["/app"] | {"spider": ""} == {
            "asked": f"{SITE}/app",
            "url": f"{SITE}/app/1",
            "request": ["GET", f"{SITE}/app", ""],
            "meta": {},
            "spider": "",
        }

    def test_more_than_redirect_max_times_are_ignored(self, ended):
        assert (ended[1]["/many"]["error"], ended[1]["/many"]["message"]) == (
            "IgnoreRequest",
            "max redirections reached",
        )

    def test_a_post_that_was_redirected_is_a_get(self, ended):
        assert ended[1]["/post"]["request"] == ["GET", f"{SITE}/posted", ""]

    def test_the_field_is_sent_where_scrapy_can_follow_and_nowhere_else(self, ended, service):
        sent = {post.place.partition("/")[2]: post.fields.get("followRedirect") for post in service.posts}
        assert sent == {
            "hop0": None, "app": None, "many": None, "post": True, "plain": False, "exact": None, "item": None
        }  # fmt: skip


def test_a_setting_that_was_to_keep_it_is_named(tmp_path, service):
    service.plays("site.example/moved", moved(f"{SITE}/elsewhere"))
    _, items = crawled(tmp_path, service, [{"url": f"{SITE}/moved"}], REDIRECT_ENABLED=False)
    assert items["/moved"]["error"] == "RedirectFollowedError"
    assert "setting REDIRECT_ENABLED" in items["/moved"]["message"]


@pytest.mark.long
def test_the_user_can_say_that_a_service_knows_the_field(tmp_path, service):
    crawled(tmp_path, service, [{"url": f"{SITE}/"}], EXTRACT_API_EXTRA_FIELDS=["followRedirect"])
    assert [post.fields["followRedirect"] for post in service.posts] == [False]


@pytest.mark.long
def test_what_a_service_knows_is_learned_from_its_answers(tmp_path, service):
    """A service of somebody else gets nothing but what was asked for."""
    service.extensions = ("followRedirect", "omitHttpRequestHeaders")
    cases = [{"url": f"{SITE}/{number}"} for number in range(3)]
    crawled(tmp_path, service, cases, CONCURRENT_REQUESTS=1)
    assert [post.fields.get("followRedirect") for post in service.posts] == [None, False, False]
    assert service.asked == 0


@pytest.mark.long
def test_a_first_page_that_the_service_redirected_is_asked_for_again_for_scrapy_to_follow(tmp_path, service):
    service.extensions = ("followRedirect", "omitHttpRequestHeaders")
    service.plays("site.example/first", moved(f"{SITE}/elsewhere", 302), page(b"<p>moved</p>"))
    _, items = crawled(tmp_path, service, [{"url": f"{SITE}/first"}], CONCURRENT_REQUESTS=1)
    assert [post.fields.get("followRedirect") for post in service.posts] == [None, False]
    assert items["/first"]["url"] == f"{SITE}/first"


@pytest.mark.long
def test_a_first_post_is_not_sent_twice_but_asks_what_the_service_knows(tmp_path, service):
    service.extensions = ("followRedirect", "omitHttpRequestHeaders")
    crawled(tmp_path, service, [{"url": f"{SITE}/login", "method": "POST", "body": "a=1"}])
    assert [post.fields.get("followRedirect") for post in service.posts] == [False]
    assert service.asked == 1


@pytest.mark.long
def test_a_post_is_not_sent_twice_where_the_service_did_not_answer_the_question(tmp_path, service):
    service.extensions, service.tells_extensions = ("followRedirect",), False
    service.plays("site.example/login", moved(f"{SITE}/home", 302))
    crawled(tmp_path, service, [{"url": f"{SITE}/login", "method": "POST", "body": "a=1"}])
    assert [post.fields.get("followRedirect") for post in service.posts] == [None]
