"""Wrong keys: so many from one address and no more, and never at the cost of who has a right one."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette

from scrapy_ext.server.app import Service
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.auth.rates import BURST, SCOPE_KEY, WrongKeys, address_of
from scrapy_ext.server.auth.tokens import AttemptTokens, JobTokens
from scrapy_ext.server.http.access import AccessCheck, presented
from scrapy_ext.server.http.health import ROUTES, Health, ServerMetrics
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.http.request_context import SCOPE_KEY as CONTEXT_KEY
from scrapy_ext.server.http.request_context import RequestContext
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreAwayError
from tests.support.servers import RunningServer

#: Each test comes from addresses of its own.
_addresses = (f"127.0.9.{number}" for number in count(1))


def basic(key: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{key}:".encode()).decode()}


WAYS = {
    "platform, Basic": ("GET", "/hcf/1/list", basic),
    "platform, parameter": ("GET", "/items/1/1/1?apikey={key}", lambda _: {}),
    "platform, Bearer": ("GET", "/jobq/1/count", lambda key: {"Authorization": f"Bearer {key}"}),
    "platform, JSON": ("GET", "/api/jobs/list.json?project=1", basic),
    "extraction, Basic": ("POST", "/v1/extract", basic),
    "extraction, Bearer": ("POST", "/v1/extract", lambda key: {"Authorization": f"Bearer {key}"}),
    "pages, Basic": ("GET", "/ui/1/jobs", basic),
    "metrics, Basic": ("GET", "/metrics", basic),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.long(keep=3)
async def test_of_200_wrong_keys_the_later_ones_get_429_and_a_right_key_gets_in(
    server: RunningServer, way: str
) -> None:
    method, path, headers = WAYS[way]
    connector = aiohttp.TCPConnector(local_addr=(next(_addresses), 0))
    async with aiohttp.ClientSession(server.url, connector=connector) as session:

        async def guess(key: str) -> tuple[int, str | None, str]:
            async with session.request(method, path.format(key=key), headers=headers(key)) as answer:
                return answer.status, answer.headers.get("Retry-After"), await answer.text()

        answers = await asyncio.gather(*(guess(f"wrong{number}") for number in range(200)))
        later = [each for each in answers if each[0] == 429]
        assert later
        assert {status for status, _, _ in answers} == {401, 429}
        assert len(answers) - len(later) >= BURST
        assert all(retry_after == "1" and "Try again in 1 s" in text for _, retry_after, text in later)
        if path == "/v1/extract":  # a row of the document's table
            assert {json.loads(text)["type"] for _, _, text in later} == {"/limits/over-user-limit"}
        async with session.get("/hcf/1/list", headers=basic(server.platform_key)) as answer:
            assert answer.status == 200
        async with session.post("/v1/extract", headers=basic(server.extract_key), data=b"{}") as answer:
            assert answer.status == 400
    connector = aiohttp.TCPConnector(local_addr=(next(_addresses), 0))
    async with (
        aiohttp.ClientSession(server.url, connector=connector) as other,
        other.get("/hcf/1/list", headers=basic("wrong")) as answer,
    ):
        assert answer.status == 401


async def test_readiness_is_reported_without_a_key_and_to_guesses_only_so_often(server: RunningServer) -> None:
    connector = aiohttp.TCPConnector(local_addr=(next(_addresses), 0))
    async with aiohttp.ClientSession(server.url, connector=connector) as session:

        async def probe(headers: dict[str, str]) -> int:
            async with session.get("/readyz", headers=headers) as answer:
                if answer.status == 429:
                    assert answer.headers["Retry-After"] == "1"
                return answer.status

        guesses = await asyncio.gather(*(probe(basic(f"wrong{number}")) for number in range(200)))
        assert set(guesses) == {200, 429}
        assert guesses.count(200) >= BURST
        for headers in ({}, basic(server.platform_key)):
            assert await asyncio.gather(*(probe(headers) for _ in range(2 * BURST))) == [200] * 2 * BURST


async def _nothing() -> Any:
    return {"type": "http.request", "body": b""}


@pytest.mark.parametrize("path", ["/readyz", "/metrics"])
async def test_keys_that_cannot_be_looked_up_now_count_as_wrong_ones(tmp_path: Path, path: str) -> None:
    async def grant_of(_key: str) -> Grant | None:
        raise StoreAwayError("away")

    front = RequestMiddleware(Starlette(), slow=1, client_timeout=1, memory=2**20)
    front.ending = True  # not ready
    store = await Store.open(tmp_path)
    health = Health(front, store, partial(presented, grant_of=grant_of), ServerMetrics(front, store, ()))
    check = AccessCheck(grant_of, JobTokens(store), AttemptTokens(store), None)
    service = Service(ROUTES, store, check, {Health: health})
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [(name.lower().encode(), value.encode()) for name, value in basic("guess").items()]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": headers, "client": ("192.0.2.7", 1), SCOPE_KEY: WrongKeys()}
    for _ in range(BURST + 20):
        scope[CONTEXT_KEY] = RequestContext(scope, _nothing, send, front.memory, 1)
        await service(scope, _nothing, send)
    await store.close()
    assert statuses[:BURST] == [503] * BURST
    assert 429 in statuses[BURST:]


async def test_a_right_key_logs_in_from_an_address_of_many_wrong_ones(server: RunningServer) -> None:
    connector = aiohttp.TCPConnector(local_addr=(next(_addresses), 0))
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        statuses = []
        for key in [*["wrong"] * 20, server.platform_key]:
            async with session.post("/login", data={"key": key}, allow_redirects=False) as answer:
                statuses.append(answer.status)
    assert statuses[:10] == [403] * 10
    assert 429 in statuses[10:20]
    assert statuses[-1] == 303


async def test_who_brings_no_key_is_counted_nowhere(server: RunningServer) -> None:
    connector = aiohttp.TCPConnector(local_addr=(next(_addresses), 0))
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        for _ in range(BURST * 2):
            async with session.get("/hcf/1/list") as answer:
                assert answer.status == 401


@pytest.mark.parametrize(
    ("client", "counted"),
    [
        (("192.0.2.1", 5), "192.0.2.1"),
        (("::ffff:192.0.2.1", 5), "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 5), "2001:db8:1:2::/64"),
        (("2001:db8:1:2::", 5), "2001:db8:1:2::/64"),
        (("2001:db8:1:3::1", 5), "2001:db8:1:3::/64"),
        (("fe80::1%eth0", 5), "fe80::/64"),
        (("unix", 0), "unix"),
        (None, ""),
    ],
)
def test_an_ipv6_network_is_one_address(client: tuple[str, int] | None, counted: str) -> None:
    assert address_of({"type": "http", "client": client}) == counted


def test_the_table_is_bounded_and_an_address_is_forgiven_with_time() -> None:
    now = 0.0
    table = WrongKeys(1.0, 2, lambda: now)

    def from_address(address: str) -> int:
        return table.note({"type": "http", "client": (address, 1)})

    assert [from_address("192.0.2.1") for _ in range(4)] == [0, 0, 1, 1]
    now = 1.0
    assert [from_address("192.0.2.1") for _ in range(2)] == [0, 1]
    for number in range(20_000):
        from_address(f"10.0.{number // 256}.{number % 256}")
    assert len(table) == 10_000
