"""Pages that any crawl has stored are skipped, and no others: the real server, and real crawls that are killed."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from scrapy import Request, Spider, signals

from scrapy_ext import dupefilters
from scrapy_ext.api.platform.collections import check_name
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.platform.errors import Forbidden
from scrapy_ext.client.platform.json_lines import encode
from scrapy_ext.crawl.session.session import Session
from scrapy_ext.dupefilters import CollectionDupeFilter
from scrapy_ext.settings import SettingError
from tests.support.crawlers import get_crawler
from tests.support.crawls import Crawl, Project, Running, ask_server, collect, key
from tests.support.eventually import TIMEOUT, eventually
from tests.support.faults import Fault, FaultProxy
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Answer

WITHOUT_REACTOR = pytest.mark.scrapy(oldest="2.15", why="components in an event loop without a reactor of Twisted")


class Any(Spider):
    name = "any"


SPIDERS = """
import scrapy


class Products(scrapy.Spider):
    name = "products"

    async def start(self):
        yield scrapy.Request(self.site + "/", self.parse_listing)

    def parse_listing(self, response):
        for number in range(60):
            yield response.follow(f"/page/{number}")
        yield response.follow("/page/0")

    def parse(self, response):
        yield {"url": response.url}


class Start(Products):
    name = "start"

    async def start(self):
        yield scrapy.Request(self.site + "/page/1")
        yield scrapy.Request(self.site + "/page/1")


class Empty(Products):
    name = "empty"

    def parse(self, response):
        if not response.url.endswith("/page/7"):
            yield {"url": response.url}
"""
SETTINGS = """
FRONTIER_ENABLED = False
EXTRACT_API_ENABLED = False
DUPEFILTER_COLLECTION = "seen"
ROBOTSTXT_OBEY = False
PLATFORM_BATCH_SIZE = 5
PLATFORM_FLUSH_INTERVAL = 0.05
"""
_projects = itertools.count(100)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    server = ForkedServer(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


class Calls:
    """The calls that went to the platform."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.refused = ""

    def __call__(self, method: str, path: str, number: int) -> Fault | None:
        self.seen.append((method, path))
        return Fault.REFUSED if self.refused and self.refused == f"{method} {path}" else None

    def reads(self, project: int) -> int:
        """Of the collection."""
        return Counter(self.seen)["GET", f"/collections/{project}/s/seen"]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def proxy(server: RunningServer, calls: Calls) -> Iterator[FaultProxy]:
    with FaultProxy(server.url, calls) as proxy:
        yield proxy


@pytest.fixture
def number() -> int:
    """A project of the platform that no other test uses."""
    return next(_projects)


@pytest.fixture
def connected(server: RunningServer, proxy: FaultProxy, number: int):
    """A filter as a frontier has it, in a session that is closed at the end."""

    @asynccontextmanager
    async def connect(**settings: object) -> AsyncIterator[CollectionDupeFilter]:
        all_settings = {
            "PLATFORM_URL": proxy.url,
            "PLATFORM_API_KEY": server.platform_key,
            "PLATFORM_PROJECT": number,
            "DUPEFILTER_COLLECTION": "seen",
            **settings,
        }
        crawler = get_crawler(Any, all_settings)
        dupefilter = CollectionDupeFilter.for_frontier(crawler)
        assert dupefilter is not None
        await dupefilter.connect()
        try:
            yield dupefilter
        finally:
            await crawler.signals.send_catch_log_async(signals.engine_stopped)

    return connect


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[PlatformClient]:
    async with PlatformClient(PlatformUrls.single(server.url), server.platform_key) as client:
        yield client


async def records_of(client: PlatformClient, number: int, kind: str = "s") -> dict[str, dict]:
    found = await collect(client.collections.iter(number, kind, "seen", meta=["_key", "_ts"]))
    return {record["_key"]: record for record in found}


def fingerprints(count: int, kind: str = "") -> list[bytes]:
    return [hashlib.sha1(f"{kind}{number}".encode()).digest() for number in range(count)]


# ── looked up in bulk ──


