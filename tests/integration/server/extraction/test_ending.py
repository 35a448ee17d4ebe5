"""A server that ends: what it has begun is finished, what comes is refused in a way that its sender understands."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.support.eventually import TIMEOUT, eventually
from tests.support.handwritten_site import Call, Target
from tests.support.servers import RunningServer


def test_requests_under_way_are_finished_and_new_ones_get_503(tmp_path: Path) -> None:
    site = Target().start()
    entered, release = threading.Event(), threading.Event()

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        entered.set()
        while not release.is_set():
            await asyncio.sleep(0.01)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfinished")

    url = site.handle("/held", hold)
    with RunningServer(tmp_path / "data", allow_hosts=[site.host]) as server, ThreadPoolExecutor(1) as pool:

        def extract() -> requests.Response:
            body = json.dumps({"url": url, "httpResponseBody": True})
            return requests.post(f"{server.url}/v1/extract", body, auth=(server.extract_key, ""), timeout=TIMEOUT)

        try:
            begun = pool.submit(extract)
            assert entered.wait(TIMEOUT)
            server.process.send_signal(signal.SIGTERM)
            eventually(
                lambda: requests.get(f"{server.url}/readyz", timeout=TIMEOUT), lambda ready: ready.status_code == 503
            )
            refused = extract()
        finally:
            release.set()
        answer = begun.result(TIMEOUT)
        assert server.wait() == 0
    site.stop()
    assert (refused.status_code, refused.headers["Content-Type"]) == (503, "application/problem+json")
    assert refused.json()["type"] == "/limits/over-global-limit"
    assert int(refused.headers["Retry-After"]) > 0
    assert answer.status_code == 200
    assert base64.b64decode(answer.json()["httpResponseBody"]) == b"finished"


@pytest.mark.long
def test_a_request_that_is_not_done_in_time_gets_503_and_is_no_fault_of_the_server(tmp_path: Path) -> None:
    site = Target().start()
    entered = threading.Event()

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.sleep(60)

    url = site.handle("/held", hold)
    with RunningServer(tmp_path / "data", allow_hosts=[site.host]) as server, ThreadPoolExecutor(1) as pool:
        body = json.dumps({"url": url, "httpResponseBody": True})
        begun = pool.submit(
            requests.post, f"{server.url}/v1/extract", body, auth=(server.extract_key, ""), timeout=TIMEOUT
        )
        assert entered.wait(TIMEOUT)
        server.process.send_signal(signal.SIGTERM)
        answer = begun.result(TIMEOUT)
        assert server.wait() == 0
    site.stop()
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert answer.json()["type"] == "/limits/over-global-limit"
    assert int(answer.headers["Retry-After"]) > 0
    assert "Traceback" not in server.log()
