"""A request that takes too long."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.server.app import Service
from scrapy_ext.server.auth.api_keys import Grant
from scrapy_ext.server.auth.tokens import AttemptTokens, JobTokens
from scrapy_ext.server.http import limits
from scrapy_ext.server.http.access import AccessCheck
from scrapy_ext.server.http.middleware import RequestMiddleware
from scrapy_ext.server.platform import ROUTES
from scrapy_ext.server.store import Store


async def _everything(_key: str) -> Grant:
    return Grant("test")


async def test_a_write_that_waits_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path)
    check = AccessCheck(_everything, JobTokens(store), AttemptTokens(store), None)
    platform = Service(ROUTES, store, check)
    lock = sqlite3.connect(tmp_path / "platform.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(limits, "REQUEST", 0.2)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"_key": "a"}', "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/collections/1/s/c"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", b"Basic " + b64encode(b"k:")), (b"content-length", b"13")],
    }
    await RequestMiddleware(platform, slow=60, client_timeout=60)(scope, receive, send)
    lock.execute("ROLLBACK")
    lock.close()
    await store.close()
    headers = dict(sent[0]["headers"])
    assert (sent[0]["status"], headers[b"retry-after"]) == (503, b"1")
    assert "send it again" in json.loads(sent[1]["body"])["message"]