@WITHOUT_REACTOR
async def test_a_look_up_finds_what_the_collection_has_and_nothing_else(connected, client, number):
    stored, absent = fingerprints(300), fingerprints(300, "absent")
    odd = [b"\x00", b"short", b"x" * 21, b"y" * 64]
    async with connected() as dupefilter:
        keys = [fp.hex() for fp in (*stored, *odd[::2])] + ["no fingerprint", absent[0].hex().upper()]
        await client.collections.write(number, "s", "seen", encode({"_key": key} for key in keys))
        await client.collections.write(number, "cs", "seen", encode({"_key": fp.hex()} for fp in absent[:9]))
        asked = [*stored, *absent, *odd, *stored[:5]]
        assert await dupefilter.stored_among(asked) == {*stored, *odd[::2]}
        assert await dupefilter.stored_among([]) == set()
        assert await dupefilter.stored_among(absent) == set()


@WITHOUT_REACTOR
async def test_nothing_is_read_ahead_and_a_hit_is_not_asked_for_again(connected, client, calls, number):
    stored, absent = fingerprints(64), fingerprints(64, "absent")
    async with connected() as dupefilter:
        await client.collections.write(number, "s", "seen", encode({"_key": fp.hex()} for fp in stored))
        assert calls.reads(number) == 0
        assert await dupefilter.stored_among(stored) == set(stored)
        assert calls.reads(number) == 2, "one call for 32"
        assert await dupefilter.stored_among(stored) == set(stored)
        assert calls.reads(number) == 2
        await dupefilter.stored_among([*stored, *absent])
        await dupefilter.stored_among([*stored, *absent])
        assert calls.reads(number) == 6, "another crawl may have stored the page meanwhile"
        assert dupefilter._crawler.stats.get_value("dupefilter/collection/hits") == 4 * 64


@WITHOUT_REACTOR
async def test_a_look_up_that_fails_raises_and_can_be_repeated(connected, client, calls, number):
    stored = fingerprints(40)
    async with connected() as dupefilter:
        await client.collections.write(number, "s", "seen", encode({"_key": fp.hex()} for fp in stored))
        calls.refused = f"GET /collections/{number}/s/seen"
        with pytest.raises(Forbidden):
            await dupefilter.stored_among(stored)
        calls.refused = ""
        assert await dupefilter.stored_among(stored) == set(stored)


@WITHOUT_REACTOR
async def test_pages_that_were_committed_are_recorded_once(connected, client, number):
    pages = [(fp, f"http://example.com/{place}") for place, fp in enumerate(fingerprints(30))]
    async with connected() as dupefilter:
        dupefilter.note_stored(pages)
        dupefilter.note_stored([*pages[:3], (b"odd", "http://example.com/" + "x" * 9000)])
        stats = dupefilter._crawler.stats
    found = await records_of(client, number)
    assert found.keys() == {fp.hex() for fp, _ in pages} | {b"odd".hex()}
    assert {record["job"] for record in found.values()} == {f"{number}/1/1"}
    assert found[pages[3][0].hex()]["url"] == "http://example.com/3"
    assert len(found[b"odd".hex()]["url"]) == 8192
    assert stats.get_value("dupefilter/collection/written") == 31


@WITHOUT_REACTOR
async def test_a_page_that_is_stored_again_is_seen_for_another_month(connected, client, number):
    (fp,) = fingerprints(1)
    times = []
    for _ in range(2):
        async with connected(DUPEFILTER_COLLECTION_TYPE="cs") as dupefilter:
            dupefilter.note_stored([(fp, "http://example.com/")])
        times.append((await records_of(client, number, "cs"))[fp.hex()]["_ts"])
    assert times[0] < times[1], "from which the month is counted"
    assert [each.type for each in await client.collections.list(number)] == ["cs"]


