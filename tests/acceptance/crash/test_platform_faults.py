"""A platform that loses calls, refuses them or is away: nothing is lost, and nothing waits for ever."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.crawls import Crawl, Project, ask_server, collect, key
from tests.support.faults import Fault, FaultProxy, Rule, Step, step_of
from tests.support.servers import RunningServer

SPIDERS = '''
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for host in ("localhost", "127.0.0.1"):
            yield scrapy.Request(f"http://{host}:{self.port}/")

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a.next")


class Local(Pages):
    """Every request holds something that only this process can have."""
    name = "local"

    def parse(self, response):
        yield {"url": response.url}
        for link in response.css("a.next"):
            yield response.follow(link, lambda response: self.parse(response))


class Odd(Pages):
    name = "odd"

    def parse(self, response):
        yield {"url": response.url}
        number = int(response.css("h1::text").get())
        for link in response.css("a.next"):
            yield response.follow(link, priority=-number * 10**12, dont_filter=False or response.css("nothing"))


class Broken(Pages):
    name = "broken"

    def parse(self, response):
        if response.url.endswith("/"):
            for number in range(30):
                yield scrapy.Request("http://[foo/", meta={"verbatim_url": True})
        yield from super().parse(response)


class Inline(Pages):
    name = "inline"

    async def parse(self, response):
        yield {"url": response.url}
        if response.url.endswith("/"):
            await self.crawler.engine.download_async(scrapy.Request("data:,x" + "y" * 1_200_000))
        for link in response.css("a.next"):
            yield response.follow(link)
'''
SETTINGS = "EXTRACT_API_ENABLED = False\nROBOTSTXT_OBEY = False\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RunningServer(tmp_path_factory.mktemp("server")) as server:
        yield server


class Tried:
    """A crawl of both hosts of the site through a fault proxy, and what the platform has of it."""

    def __init__(self, server, site, folder, rule: Rule, spider="pages", settings: str = "") -> None:
        self._server = server
        self.site = site
        with FaultProxy(server.url, rule) as proxy:
            remote = f"PLATFORM_URL = {proxy.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\n"
            self.project = Project(folder, SPIDERS, SETTINGS + remote + settings, is_forked=False)
            self.crawl: Crawl = self.project.crawl(spider, "-a", f"port={site.port}")
            self.shown = proxy.shown
        self.job = key(self.crawl.log.partition("'platform/job': '")[2].partition("'")[0])

    def items(self) -> Counter[str]:
        items = ask_server(self._server.url, self._server.platform_key, lambda c: collect(c.items.iter(self.job)))
        return Counter(item["url"] for item in items)

    def state(self) -> tuple[str, str]:
        metadata = ask_server(self._server.url, self._server.platform_key, lambda c: c.jobs.metadata(self.job))
        return metadata["state"], metadata.get("close_reason", "")


@pytest.fixture
def attempt(server, site, tmp_path):
    def attempt(rule: Rule = lambda *_: None, **options) -> Tried:
        return Tried(server, site, tmp_path / "project", rule, **options)

    return attempt


def everything_once(tried: Tried) -> None:
    items = tried.items()
    assert len(items) == 2 * (tried.site.pages + 1)
    assert set(items.values()) == {1}
    assert (tried.crawl.returncode, tried.crawl.reason) == (0, "finished")
    assert tried.state() == ("finished", "finished")


@pytest.mark.parametrize(
    "fault", [pytest.param(Fault.LOST_REQUEST, marks=pytest.mark.full), Fault.LOST_REPLY, Fault.UNAVAILABLE]
)
@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.full)])
def test_a_write_to_the_frontier_that_breaks_loses_no_request(attempt, fault, number):
    tried = attempt(
        lambda method, path, n: fault if method == "POST" and path.count("/") == 5 and n == number else None
    )
    assert tried.shown
    everything_once(tried)


def test_a_read_of_one_slot_that_fails_loses_nothing_of_the_others(attempt):
    first: list[str] = []

    def rule(method: str, path: str, number: int) -> Fault | None:
        if not first and step_of(method, path) is Step.READ:
            first.append(path)
        return Fault.UNAVAILABLE if path in first and number < 7 else None

    tried = attempt(rule)
    assert tried.shown
    everything_once(tried)


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_REPLY])
def test_items_and_acknowledgements_that_break_are_sent_again_and_stored_once(attempt, fault):
    def rule(method: str, path: str, number: int) -> Fault | None:
        sensitive = path.startswith("/items") or path.endswith("/deleted")
        return fault if sensitive and number == 0 else None

    everything_once(attempt(rule))


@pytest.mark.parametrize("resource", ["logs", "requests"])
def test_logs_or_request_records_that_are_refused_take_nothing_else_with_them(attempt, resource):
    tried = attempt(
        lambda method, path, n: Fault.REFUSED if path.startswith(f"/{resource}") and method == "POST" else None
    )
    assert tried.shown
    everything_once(tried)


def test_items_that_are_refused_end_the_crawl_and_are_not_acknowledged(attempt):
    tried = attempt(lambda method, path, n: Fault.REFUSED if path.startswith("/items") and method == "POST" else None)
    assert tried.crawl.returncode != 0
    assert tried.crawl.reason == "platform_unavailable"
    assert tried.crawl.stat("frontier/acknowledged/requests") == 0
    assert tried.state() == ("finished", "platform_unavailable")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_frontier_that_is_refused_ends_the_crawl(attempt, method):
    tried = attempt(lambda m, path, n: Fault.REFUSED if path.startswith("/hcf") and m == method else None)
    assert tried.crawl.returncode != 0
    assert tried.crawl.reason in ("frontier_unavailable", "platform_unavailable", "bad_setting")


def test_with_a_retry_time_an_outage_of_the_frontier_ends_the_crawl(attempt):
    tried = attempt(
        lambda method, path, n: Fault.UNAVAILABLE if path.startswith("/hcf") else None,
        settings="PLATFORM_RETRY_TIME = 2\n",
    )
    assert tried.crawl.returncode != 0


def test_requests_that_stay_in_the_process_end_too_on_a_site_of_circles(attempt):
    tried = attempt(spider="local")
    assert (tried.crawl.returncode, tried.crawl.reason) == (0, "finished")
    items = tried.items()
    assert len(items) == 2 * (tried.site.pages + 1)
    assert tried.crawl.stat("dupefilter/filtered") > 0


@pytest.mark.parametrize("spider", ["odd", "inline"])
def test_odd_priorities_odd_values_and_huge_inline_requests_lose_nothing(attempt, spider):
    everything_once(attempt(spider=spider))


@pytest.mark.parametrize("prefetch", [1, pytest.param(2, marks=pytest.mark.full)])
def test_the_smallest_prefetch_reads_everything(attempt, prefetch):
    everything_once(attempt(settings=f"FRONTIER_PREFETCH = {prefetch}\n"))


def test_a_frontier_is_not_resumed_with_another_number_of_slots(server, site, tmp_path):
    remote = f"PLATFORM_URL = {server.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\nFRONTIER_NAME = 'slots'\n"
    project = Project(tmp_path / "project", SPIDERS, SETTINGS + remote, is_forked=False)
    port = ("-a", f"port={site.port}")
    for _ in range(2):
        crawl = project.crawl("pages", *port)
        assert (crawl.returncode, crawl.errors) == (0, []), "the second goes on with what the first has left: nothing"
    again = project.crawl("pages", *port, "-s", "FRONTIER_SLOTS=1")
    assert (again.returncode, again.reason) == (1, "bad_setting")
    assert "FRONTIER_SLOTS is 1, but frontier slots has slot" in again.errors[0]


def test_a_collection_of_seen_pages_that_is_away_for_a_while_loses_nothing(attempt):
    def rule(method: str, path: str, number: int) -> Fault | None:
        return Fault.UNAVAILABLE if method == "GET" and path.endswith("/s/seen") and number < 7 else None

    tried = attempt(rule, settings="DUPEFILTER_COLLECTION = 'seen'\n")
    assert tried.shown
    everything_once(tried)


@pytest.mark.full
def test_pages_are_noted_as_stored_however_items_are_stored(attempt):
    tried = attempt(settings="DUPEFILTER_COLLECTION = 'streamed'\nPLATFORM_ITEMS_MODE = 'streaming'\n")
    everything_once(tried)
    assert tried.crawl.stat("dupefilter/collection/written") == 2 * (tried.site.pages + 1)


def test_what_cannot_be_a_request_is_refused_and_reported_and_the_crawl_goes_on(attempt):
    tried = attempt(spider="broken")
    everything_once(tried)
    assert tried.crawl.stat("frontier/refused") == 60
    assert any("http://[foo/> is refused" in error for error in tried.crawl.errors)
