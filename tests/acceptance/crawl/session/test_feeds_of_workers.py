"""``-o``, ``-O`` and ``FEEDS`` with ``CRAWL_WORKERS``: the files that one worker writes, with each item once."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from scrapy_ext.api.platform.jobs import CRAWL_STATS
from scrapy_ext.jobprocess import proc
from tests.support.crawls import Crawl, Project, Running, key
from tests.support.eventually import eventually
from tests.support.group_crawls import Workers
from tests.support.servers import RunningServer
from tests.support.sites import Answer, ListeningSite

JOB = "1/1/1"
PAGES = 24
SPIDERS = """
import asyncio
import os
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import scrapy
from scrapy.extensions.feedexport import BlockingFeedStorage, ItemFilter


class Kettle(scrapy.Item):
    name = scrapy.Field()
    price = scrapy.Field(serializer=lambda price: f"{price} EUR")
    seen = scrapy.Field()
    stock = scrapy.Field()


@dataclass
class Review:
    text: str
    stars: int | None = None
    tags: list = field(default_factory=list)


class Other(scrapy.Item):
    pass


class Good(ItemFilter):
    # Reviews of the first ten pages.
    def accepts(self, item):
        return isinstance(item, Review) and len(item.text) == len("good 0")


class Refusing(BlockingFeedStorage):
    def __init__(self, uri, *, feed_options=None):
        pass

    def _store_in_thread(self, file):
        raise OSError("the bucket refuses the file")


SEEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone.utc)


class Kettles(scrapy.Spider):
    name = "kettles"

    async def start(self):
        for chain in range(8):
            yield self.page(chain, 0, 0)

    def page(self, chain, number, repeated):
        return scrapy.Request(f"{self.site}/{chain}/{number}/{repeated}", meta={"frontier_slot": str(chain)})

    async def parse(self, response):
        Path("workers", str(os.getpid())).touch()
        chain, number, repeated = map(int, response.url.split("/")[-3:])
        if number == 1 and not Path("go").exists():
            await asyncio.sleep(0.02)
            yield self.page(chain, number, repeated + 1)
            return
        for item in self.items(3 * chain + number):
            yield item
        if number < 2:
            yield self.page(chain, number + 1, 0)

    def items(self, number):
        match getattr(self, "kind", "dict"):
            case "dict":
                yield {"number": number, "name": f"Kettle {number} ‰", "parts": ["a", "b"], "price": 1.5, "day": None}
            case "class":
                yield Kettle(name=f"Kettle {number}", price=Decimal("9.90"), seen=SEEN)
            case "both":
                yield Kettle(name=f"Kettle {number}", price=Decimal("9.90"))
                yield Review(f"good {number}", tags=["x", "y"])