# ── settings ──


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"DUPEFILTER_COLLECTION_TYPE": "vs"}, "DUPEFILTER_COLLECTION_TYPE must be s or cs, got 'vs'. Write 's'"),
        ({"DUPEFILTER_COLLECTION_TYPE": ""}, "DUPEFILTER_COLLECTION_TYPE must be s or cs"),
        ({"DUPEFILTER_COLLECTION": "cs/seen"}, "Write the type in DUPEFILTER_COLLECTION_TYPE"),
        ({"DUPEFILTER_COLLECTION": "a b"}, "is not the name of a collection"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_the_remedy(settings, words):
    crawler = get_crawler(Any, {"DUPEFILTER_COLLECTION": "seen", **settings})
    CollectionDupeFilter.from_crawler(crawler)
    failure = Session.of(crawler).failure
    assert isinstance(failure, SettingError)
    assert words in str(failure)


def test_each_spider_has_a_collection_of_its_own_whatever_its_name():
    spiders = ("shop", "shop_uk", "shop-uk", "shop.uk", "книги", "книжк", "", "x" * 300, "x" * 299)
    names = [dupefilters._collection_of(spider) for spider in spiders]
    for name in names:
        check_name(name)
    assert len(set(names)) == len(spiders)
    assert names[:2] == ["shop_seen", "shop_uk_seen"]


def test_a_frontier_has_no_dupefilter_unless_a_collection_is_named():
    assert CollectionDupeFilter.for_frontier(get_crawler(Any)) is None


@WITHOUT_REACTOR
async def test_a_collection_of_that_name_and_another_type_is_not_taken_for_an_empty_one(connected):
    async with connected() as dupefilter:
        dupefilter.note_stored([(b"x" * 20, "http://example.com/")])
    async with connected(DUPEFILTER_COLLECTION_TYPE="cs") as dupefilter:
        failure = Session.of(dupefilter._crawler).failure
    assert isinstance(failure, SettingError)
    assert "is cs, but collection seen is of type s. Set it to that type, use another name" in str(failure)


# ── crawls under Scrapy's scheduler ──


class Runs:
    """Crawls of the project that use one server, or one proxy before it."""

    def __init__(self, folder: Path, server: RunningServer, site: str, number: int) -> None:
        self._project = Project(folder, SPIDERS, SETTINGS)
        self._server = server
        self._site = site
        self.number = number

    def start(self, spider: str, *settings: str, url: str = "") -> Running:
        given = [
            *(f"PLATFORM_URL={url or self._server.url}", f"PLATFORM_API_KEY={self._server.platform_key}"),
            *(f"PLATFORM_PROJECT={self.number}", *settings),
        ]
        arguments = [argument for setting in given for argument in ("-s", setting)]
        return self._project.start(spider, "-a", f"site={self._site}", *arguments)

    def crawl(self, spider: str, *settings: str) -> Crawl:
        return self.start(spider, *settings).end()

    def stored(self) -> dict[str, list[str]]:
        """The URLs of the items of each job."""

        async def ask(client: PlatformClient) -> dict[str, list[str]]:
            jobs: dict[str, list[str]] = {}
            for job in (await client.jobs.list(self.number)).jobs:
                jobs[job.id] = [item["url"] for item in await collect(client.items.iter(key(job.id)))]
            return jobs

        return ask_server(self._server.url, self._server.platform_key, ask)

    def recorded(self, kind: str = "s") -> list[str]:
        """The URLs of the collection's records."""

        async def ask(client: PlatformClient) -> list[str]:
            return [record["url"] for record in (await records_of(client, self.number, kind)).values()]

        return sorted(ask_server(self._server.url, self._server.platform_key, ask))


@pytest.fixture
def runs(tmp_path, server, site, number) -> Runs:
    return Runs(tmp_path, server, site.url, number)


def kill(running: Running) -> None:
    """End it as a power cut does."""
    running.process.kill()
    running.process.wait()


@pytest.mark.parametrize("kind", ["s", pytest.param("cs", marks=pytest.mark.full)])
def test_a_second_crawl_skips_what_the_first_has_stored(runs, site, kind):
    pages = sorted(f"{site.url}/page/{number}" for number in range(site.pages))
    first = runs.crawl("products", f"DUPEFILTER_COLLECTION_TYPE={kind}")
    assert (first.reason, first.errors, first.stat("item_scraped_count")) == ("finished", [], site.pages)
    assert first.stat("dupefilter/filtered") == 1, "the crawl's own duplicate"
    assert runs.recorded(kind) == pages
    second = runs.crawl("products", f"DUPEFILTER_COLLECTION_TYPE={kind}")
    assert (second.reason, second.stat("item_scraped_count")) == ("finished", 0)
    assert second.stat("dupefilter/collection/loaded") == site.pages
    assert second.stat("dupefilter/collection/hits") == second.stat("dupefilter/filtered") == site.pages + 1
    assert site.hits["/"] == 2, "start requests are never skipped"
    assert f"Collection seen: {site.pages} fingerprints" in second.log


def test_start_requests_are_never_skipped_and_their_own_duplicates_are(runs, site):
    for _ in range(2):
        assert runs.crawl("start").stat("item_scraped_count") == 1
    assert site.hits["/page/1"] == 2


@pytest.mark.long
def test_a_page_without_an_item_is_fetched_again(runs, site):
    runs.crawl("empty")
    assert len(runs.recorded()) == site.pages - 1
    assert runs.crawl("products").stat("item_scraped_count") == 1
    assert site.hits["/page/7"] == 2


@pytest.mark.long
def test_keys_that_are_no_fingerprints_skip_nothing(runs, site, server):
    body = encode({"_key": name} for name in ("about", "12 34", "ABCD"))

    async def ask(client: PlatformClient) -> None:
        await client.collections.write(runs.number, "s", "seen", body)

    ask_server(server.url, server.platform_key, ask)
    crawl = runs.crawl("products")
    assert crawl.stat("item_scraped_count") == site.pages
    assert "Collection seen has 3 keys that are not fingerprints" in crawl.log


@pytest.mark.long
def test_a_wrong_type_is_reported_in_one_line(runs):
    crawl = runs.crawl("products", "DUPEFILTER_COLLECTION_TYPE=vs")
    assert crawl.returncode != 0
    (error,) = crawl.errors
    assert "DUPEFILTER_COLLECTION_TYPE must be s or cs" in error
    assert "Traceback" not in crawl.log


@pytest.mark.long
def test_a_killed_crawl_has_not_seen_what_it_did_not_store(runs, site, server, monkeypatch):
    """Killed when every page is scraped and most items are not stored, because the platform does not take them."""
    sent, respond = threading.Event(), site.respond

    def items_fail_after_a_while(method: str, path: str, number: int) -> Fault | None:
        if method != "POST" or not path.startswith("/items/"):
            return None
        sent.set()
        return Fault.UNAVAILABLE if number >= 2 else None

    def held(path: str, seen: int, body: bytes) -> Answer:
        # Half of the pages follow the first items, however slow the machine is.
        if sum(site.hits.values()) > site.pages // 2:
            sent.wait(TIMEOUT)
        return respond(path, seen, body)

    monkeypatch.setattr(site, "respond", held)
    with FaultProxy(server.url, items_fail_after_a_while) as proxy:
        running = runs.start("products", url=proxy.url)
        eventually(lambda: sum(site.hits.values()) == site.pages + 1 and bool(proxy.shown) and bool(runs.recorded()))
        kill(running)
    (stored,) = runs.stored().values()
    recorded = runs.recorded()
    assert 0 < len(recorded) <= len(stored) < site.pages
    assert set(recorded) <= set(stored)
    again = runs.crawl("products")
    assert again.stat("dupefilter/collection/loaded") == len(recorded)
    pages = sorted(f"{site.url}/page/{number}" for number in range(site.pages))
    second = max(runs.stored().values(), key=len)
    assert sorted([*recorded, *second]) == pages, "all that was not recorded, and nothing that was"
    assert runs.recorded() == pages


@pytest.mark.long
@pytest.mark.parametrize(
    "hits", [pytest.param(2, marks=pytest.mark.full), 25, pytest.param(55, marks=pytest.mark.full)]
)
def test_a_crawl_killed_anywhere_loses_no_page(runs, site, hits):
    running = runs.start("products", "CONCURRENT_REQUESTS=4")
    eventually(lambda: sum(site.hits.values()) >= hits)
    kill(running)
    assert set(runs.recorded()) <= set(itertools.chain(*runs.stored().values()))
    assert runs.crawl("products").reason == "finished"
    pages = {f"{site.url}/page/{number}" for number in range(site.pages)}
    assert set(itertools.chain(*runs.stored().values())) == set(runs.recorded()) == pages


def test_a_request_is_seen_the_second_time():
    dupefilter = CollectionDupeFilter.from_crawler(get_crawler(Any))
    assert not dupefilter.request_seen(Request("http://example.com/?b=2&a=1"))
    assert dupefilter.request_seen(Request("http://example.com/?a=1&b=2"))
