"""Control characters of users' text: on no page, wherever the text came from, and yet forms send back what it was."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlsplit

import lxml.html

from scrapy_ext.api.violations import CONTROL_CHARACTERS
from tests.integration.server.platform.test_versions import checked
from tests.support import packed_projects as packed
from tests.support.http import Http

STEER = "a\x1b]0;title\x07\x9b31m\x08\x7f\u202eb\u2066"


async def _fill(http: Http, project: int) -> None:
    spider = packed.SPIDER.replace('"books"', json.dumps(STEER)).replace("Books of the shop.", "a\x1b[2J")
    archive = packed.folder(shop__spiders=spider)
    assert (await http.post(f"/api/projects/{project}/versions?version=1.0", archive)).status == 201
    assert (await checked(http, project, "1.0"))["state"] == "ready"
    job = {"spider": STEER, "tags": [STEER, "t"], "spider_args": {STEER: STEER}, "job_settings": {STEER: STEER}}
    pushed = await http.post(f"/jobq/{project}/push", [{**job, "state": "running"}])
    key = pushed.lines[0]["key"]
    assert (await http.post(f"/items/{key}", [{STEER: STEER, "nested": {STEER: [STEER]}}])).status == 200
    assert (await http.post(f"/logs/{key}", [{"time": 1, "level": 40, "message": f"{STEER}\nnext"}])).status == 200
    sent = {"time": 1, "duration": 1, "method": STEER, "status": 200, "rs": 1, "url": f"http://a/{STEER}", "fp": STEER}
    assert (await http.post(f"/requests/{key}", [sent])).status == 200
    assert (await http.post(f"/jobs/{key}", json.dumps({"scrapystats": {STEER: STEER}}).encode())).status == 200
    ended = [{"key": key, "state": "finished", "close_reason": STEER}]
    assert (await http.post(f"/jobq/{project}/update", ended)).status == 200
    assert (await http.post(f"/collections/{project}/s/names", [{"_key": STEER, STEER: STEER}])).status == 200
    assert (await http.post(f"/hcf/{project}/f/s/0", [{"fp": STEER, "qdata": STEER}])).status == 200
    assert (await http.post(f"/activity/{project}", [{"event": STEER, "user": STEER, "job": key}])).status == 200
    task = {"name": STEER, "priority": 3, "spider_args": {STEER: STEER}}
    periodic = {"cron": "0 3 * * *", "tasks": [task], "addtags": [STEER], "description": STEER}
    made = await http.post(f"/api/projects/{project}/periodicjobs", json.dumps(periodic).encode())
    assert made.status == 201, made.text


async def _all_pages(http: Http, project: int) -> dict[str, str]:
    """The pages of a project that links lead to, by their addresses."""
    found: dict[str, str] = {}
    waiting = [
        f"/ui/{project}/jobs",
        f"/ui/{project}/run?spider={quote(STEER)}",
        f"/ui/{project}/jobs?q={quote(STEER)}",
    ]
    while waiting and len(found) < 80:
        path = waiting.pop(0)
        if path in found:
            continue
        answer = await http.get(path)
        if "text/html" not in answer.headers["Content-Type"]:
            continue
        found[path] = answer.text
        links = lxml.html.document_fromstring(answer.text).xpath("//a/@href")
        own = [link for link in links if link.startswith(f"/ui/{project}/") and "sort=" not in link]
        waiting += [urlsplit(link)._replace(fragment="").geturl() for link in own]
    return found


async def test_no_page_shows_control_characters_wherever_they_came_from(http: Http, project: int) -> None:
    await _fill(http, project)
    pages = await _all_pages(http, project)
    kinds = {re.sub(r"\d+", "1", urlsplit(path).path) for path in pages}
    assert len(kinds) > 12, kinds
    raw = {path: found[0] for path, text in pages.items() if (found := CONTROL_CHARACTERS.search(text))}
    assert not raw
    shown = [path for path, text in pages.items() if "a␛]0;title␇\\u009b31m␈␡\\u202eb\\u2066" in text]
    assert len(shown) > 5
    # And a form sends back the name that it was filled with.
    form = await http.get(f"/ui/{project}/jobs/run")
    options = lxml.html.document_fromstring(form.text).xpath("//datalist/option")
    assert [each.get("label") for each in options] == ["a␛]0;title␇\\u009b31m␈␡\\u202eb\\u2066", None]
    assert 'value="a&#x1b;]0;title&#x7;&#x9b;31m&#x8;&#x7f;&#x202e;b&#x2066;"' in form.text
