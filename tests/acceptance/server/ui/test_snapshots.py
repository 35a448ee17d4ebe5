"""Snapshots in a real browser: the screenshot is seen, the source is read, and nothing of the page runs."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from scrapy_ext.api.platform import JobKey, snapshots
from scrapy_ext.api.platform.snapshots import Content, Part, Snapshot
from tests.acceptance.server.ui.conftest import OpenPage, keep, violations
from tests.support.http import Http
from tests.support.servers import RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

#: Others are those of other tests.
_projects = itertools.count(3001)
TIME = 1_700_000_000_000
HTML = """<!doctype html><html><head><script>window.ran=1;document.title='ran'</script>
<meta http-equiv=refresh content="0;url=https://elsewhere.example/"><base href="https://elsewhere.example/"></head>
<body onload="window.ran=1"><form id=f action=/logout method=post></form><script>f.submit()</script>
<iframe srcdoc="<script>top.ran=1</script>"></iframe></textarea></pre><img src=x onerror=window.ran=1>
<h1>Aurora Desk Lamp</h1><p>A lamp for desks, without a price.</p></body></html>"""


def picture(width: int = 640, height: int = 360) -> bytes:
    """A PNG with a band of colour."""
    row = b"\x00" + bytes(channel for x in range(width) for channel in (x * 255 // width, 96, 160))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")
    )


@pytest_asyncio.fixture(loop_scope="session")
async def job(ui_server: RunningServer) -> AsyncIterator[str]:
    """The path of a job with two snapshots, the second without a screenshot."""
    png = picture()
    both = {Part.PAGE: HTML.encode(), Part.SCREENSHOT: png}
    async with Http(ui_server.url, ui_server.platform_key) as http:
        project = next(_projects)
        pushed = await http.post(f"/jobq/{project}/push", [{"spider": "lamps", "state": "finished"}])
        key = str(pushed.lines[0]["key"])
        for number, parts in enumerate((both, {Part.PAGE: HTML.encode()})):
            content = {part.value: Content(len(data)) for part, data in parts.items()}
            snapshot = Snapshot(
                time=TIME + number,
                url=f"https://shop.example/lamps/{number}",
                status=200,
                error="KeyError",
                message="'price'",
                callback="parse_lamp",
                format="html",
                no_screenshot="" if len(parts) == 2 else "not-requested",
                **content,  # type: ignore[arg-type]
            )
            lines = snapshots.lines_of(JobKey.parse(key), f"{TIME + number}-0a1b2c3d", snapshot, parts)
            assert (await http.post(f"/collections/{project}/cs/scrapy_snapshots", b"".join(lines))).status == 200
        yield f"/ui/{key}"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.long
async def test_the_screenshot_is_seen_and_nothing_of_the_page_runs(
    open_page: OpenPage, job: str, scheme: str, width: int
) -> None:
    page = await open_page(job, scheme=scheme, width=width)
    await page.get_by_role("link", name="snapshots 2").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    assert await violations(page) == []
    await keep(page, f"snapshots-{scheme}-{width}")
    await page.locator("tbody tr").first.get_by_role("link").first.click()
    screenshot = page.get_by_role("img")
    await expect(screenshot).to_be_visible()
    assert await screenshot.evaluate("image => image.naturalWidth") == 640
    await expect(page.get_by_label("Source of the page")).to_contain_text("<h1>Aurora Desk Lamp</h1>")
    await expect(page.get_by_role("button", name="Log out")).to_be_visible()
    assert await page.evaluate("window.ran") is None
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert await violations(page) == []
    await keep(page, f"snapshot-{scheme}-{width}")
    await page.go_back()
    await page.locator("tbody tr").last.get_by_role("link").first.click()
    await expect(page.get_by_text('did not have the field "screenshot": True')).to_be_visible()
    assert await page.locator("main img").count() == 0


async def test_the_source_of_a_hostile_page_is_text_in_an_origin_of_its_own(open_page: OpenPage, job: str) -> None:
    page = await open_page(f"{job}/snapshots/{TIME}-0a1b2c3d/page")
    assert await page.evaluate("document.contentType") == "text/plain"
    assert await page.evaluate("document.body.innerText") == HTML
    assert await page.evaluate("[window.ran, document.title, self.origin]") == [None, "", "null"]
    await page.goto(job)
    await expect(page.get_by_role("button", name="Log out")).to_be_visible()
