"""`scrapy platform frontier add`: requests from arguments, lines and spiders go into a frontier, or nothing of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.api.platform import JobKey
from tests.support import forked
from tests.support.crawls import Project, ask_server
from tests.support.servers import ForkedServer, RunningServer

SPIDERS = """
import scrapy
from scrapy.utils.request import fingerprint

class Shop(scrapy.Spider):
    name = "shop"
    custom_settings = {"EXTRACT_API_ENABLED": False}
    async def start(self):
        for number in range(3):
            yield scrapy.Request(f"https://shop.example/{number}", self.parse_product, cb_kwargs={"n": (number,)})
    def start_twice(self):
        return [scrapy.Request("https://shop.example/", dont_filter=True)] * 2
    def start_bad(self):
        yield scrapy.Request("https://shop.example/", lambda response: None)
    def parse_product(self, response, n):
        pass

class OwnFingerprints:
    def fingerprint(self, request):
        return b"own" + fingerprint(request)[:8]

class Own(Shop):
    name = "own"
    custom_settings = {"REQUEST_FINGERPRINTER_CLASS": OwnFingerprints}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    server = ForkedServer(tmp_path_factory.mktemp("data"))
    yield server
    server.stop()


class Adding:
    """The command in a project, and what the frontier has after it."""

    def __init__(self, folder: Path, server: RunningServer, frontier: str) -> None:
        self.frontier = frontier
        self._server = server
        keys = f"PLATFORM_URL = {server.url!r}\nPLATFORM_API_KEY = {server.platform_key!r}\n"
        self._project = Project(folder / "project", SPIDERS, keys)

    def add(self, *arguments: str, typed: str = "", target: str = "", code: int = 0) -> Any:
        """Run it; return its result, or what it says if it fails."""
        command = [sys.executable, "-m", "scrapy", "platform", "frontier", "add", target or self.frontier]
        done = forked.run([*command, *arguments], cwd=self._project.folder, input=typed)
        assert done.returncode == code, done.stderr[-3000:]
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    def counts(self, *arguments: str, typed: str = "") -> tuple[int, int, int]:
        result = self.add(*arguments, typed=typed)
        return result["new"], result["known"], result["skipped"]

    def queued(self) -> dict[str, dict[str, Any]]:
        """The forms in the frontier by fingerprint."""

        async def read(client: Any) -> dict[str, dict[str, Any]]:
            return {
                fp: form
                for slot in await client.frontier.slots(1, self.frontier)
                for batch in await client.frontier.read(1, self.frontier, slot, 10_000)
                for fp, form in batch.requests
            }

        return ask_server(self._server.url, self._server.platform_key, read)

    def ask(self, ask: Any) -> Any:
        return ask_server(self._server.url, self._server.platform_key, ask)


@pytest.fixture
def adding(tmp_path: Path, server: RunningServer, request: pytest.FixtureRequest) -> Adding:
    return Adding(tmp_path, server, request.node.name[:100].replace("[", "-").replace("]", ""))


def test_urls_and_lines_are_queued_and_counted(adding: Adding, tmp_path: Path) -> None:
    assert adding.counts("https://a.example/", "https://b.example/") == (2, 0, 0)
    lines = ["https://a.example/", "", '{"url": "https://c.example/", "callback": "parse_product", "priority": 3}']
    assert adding.counts(typed="\n".join(lines)) == (1, 1, 0)
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(["https://a.example/", *(f"https://d.example/{number}" for number in range(2500))]))
    assert adding.counts("--file", str(file)) == (2500, 1, 0)
    assert len(adding.queued()) == 2503


def test_a_bad_line_anywhere_pushes_nothing_and_is_named(adding: Adding, tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    lines = [f"https://d.example/{number}" for number in range(3000)] + ['{"url": "https://e.example/", "prio": 1}']
    file.write_text("\n".join(lines))
    told = adding.add("--file", str(file), code=1)
    assert f"nothing is pushed. {file}, line 3001: has an unknown member 'prio'" in told
    assert adding.queued() == {}


@pytest.mark.long
def test_with_skip_bad_a_line_keeps_its_number(adding: Adding) -> None:
    again = '{"url": "https://a.example/", "dont_filter": true}'
    typed = "\n".join([again, "bad", "", again])
    assert adding.counts("--skip-bad", "--push-id", "one", typed=typed) == (2, 0, 1)
    assert adding.counts("--push-id", "one", typed="\n".join([again, "", "", again])) == (0, 2, 0)
    assert adding.counts("--push-id", "two", typed=again) == (1, 0, 0)


def test_what_a_spiders_method_yields_is_pushed_in_the_form_of_a_crawl(adding: Adding) -> None:
    assert adding.counts("--spider", "shop", "--method", "start") == (3, 0, 0)
    forms = sorted(adding.queued().values(), key=lambda form: form["url"])
    assert forms[1] == {
        "v": 1,
        "url": "https://shop.example/1",
        "callback": "parse_product",
        "cb_kwargs": {"n": {"$type": "tuple", "value": [1]}},
    }


@pytest.mark.long
def test_a_method_may_return_a_list_and_must_return_what_can_be_stored(adding: Adding) -> None:
    assert adding.counts("--spider", "shop", "--method", "start_twice") == (2, 0, 0)
    told = adding.add("--spider", "shop", "--method", "start_bad", code=1)
    assert "cannot be pushed: its callback" in told
    assert "'shop' has no method 'begin'" in adding.add("--spider", "shop", "--method", "begin", code=1)


@pytest.mark.long
def test_a_spider_checks_callbacks_and_makes_the_fingerprints(adding: Adding) -> None:
    told = adding.add("--spider", "shop", typed='{"url": "https://a/", "callback": "parse_prices"}', code=1)
    assert "line 1: cannot run: spider 'shop' has no method 'parse_prices'" in told
    assert adding.counts("https://a.example/", "--spider", "own") == (1, 0, 0)
    (fp,) = adding.queued()
    assert fp.startswith(b"own".hex())
    assert "there is no spider 'nobody'; use one of: own, shop" in adding.add(
        "https://a/", "--spider", "nobody", code=1
    )


@pytest.mark.long
def test_a_job_is_named_by_its_key(adding: Adding) -> None:
    async def begin(client: Any) -> JobKey:
        pushed = await client.jobq.push(1, "shop", state="running")
        return JobKey.parse(pushed.key)

    key = adding.ask(begin)
    told = adding.add("https://a.example/", target=str(key), code=1)
    assert f"the frontier of job {key}: takes no requests" in told
    assert "FRONTIER_KEEP_ALIVE" in told
    adding.ask(lambda client: client.jobs.update(key, {"frontier": adding.frontier}))
    assert adding.add("https://a.example/", target=str(key))["frontier"] == adding.frontier
    adding.ask(lambda client: client.jobq.update(1, key, state="finished", close_reason="finished"))
    told = adding.add("https://b.example/", target=str(key), code=1)
    assert f"job {key} does not run. Its frontier {adding.frontier} keeps requests for the next crawl" in told
    assert "there is no job 1/99/1" in adding.add("https://a/", target="1/99/1", code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("https://a/", "--file", "x"), "URLs, --file and --method exclude each other"),
        pytest.param(("--method", "start"), "--method needs the spider of the method", marks=pytest.mark.full),
        pytest.param(("--file", "missing.jsonl"), "missing.jsonl cannot be read", marks=pytest.mark.full),
    ],
)
def test_contradicting_arguments_are_refused(adding: Adding, arguments: tuple[str, ...], message: str) -> None:
    assert message in adding.add(*arguments, code=1)
