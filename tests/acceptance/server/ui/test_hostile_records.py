"""Hostile records opened in a real browser: snapshots of any kind of document, and the answers of the API.

Somebody who has typed a key into the dialog of the browser opens the API's paths with the origin of the pages.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, Page
from playwright.async_api import Error as BrowserError

from scrapy_ext.api.platform import JobKey, snapshots
from scrapy_ext.api.platform.snapshots import Content, Part, Snapshot
from tests.acceptance.server.ui.conftest import OpenPage, context_of
from tests.acceptance.server.ui.test_snapshots import picture
from tests.support.http import Http
from tests.support.servers import RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

_RUN = "window.ran = 1; document.title = 'ran'; alert('ran')"
_XHTML = "http://www.w3.org/1999/xhtml"
#: Documents whose scripts a browser may run, by their kind.
DOCUMENTS = {
    "html": f'<!doctype html><script>{_RUN}</script><body onload="{_RUN}"><svg onload="{_RUN}"></svg>'.encode(),
    "xhtml": f'<html xmlns="{_XHTML}"><head/><body><script>{_RUN}</script></body></html>'.encode(),
    "svg": f'<svg xmlns="http://www.w3.org/2000/svg" onload="{_RUN}"><script>{_RUN}</script></svg>'.encode(),
    "xml": f'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#s"?><a><b xmlns="{_XHTML}"><script '
    f'xmlns="{_XHTML}">{_RUN}</script></b></a>'.encode(),
    "mhtml": b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\nContent-Type: text/html"
    b"\r\nContent-Location: http://a.example/\r\n\r\n<script>" + _RUN.encode() + b"</script>\r\n--x--",
    "pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n"
    b"trailer<</Root 1 0 R>>\n<script>" + _RUN.encode() + b"</script>",
    "utf-16": f"\ufeff<script>{_RUN}</script>".encode("utf-16-le"),
    "utf-7": b"+ADw-script+AD4-" + _RUN.encode() + b"+ADw-/script+AD4-",
    "iso-2022-jp": b"\x1b$B<script>\x1b(B<script>" + _RUN.encode() + b"</script>",
    "an image with html": picture() + f"<script>{_RUN}</script>".encode(),
    "a gif of html": b"GIF89a=1;/*<html><script>" + _RUN.encode() + b"</script>*/",
}
_CALM = "window.ran === undefined && document.title !== 'ran'"


@pytest.mark.long
@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_no_document_of_a_snapshot_runs_a_script(
    open_page: OpenPage, http: Http, project: int, kind: str
) -> None:
    data = DOCUMENTS[kind]
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "lamps", "state": "finished"}])
    key, name = str(pushed.lines[0]["key"]), "1700000000000-0a1b2c3d"
    snapshot = Snapshot(
        time=1_700_000_000_000, status=200, url="https://shop.example/", error="KeyError", message="", callback="parse",
        format=kind[:20], page=Content(len(data)), screenshot=Content(len(data)),
    )  # fmt: skip
    parts = {Part.PAGE: data, Part.SCREENSHOT: data}
    lines = snapshots.lines_of(JobKey.parse(key), name, snapshot, parts)
    assert (await http.post(f"/collections/{project}/cs/scrapy_snapshots", b"".join(lines))).status == 200
    page = await open_page(f"/ui/{key}/snapshots/{name}/page")
    assert await page.evaluate("[document.contentType, self.origin]") == ["text/plain", "null"]
    assert await page.evaluate(_CALM)
    assert (await http.get(f"/ui/{key}/snapshots/{name}/screenshot")).status == (200 if "an image" in kind else 404)


#: Answers of the API in each form; those that the browser stores as a file are not opened.
FORMS = ("json", "jl", "xml", "csv&fields=name,html", "text", "xlsx", "msgpack")
ANSWERS = ("items/{key}", "logs/{key}", "requests/{key}", "collections/{project}/s/lamps", "activity/{project}")


@pytest.mark.long
async def test_no_answer_of_the_api_runs_a_script(
    chromium: Browser, ui_server: RunningServer, http: Http, project: int
) -> None:
    context = await context_of(
        chromium, base_url=ui_server.url, http_credentials={"username": ui_server.platform_key, "password": ""}
    )
    page, dialogs, shown = await context.new_page(), list[str](), 0
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    key = await _hostile_job(http, project)
    for path in ANSWERS:
        for form in FORMS:
            shown += await _show(page, f"/{path.format(key=key, project=project)}?format={form}")
            assert await page.evaluate(_CALM), (path, form)
    for path in (
        f"/jobs/{key}",
        f"/api/jobs/list.json?project={project}",
        f"/hcf/{project}/list",
        "/<script>",
        "/v1/extract",
    ):
        shown += await _show(page, path)
        assert await page.evaluate(_CALM), path
    await asyncio.sleep(0.5)
    assert dialogs == []
    assert shown > len(ANSWERS)
    await context.close()


async def _show(page: Page, path: str) -> bool:
    """Open a path; return false for one that becomes a download."""
    try:
        await page.goto(path)
    except BrowserError as error:
        if "Download is starting" not in str(error) and "ERR_ABORTED" not in str(error):
            raise
        return False
    return True


async def _hostile_job(http: Http, project: int) -> str:
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "lamps", "state": "running"}])
    key = str(pushed.lines[0]["key"])
    texts: list[Any] = [data.decode("latin-1") for data in DOCUMENTS.values()]
    items = [{"name": text, "html": text, text[:100]: text} for text in texts]
    assert (await http.post(f"/items/{key}", items)).status == 200
    logs = [{"message": text, "level": 40, "time": 1_700_000_000_000} for text in texts]
    assert (await http.post(f"/logs/{key}", logs)).status == 200
    requests = [{"url": text, "method": "GET", "status": 200, "time": 1, "duration": 1, "rs": 1} for text in texts]
    await http.post(f"/requests/{key}", requests)
    await http.post(f"/collections/{project}/s/lamps", [{"_key": str(n), "html": text} for n, text in enumerate(texts)])
    await http.post(f"/activity/{project}", [{"event": text, "user": text} for text in texts])
    return key
