"""zyte-api from PyPI, unchanged, against the real server: its blocking client, its command, its retries.

What its asynchronous client does is in tests/acceptance/crawl/extraction/test_zyte_api_client.py.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tenacity import wait_fixed
from zyte_api import AsyncZyteAPI, RequestError, RetryFactory, ZyteAPI

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.acceptance.conformance.shop import Shop
from tests.support.extraction_service import KEY, Service
from tests.support.servers import RunningServer

#: Its blocking client closes no event loop.
pytestmark = [pytest.mark.filterwarnings("ignore:unclosed event loop"), pytest.mark.usefixtures("collected")]

#: The command that the package installs.
COMMAND = Path(sys.executable).with_name("zyte-api")


@pytest.fixture
def client(extraction: RunningServer) -> ZyteAPI:
    return ZyteAPI(api_key=extraction.extract_key, api_url=f"{extraction.url}/v1/")


def test_the_blocking_client_gets_pages_by_http_and_by_browser(client: ZyteAPI, shop: Shop) -> None:
    query = {"url": f"{shop.url}/echo", "httpResponseBody": True, "httpRequestMethod": "POST",
             "httpRequestText": "tea", "responseCookies": True}  # fmt: skip
    result = client.get(query)
    assert (base64.b64decode(result["httpResponseBody"]), result["statusCode"]) == (b"got tea", 201)
    assert [cookie["name"] for cookie in result["responseCookies"]] == ["visit"]
    actions = [
        {"action": "click", "selector": {"type": "css", "value": "button"}},
        {"action": "waitForSelector", "selector": {"type": "text", "value": "clicked"}},
        {"action": "evaluate", "source": "document.title = 'seen'"},
    ]
    result = client.get({"url": f"{shop.url}/script", "browserHtml": True, "screenshot": True, "actions": actions})
    assert "<h1>after</h1>" in result["browserHtml"]
    assert "clicked" in result["browserHtml"]
    assert [action["status"] for action in result["actions"]] == ["success"] * 3
    assert base64.b64decode(result["screenshot"]).startswith(b"\xff\xd8")


def test_a_session_of_the_blocking_client_gives_results_and_errors_as_they_come(client: ZyteAPI, shop: Shop) -> None:
    wrong = {"url": f"{shop.url}/", "browserHtml": True, "actions": [{"action": "click", "selector": {"type": "id"}}]}
    queries = [
        {"url": f"{shop.url}/product", "product": True, "extractFrom": "httpResponseBody"},
        {"url": f"{shop.url}/article", "article": True, "extractFrom": "httpResponseBody"},
        wrong,
    ]
    with client.session() as session:
        results = list(session.iter(queries))
    found = {key: value for result in results if isinstance(result, dict) for key, value in result.items()}
    assert (found["product"]["name"], found["product"]["price"]) == ("Kettle", "31.50")
    assert found["article"]["headline"] == "How to boil water"
    [error] = [result for result in results if isinstance(result, Exception)]
    assert isinstance(error, RequestError)
    assert (error.status, error.parsed.type) == (400, "/request/invalid")
    assert "actions[0].selector.type" in error.parsed.data["detail"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("urls.txt", ["{shop}/", "{shop}/script"]),
        (
            "queries.jl",
            ['{{"url": "{shop}/", "browserHtml": true}}', '{{"url": "{shop}/script", "browserHtml": true}}'],
        ),
    ],
)
def test_the_command_reads_a_list_and_writes_lines(
    extraction: RunningServer, shop: Shop, tmp_path: Path, name: str, lines: list[str]
) -> None:
    (tmp_path / name).write_text("".join(line.format(shop=shop.url) + "\n" for line in lines))
    done = subprocess.run(
        [COMMAND, name, "--api-url", f"{extraction.url}/v1/", "--output", "out.jsonl", "--n-conn", "2"],
        cwd=tmp_path,
        env={**os.environ, "ZYTE_API_KEY": extraction.extract_key},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    html = {result["url"]: result["browserHtml"] for result in written}
    assert html.keys() == {f"{shop.url}/", f"{shop.url}/script"}
    assert "after" in html[f"{shop.url}/script"]


class Quick(RetryFactory):
    """Its policy with waits that a test can wait for: its own are twenty seconds and more."""

    throttling_wait = wait_fixed(0.3)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("bounds", "status"),
    [({"domain_rate": 2}, 429), ({"limits": ServiceLimits(requests=1)}, 503)],
    ids=["rate", "places"],
)
async def test_what_is_over_a_bound_of_the_server_is_tried_again_until_it_comes(
    shop: Shop, bounds: dict[str, Any], status: int
) -> None:
    with Service(allow_hosts=(shop.host,), **bounds) as limited:
        url = f"http://127.0.0.1:{limited.port}/v1/"
        client = AsyncZyteAPI(api_key=KEY, api_url=url, retrying=Quick().build(), n_conn=8)
        async with client.session() as session:
            queries = [{"url": f"{shop.url}/slow", "httpResponseBody": True, "echoData": number} for number in range(7)]
            results = [await result for result in session.iter(queries)]
    assert sorted(result["echoData"] for result in results) == list(range(7))
    assert client.agg_stats.status_codes[status] > 0
    assert client.agg_stats.n_success == 7
