"""Downloads that the server cannot make: the answer names the reason and the remedy, and other formats still work."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest

from tests.support.http import Http
from tests.support.servers import RunningServer

#: Items of much more than a page of the answer, which compression leaves long.
ITEMS = [{"n": n, "text": random.Random(n).randbytes(400).hex()} for n in range(3000)]


async def filled(http: Http) -> str:
    pushed = await http.post("/jobq/1/push", [{"spider": "books", "state": "running"}])
    key = str(pushed.lines[0]["key"])
    assert (await http.post(f"/items/{key}", ITEMS)).status == 200
    return key


@pytest.mark.long
async def test_a_missing_library_and_too_long_files_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with RunningServer(tmp_path, options=["--no-runner"], program="tests.support.limited_server") as server:
        async with Http(server.url, server.platform_key) as http:
            key = await filled(http)
            for path in (f"/items/{key}?format=parquet", f"/ui/{key}/items.parquet"):
                answer = await http.get(path)
                assert answer.status == 501, path
                assert "parquet" in answer.text
            for path in (f"/items/{key}?format=xlsx", f"/ui/{key}/items.xlsx"):
                answer = await http.get(path)
                assert answer.status == 413, path
                assert "Choose fewer" in answer.text
            # Fewer records, and formats that need no temporary file.
            assert (await http.get(f"/items/{key}?format=xlsx&count=50")).status == 200
            for path in (f"/items/{key}?format=csv&fields=n", f"/ui/{key}/items.csv"):
                assert (await http.get(path)).text.splitlines()[-1].startswith("2999")
            assert len((await http.get(f"/items/{key}")).lines) == len(ITEMS)
        assert "Traceback" not in server.log()


@pytest.mark.parametrize("form", ["xlsx", "parquet"])
@pytest.mark.long(keep=1)
async def test_a_full_disk_is_reported_and_the_server_goes_on(tmp_path: Path, form: str) -> None:
    with RunningServer(tmp_path, options=["--no-runner"]) as server:
        async with Http(server.url, server.platform_key) as http:
            key = await filled(http)
            limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (256 * 1024, limits[1]))
            answer = await http.get(f"/items/{key}?format={form}")
            assert answer.status == 507
            assert "no room" in answer.text
            assert len((await http.get(f"/items/{key}")).lines) == len(ITEMS)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
            assert (await http.get(f"/items/{key}?format={form}")).status == 200
