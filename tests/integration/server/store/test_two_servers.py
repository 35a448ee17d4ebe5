"""Two servers on one SQLite file, with a backup and a vacuum meanwhile: all that was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.server.store.test_copying import run
from tests.support.eventually import eventually_async
from tests.support.http import Answer, Http
from tests.support.servers import ForkedServer

WRITES = 60


@pytest.mark.long
async def test_two_servers_on_one_file_a_backup_and_a_vacuum_lose_and_double_nothing(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    with ForkedServer(data) as one, ForkedServer(data) as two:
        async with Http(one.url, one.platform_key) as first, Http(two.url, two.platform_key) as second:
            written = await asyncio.gather(
                _write(first, "a"),
                _write(second, "b"),
                _care(data, copy),
            )
            for http in (first, second):
                records = (await http.get("/collections/1/s/both")).lines
                assert sorted(record["n"] for record in records) == sorted(written[0] + written[1])
                items = (await http.get("/items/1/1/1")).lines
                assert sorted(item["n"] for item in items) == sorted(written[0] + written[1])
                batches = json.loads(
                    b"[" + b",".join((await http.get("/hcf/1/f/s/0/q?mincount=9999")).body.splitlines()) + b"]"
                )
                queued = [fp for batch in batches for fp, _ in batch["requests"]]
                assert sorted(queued) == sorted({*written[0], *written[1]})
    with closing(sqlite3.connect(copy)) as backup:
        assert backup.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(sqlite3.connect(data / "platform.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def _write(http: Http, name: str) -> list[str]:
    """Acknowledged writes. A write without an acknowledgement was not stored: it is sent again."""
    for number in range(WRITES):
        text = f"{name}{number}"
        await _stored(http, "/collections/1/s/both", [{"_key": text, "n": text}])
        await _stored(http, "/items/1/1/1", [{"n": text}])
        await _stored(http, "/hcf/1/f/s/0", [{"fp": text}, {"fp": f"{name}{number // 2}"}])
    return [f"{name}{number}" for number in range(WRITES)]


async def _stored(http: Http, path: str, records: list[dict[str, str]]) -> Answer:
    def is_stored(answer: Answer) -> bool:
        assert answer.status in (200, 503), answer.text
        return answer.status == 200

    return await eventually_async(lambda: http.post(path, records), is_stored)


async def _care(data: Path, copy: Path) -> list[str]:
    assert await run("backup", "--data", str(data), str(copy)) == 0
    assert await run("vacuum", "--data", str(data)) == 0
    return []
