"""Forms of another site, which a browser sends with the key that somebody has typed into its dialog."""

from __future__ import annotations

import re

import pytest

from scrapy_ext.server.http.routes import Access
from scrapy_ext.server.routes import ROUTES
from tests.support.http import Http
from tests.support.servers import RunningServer

#: Origins that are no page of the server; the last ones are no addresses.
FOREIGN = ("http://evil.example", "null", "http://[", "http://[x]:1/", "http://127.0.0.1:99999999")


async def test_no_changing_route_takes_a_form_of_another_site(http: Http, project: int) -> None:
    values = {"project": str(project), "spider": "1", "job": "1"}
    tried = 0
    for route in ROUTES:
        if route.method == "GET" or route.access is Access.ANYONE:
            continue
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda part: values.get(part[1], "1"), route.path)
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            answer = await http.call(route.method, path, b"{}", Origin=FOREIGN[0], Content_Type=kind)
            assert (answer.status, "another site" in answer.text) == (403, True), (route.method, path)
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_foreign_form_starts_no_job_and_stores_nothing(http: Http, project: int, origin: str) -> None:
    form = {"project": str(project), "spider": "s"}
    for path, body in (
        ("/api/run.json", form),
        ("/schedule.json", form),
        (f"/jobq/{project}/push", b'{"spider": "s"}'),
        (f"/collections/{project}/s/x", b'{"_key": "a"}'),
    ):
        answer = await http.post(path, body, Origin=origin)
        assert (answer.status, "another site" in answer.text) == (403, True), path
    assert (await http.get(f"/jobq/{project}/count")).json == 0
    assert (await http.get(f"/collections/{project}/s/x")).body == b""


async def test_pages_of_the_server_and_programs_may_change(http: Http, server: RunningServer, project: int) -> None:
    form = {"project": str(project), "spider": "s"}
    for number, headers in enumerate(
        (
            {},
            {"Origin": server.url},
            # Behind a proxy that changes the header Host.
            {"Origin": "https://crawls.example", "Sec_Fetch_Site": "same-origin"},
            {"Sec_Fetch_Site": "none"},
        ),
        1,
    ):
        answer = await http.post("/api/run.json", {**form, "spider": f"s{number}"}, **headers)
        assert answer.json["status"] == "ok", headers
    # The page knows the key itself: it acts in nobody's name.
    async with Http(server.url, None) as page:
        answer = await page.post(f"/api/run.json?apikey={server.platform_key}", form, Origin=FOREIGN[0])
        assert answer.json["status"] == "ok"


async def test_no_form_of_another_site_spends_extraction(server: RunningServer) -> None:
    async with Http(server.url, server.extract_key) as http:
        for headers in ({"Origin": FOREIGN[0]}, {"Origin": "http://["}, {"Sec_Fetch_Site": "cross-site"}):
            answer = await http.post("/v1/extract", b"{}", Content_Type="text/plain", **headers)
            assert (answer.status, "another site" in answer.json["detail"]) == (403, True)
        assert (await http.post("/v1/extract", b"{}")).status == 400


@pytest.mark.parametrize("origin", FOREIGN)
async def test_an_origin_that_is_no_address_is_one_of_another_site(
    http: Http, server: RunningServer, origin: str
) -> None:
    async with Http(server.url, None) as stranger:
        answer = await stranger.post("/login", {"key": "x"}, Origin=origin)
        assert (answer.status, "not sent by a valid page" in answer.text) == (403, True)
    assert (await http.post("/mcp", b"{}", Origin=origin, Content_Type="application/json")).status == 403
