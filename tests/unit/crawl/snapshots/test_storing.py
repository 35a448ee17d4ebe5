"""The queue of snapshots: bounded, never in the way, and honest about what it did not store."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import HtmlResponse

from scrapy_ext.api.platform.snapshots import Missing, Snapshot
from scrapy_ext.crawl.snapshots import storing
from scrapy_ext.crawl.snapshots.pages import FailedPage
from scrapy_ext.crawl.snapshots.storing import SnapshotFolder, SnapshotQueue
from tests.support.crawlers import get_crawler


def failed_page(number: int, body: bytes = b"<p>a page") -> FailedPage:
    url = f"https://shop.example/{number}"
    snapshot = Snapshot(time=1_700_000_000_000 + number, url=url, status=200, error="KeyError", callback="parse")
    return FailedPage(snapshot, HtmlResponse(url, body=body), Missing.DIRECT)


class Stored:
    """A queue before a folder."""

    def __init__(self, folder: Path, most: int = 3) -> None:
        self.folder = folder
        self.stats = get_crawler().stats
        self.queue = SnapshotQueue(SnapshotFolder(folder), most, self.stats)

    def offer(self, *pages: FailedPage) -> None:
        for page in pages:
            if self.queue.has_room:
                self.queue.add(page)

    @property
    def counts(self) -> list[int]:
        return [self.stats.get_value(f"extract_api/snapshots/{name}", 0) for name in ("stored", "skipped", "failed")]


async def test_pages_become_files(tmp_path: Path) -> None:
    stored = Stored(tmp_path / "new" / "folder")
    stored.offer(failed_page(1))
    await stored.queue.close()
    described, page = sorted(stored.folder.iterdir(), reverse=True)
    assert page.name.startswith("20231114-221320-KeyError-")
    assert (page.suffix, page.read_bytes()) == (".html", b"<p>a page")
    assert json.loads(described.read_bytes()) == {
        "time": 1_700_000_000_001,
        "url": "https://shop.example/1",
        "status": 200,
        "error": "KeyError",
        "callback": "parse",
        "format": "html",
        "page": page.name,
        "no_screenshot": "direct",
    }
    assert stored.counts == [1, 0, 0]


async def test_no_more_than_the_most_are_stored_and_the_rest_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stored = Stored(tmp_path, most=2)
    for number in range(3):
        stored.offer(failed_page(number))
        await stored.queue.close()
    stored.offer(*map(failed_page, range(2)))
    await stored.queue.close()
    assert stored.counts == [2, 3, 0]
    assert len(list(tmp_path.glob("*.html"))) == 2
    assert caplog.text.count("2 are the most of a crawl") == 1


async def test_snapshots_of_earlier_runs_count(tmp_path: Path) -> None:
    class Resumed(SnapshotFolder):
        async def count(self) -> int:
            await asyncio.sleep(0.01)
            return 2

    stored = Stored(tmp_path)
    stored.queue = SnapshotQueue(Resumed(tmp_path), 3, stored.stats)
    stored.offer(failed_page(1))
    await asyncio.sleep(0)
    # Pages that fail while the earlier ones are counted.
    stored.offer(*map(failed_page, range(2)))
    await stored.queue.close()
    stored.offer(failed_page(4))
    await stored.queue.close()
    assert stored.counts == [1, 3, 0]
    assert len(list(tmp_path.glob("*.html"))) == 1


async def test_pages_that_wait_are_bounded(tmp_path: Path) -> None:
    stored = Stored(tmp_path, most=100)
    large = bytes(storing.WAITING // 2)
    stored.offer(*(failed_page(number, large) for number in range(5)))
    assert stored.counts[1] == 3
    await stored.queue.close()
    assert stored.counts == [2, 3, 0]
    stored.offer(failed_page(6))
    await stored.queue.close()
    assert stored.counts == [3, 3, 0]


async def test_a_store_that_fails_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    stored = Stored(tmp_path / "file")
    stored.offer(*map(failed_page, range(3)))
    await stored.queue.close()
    assert stored.counts == [0, 0, 3]
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "could not be stored" in warning.getMessage()


async def test_the_end_of_a_crawl_waits_for_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(SnapshotFolder):
        async def write(self, *_: Any) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(storing, "GRACE", 0.01)
    stored = Stored(tmp_path)
    stored.queue = SnapshotQueue(Endless(tmp_path), 5, stored.stats)
    stored.offer(*map(failed_page, range(3)))
    await stored.queue.close()
    assert stored.counts == [0, 0, 3]


@pytest.mark.parametrize("error", ["../../etc/passwd", "A B\x00", "x" * 500])
async def test_names_of_files_have_only_plain_characters(tmp_path: Path, error: str) -> None:
    stored = Stored(tmp_path / "folder")
    page = failed_page(1)
    page.snapshot.error = error
    page.snapshot.format = "/../x"
    stored.offer(page)
    await stored.queue.close()
    assert stored.counts == [1, 0, 0]
    assert all(path.is_file() for path in (tmp_path / "folder").iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