"""
#: A feed that appends, as with ``-o``, and one that replaces its file, as with ``-O``.
BOTH = {
    "appended.jsonl": {"format": "jsonlines", "overwrite": False},
    "replaced.json": {"format": "json", "overwrite": True},
}
SETTINGS = """
ROBOTSTXT_OBEY = False
CONCURRENT_REQUESTS = 8
CONCURRENT_REQUESTS_PER_DOMAIN = 32
FRONTIER_LEASE_TIME = 600
LOG_LEVEL = "INFO"
EXTRACT_API_ENABLED = False
"""


class Pages(ListeningSite):
    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, b"<p>")


class Crawls:
    """A project whose crawls write feeds. After a third of its items, a crawl goes on without some until it is let
    finish."""

    def __init__(self, folder: Path, site: Pages) -> None:
        self.site = site
        self.project = Project(folder / "crawl", SPIDERS, SETTINGS)
        self.folder = self.project.folder

    def start(self, workers: int, *arguments: str, may_finish: bool = True) -> Running:
        """Start a crawl; return when all its workers have crawled, and every chain has a first item."""
        shutil.rmtree(self.folder / "workers", ignore_errors=True)
        (self.folder / "workers").mkdir()
        (self.folder / "go").unlink(missing_ok=True)
        site = f"site=http://127.0.0.1:{self.site.port}"
        running = self.project.start("kettles", "-a", site, "-s", f"CRAWL_WORKERS={workers}", *arguments)
        eventually(
            lambda: os.listdir(self.folder / "workers"),
            lambda names: len(names) >= workers,
            details=running.log.read_text,
        )
        firsts = {f"/{chain}/1/1" for chain in range(8)}
        eventually(lambda: firsts <= set(self.site.hits), details=running.log.read_text)
        if may_finish:
            (self.folder / "go").touch()
        return running

    def crawl(self, workers: int, *arguments: str) -> Crawl:
        return self.start(workers, *arguments).end()

    def stored(self) -> list[dict]:
        """The items on the platform."""
        return self.project.items(JOB)

    def file(self, name: str) -> Path:
        return self.folder / name

    def lives(self) -> list[int]:
        """The processes of the project."""
        return [pid for pid in proc.table() if _folder_of(pid) == str(self.folder)]

    def kill(self) -> None:
        """Kill all workers, and what they have started."""
        for pid in self.lives():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(self.lives, lambda lives: not lives)


def _folder_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


@pytest.fixture
def crawls(tmp_path: Path) -> Iterator[Crawls]:
    site = Pages()
    made = Crawls(tmp_path, site)
    yield made
    made.kill()
    site.close()


def content(path: Path) -> object:
    """Items of a file, whatever their order, and its columns."""
    match path.suffix:
        case ".json":
            return sorted(map(json.dumps, json.loads(path.read_bytes())))
        case ".jsonl":
            return sorted(path.read_bytes().splitlines())
        case ".csv":
            header, *rows = csv.reader(path.read_text().splitlines())
            return header, sorted(rows)
        case ".xml":
            return sorted(map(etree.tostring, etree.parse(path).getroot()))


def numbers(path: Path) -> list[int]:
    """The numbers of the kettles in a file of JSON or JSON lines."""
    text = path.read_text()
    items = json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())
    return sorted(item["number"] for item in items)


def check(crawls: Crawls, *names: str) -> None:
    """Each file has the items of the platform, each once. A page that a killed worker had crawled is crawled again, and
    may have another item than before, since it may be let finish by then."""
    stored = sorted(item["number"] for item in crawls.stored())
    assert set(stored) == set(range(PAGES))
    for name in names:
        assert numbers(crawls.file(name)) == stored, name


def finished(crawl: Crawl) -> None:
    assert (crawl.returncode, crawl.reason) == (0, "finished"), crawl.log[-3000:]
    assert crawl.errors == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("class", ""),
        ("both", ""),
        pytest.param("dict", "", marks=pytest.mark.full),
        pytest.param("dict", "number,price", marks=pytest.mark.full),
        pytest.param("class", "seen,stock,name", marks=pytest.mark.full),
    ],
)
def test_several_workers_write_the_files_of_one(crawls, kind, fields):
    files = ("items.json", "items.jsonl", "items.csv", "items.xml")
    for workers in (1, 2):
        outputs = [word for file in files for word in ("-o", f"{workers}/{file}")]
        finished(crawls.crawl(workers, "-a", f"kind={kind}", "-s", f"FEED_EXPORT_FIELDS={fields}", *outputs))
    for file in files:
        # The columns of a CSV file are those of its first item, which is of either class.
        if (kind, file) != ("both", "items.csv"):
            assert content(crawls.file(f"2/{file}")) == content(crawls.file(f"1/{file}")), file


def test_several_workers_write_a_file(crawls):
    finished(crawls.crawl(2, "-o", "items.jsonl"))
    assert numbers(crawls.file("items.jsonl")) == list(range(PAGES))


@pytest.mark.long
def test_the_options_of_feeds_hold(crawls):
    feeds = {
        "kettles.jsonl": {"format": "jsonlines", "item_classes": ["project.spiders.Kettle"]},
        "good.jsonl": {"format": "jsonlines", "item_filter": "project.spiders.Good"},
        "parts/%(batch_id)d.jsonl.gz": {
            "format": "jsonlines",
            "batch_item_count": 10,
            "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"],
        },
        "none.json": {"format": "json", "item_classes": ["project.spiders.Other"]},
    }
    finished(crawls.crawl(2, "-a", "kind=both", "-s", f"FEEDS={json.dumps(feeds)}"))
    kettles = [json.loads(line)["name"] for line in crawls.file("kettles.jsonl").read_text().splitlines()]
    assert Counter(kettles) == Counter(f"Kettle {number}" for number in range(PAGES))
    good = [json.loads(line) for line in crawls.file("good.jsonl").read_text().splitlines()]
    assert Counter(item["text"] for item in good) == Counter(f"good {number}" for number in range(10))
    parts = {path.name: gzip.decompress(path.read_bytes()) for path in crawls.file("parts").iterdir()}
    assert {name: len(part.splitlines()) for name, part in parts.items()} == {
        **{f"{number}.jsonl.gz": 10 for number in range(1, 5)},
        "5.jsonl.gz": 8,
    }
    assert json.loads(crawls.file("none.json").read_text()) == []


@pytest.mark.long
def test_a_killed_crawl_that_is_resumed_has_each_item_once(crawls):
    outputs = ("-s", f"FEEDS={json.dumps(BOTH)}")
    crawls.start(2, *outputs, may_finish=False)
    crawls.kill()
    assert not crawls.file("appended.jsonl").exists()
    finished(crawls.crawl(3, *outputs, "-s", f"PLATFORM_JOB={JOB}"))
    check(crawls, "appended.jsonl", "replaced.json")


@pytest.mark.long
def test_an_interrupted_crawl_writes_its_items_and_a_resumed_one_the_others(crawls):
    outputs = ("-s", f"FEEDS={json.dumps(BOTH)}")
    running = crawls.start(2, *outputs, may_finish=False)
    running.process.send_signal(signal.SIGINT)
    crawl = running.end()
    assert (crawl.returncode, crawl.reason) == (0, "shutdown")
    stored = sorted(item["number"] for item in crawls.stored())
    assert len(stored) == 8
    assert numbers(crawls.file("appended.jsonl")) == stored
    assert numbers(crawls.file("replaced.json")) == stored
    finished(crawls.crawl(2, *outputs, "-s", f"PLATFORM_JOB={JOB}"))
    assert numbers(crawls.file("appended.jsonl")) == list(range(PAGES))
    assert numbers(crawls.file("replaced.json")) == list(range(PAGES))


@pytest.mark.long
def test_another_worker_writes_the_file_when_the_command_is_killed(crawls):
    running = crawls.start(2, "-o", "items.jsonl", may_finish=False)
    running.process.kill()
    running.process.wait()
    (crawls.folder / "go").touch()
    eventually(crawls.lives, lambda lives: not lives, details=running.log.read_text)
    check(crawls, "items.jsonl")


@pytest.mark.long
def test_a_feed_that_fails_does_not_concern_others(crawls):
    crawls.file("file").touch()
    outputs = ("-o", "file/items.jsonl", "-o", "items.jsonl", "-o", "refusing://bucket/items.jsonl:jsonlines")
    crawl = crawls.crawl(2, *outputs, "-s", 'FEED_STORAGES={"refusing": "project.spiders.Refusing"}')
    # As in Scrapy, the status is that of the crawl.
    assert (crawl.returncode, crawl.reason) == (0, "finished")
    assert numbers(crawls.file("items.jsonl")) == list(range(PAGES))
    errors = [line.partition("ERROR: ")[2] for line in crawl.errors]
    assert "Error storing jsonlines feed (24 items) in: refusing://bucket/items.jsonl" in errors
    assert any(line.startswith("Feed file/items.jsonl could not be written: ") for line in errors)
    assert f"Feeds are not complete. Write the items to a file: scrapy platform items {JOB} --output FILE" in errors
    stats = crawls.project.stored(lambda client, _project: client.jobs.metadata(key(JOB)))[CRAWL_STATS]
    assert stats["feedexport/failed_count/FileFeedStorage"] == 1
    assert stats["feedexport/failed_count/Refusing"] == 1
    assert stats["feedexport/success_count/FileFeedStorage"] == 1


@pytest.mark.long
@pytest.mark.parametrize("form", ["pickle", "marshal"])
def test_formats_of_python_are_refused_before_there_is_a_job(crawls, form):
    crawl = crawls.project.crawl("kettles", "-s", "CRAWL_WORKERS=2", "-O", f"items.{form}")
    assert (crawl.returncode, crawl.reason) == (1, "bad_setting")
    assert [line.partition("ERROR: ")[2] for line in crawl.errors] == [
        f"FEEDS has the format {form}, of Python's own values, which items that several workers store as JSON do not "
        "have. Choose another format, as jsonlines. Or crawl with one worker."
    ]
    assert not crawls.file(f"items.{form}").exists()
    assert crawls.project.stored(lambda client, project: client.jobq.count(project)) == 0


@pytest.mark.long
def test_the_last_worker_of_a_node_writes_the_feeds_of_the_project(tmp_path):
    site = Pages()
    feeds = 'EXTRACT_API_ENABLED = False\nFEEDS = {"items.jsonl": {"format": "jsonlines", "overwrite": True}}\n'
    with RunningServer(tmp_path / "server") as server:
        workers = Workers(tmp_path, server, f"http://127.0.0.1:{site.port}", PAGES, feeds)
        crawls = workers.end()
        stored = sorted(item["url"] for item in workers.items())
    site.close()
    assert len(stored) == PAGES
    lines = (tmp_path / "project" / "items.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["url"] for line in lines) == stored
    assert sum(crawl.log.count("This worker writes the feeds") for crawl in crawls) == 1
