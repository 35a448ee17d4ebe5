"""The success of proxies, over HTTP, on the page and by the command."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import aiohttp
from scrapy.settings import Settings

from scrapy_ext.commands.platform import load, parser_of
from tests.support.http import Http
from tests.support.page_forms import page, submit, texts
from tests.support.refusing_site import RefusingSite
from tests.support.servers import ForkedServer
from tests.support.upstream_proxy import Upstream

SOURCES = ("127.0.0.41", "127.0.0.42")


async def test_the_success_of_each_proxy_at_each_site_is_shown_without_its_password(
    tmp_path: Path, capfdbinary: Any
) -> None:
    with (
        RefusingSite(banned=SOURCES[:1]) as site,
        Upstream(source=SOURCES[0]) as banned,
        Upstream(source=SOURCES[1], scheme="socks5") as other,
    ):
        environment = {"SERVER_PROXIES": f"*:*={banned.address}?name=one *:*={other.address}?name=two"}
        with ForkedServer(tmp_path / "data", allow_hosts=[site.host], environment=environment) as server:
            credentials = base64.b64encode(f"{server.extract_key}:".encode()).decode()
            async with aiohttp.ClientSession(headers={"Authorization": f"Basic {credentials}"}) as session:
                for number in range(12):
                    fields = {"url": f"{site.url}/page/{number}", "httpResponseBody": True}
                    async with session.post(f"{server.url}/v1/extract", json=fields) as answer:
                        assert answer.status == 200
            async with Http(server.url, server.platform_key) as http:
                found = (await http.get("/api/proxies")).json
                at_site = {row["proxy"]: row for row in found["sites"]}
                assert {row["site"] for row in found["sites"]} == {site.host}
                assert {row["by"] for row in found["sites"]} == {"http"}
                assert at_site["two"]["passed"] == 12
                assert at_site["two"]["cooling"] == 0
                assert [row["proxy"] for row in found["proxies"]] == ["direct", "one", "two"]
                assert found["proxies"][2]["address"] == f"socks5://127.0.0.1:{other.port}"
                if "one" in at_site:  # else chance chose the other one each time
                    assert (at_site["one"]["passed"], at_site["one"]["banned"]) == (0, 1)
                    assert at_site["one"]["cooling"] > 0
                assert (await http.get("/api/proxies?site=none.example")).json["sites"] == []
                assert (await http.get("/api/proxies?count=0")).status == 400
                shown = await http.get("/ui/extract/proxies")
                assert {"one", "two", "direct", site.host} <= set(texts(page(shown), "//td"))
                metrics = await http.get("/metrics")
                assert 'scrapy_ext_proxy_requests_total{proxy="two",result="passed"} 12' in metrics.text
                fields = {"action": "add", "name": "limited", "opens": "platform", "projects": "1"}
                (key,) = texts(page(await submit(http, "/ui/keys", fields)), "//code[@class='secret']")
                async with Http(server.url, key) as limited:
                    for path in ("/api/proxies", "/ui/extract/proxies"):
                        assert (await limited.get(path)).status == 403
                for answer in (found, shown.text, metrics.text):
                    assert "pass@word" not in str(answer)
                    assert "user-7" not in str(answer)
            settings = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": 1}
            for arguments, sites in (
                ([], {None}),
                (["--sites"], {site.host}),
                (["--site", "localhost"], {site.host}),
            ):
                chosen = load("proxies")
                options = parser_of(chosen).parse_args(arguments)
                assert await asyncio.to_thread(chosen.run, Settings(settings), options) == 0
                rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
                assert {row["site"] for row in rows} == sites
                assert "two" in {row["proxy"] for row in rows}
        assert "pass%40word" not in server.log()
