"""Real pages, served under their own names, through the extraction service into the platform."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.server.extraction.bans.detection import Received, ban_of
from tests.acceptance.real_pages.folder import FOLDER
from tests.acceptance.real_pages.mirror import serving

pytestmark = pytest.mark.real_pages

SPIDER = Path(__file__).parent / "articles_spider.py"
#: Characters below which a text is no article but a menu, a notice or a headline.
SHORTEST_BODY = 300
#: The host whose script, in a browser, shows this instead of the text where its other files are missing, as here.
NOT_AVAILABLE = ("https://www.msn.com/", "This page is not available right now")


@pytest.fixture(scope="session")
def pages() -> dict[str, bytes]:
    index: dict[str, str] = json.loads((FOLDER / "index.json").read_text("utf-8"))
    return {url: gzip.decompress((FOLDER / name).read_bytes()) for name, url in index.items()}


@pytest.fixture(scope="session")
def ports(pages: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    with serving(pages, tmp_path_factory.mktemp("certificate")) as found:
        yield found


def test_no_page_is_taken_for_a_ban(pages: dict[str, bytes]) -> None:
    for url, body in pages.items():
        for status in (200, 403, 404, 503):
            for rendered in (False, True):
                ban = ban_of(Received(url, url, status, {"content-type": "text/html"}, body, rendered))
                assert ban is None or (status == 403 and not ban.certain), url


def crawl(folder: Path, pages: dict[str, bytes], ports: dict[str, int], extract_from: str) -> list[dict[str, Any]]:
    """The items that a crawl of the pages has stored, as the command shows them."""
    (folder / "pages.json").write_text(json.dumps(list(pages)))
    rules = f"*:80=127.0.0.1:{ports['http']},*:443=127.0.0.1:{ports['https']}"
    settings = ["-s", f"SERVER_CONNECT_TO={rules}", "-s", "SERVER_VERIFY_TLS=False"]
    arguments = ["-a", f"pages={folder / 'pages.json'}", "-a", f"extract_from={extract_from}"]
    scrapy = [sys.executable, "-m", "scrapy"]
    crawled = subprocess.run(
        [*scrapy, "runspider", str(SPIDER), *settings, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert crawled.returncode == 0, crawled.stderr[-4000:]
    shown = subprocess.run(
        [*scrapy, "platform", "items", "--json"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines()]


@pytest.mark.parametrize("extract_from", ["httpResponseBody", pytest.param("browserHtml", marks=pytest.mark.full)])
@pytest.mark.long
def test_an_article_of_every_page_is_stored(
    extract_from: str, tmp_path: Path, pages: dict[str, bytes], ports: dict[str, int]
) -> None:
    articles = crawl(tmp_path, pages, ports, extract_from)
    assert sorted(article["asked"] for article in articles) == sorted(pages)
    without_headline = [article["asked"] for article in articles if not article.get("headline")]
    bodies = {article["asked"]: article.get("articleBody") or "" for article in articles}
    too_short = [url for url, body in bodies.items() if len(body) < SHORTEST_BODY]
    if extract_from == "browserHtml":
        host, notice = NOT_AVAILABLE
        headlines = {article["asked"]: article.get("headline") for article in articles}
        too_short = [url for url in too_short if not (url.startswith(host) and headlines[url] == notice)]
    assert not without_headline
    assert not too_short
