"""The dumps, and the data that is in each of them."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.support.http import Http
from tests.support.postgresql import Cluster

FOLDER: Final = Path(__file__).parent
#: Versions of the schema of which there is a dump.
VERSIONS: Final = tuple(sorted({int(path.name[:4]) for path in FOLDER.glob("*.sqlite.sql")}))

_FINISHED, _RUNNING = "7/1/1", "7/1/2"
#: Reads whose answers are kept.
READS: Final = (
    *(f"/{kind}/{_FINISHED}" for kind in ("items", "requests", "logs", "samples")),
    *(f"/{kind}/{_FINISHED}/stats" for kind in ("items", "requests", "logs")),
    f"/items/{_RUNNING}?meta=_key&meta=_ts",
    "/items/7?meta=_key&nodata=1",
    "/jobq/7/count",
    f"/jobs/{_FINISHED}",
    f"/jobs/{_RUNNING}/spider_args",
    f"/api/comments/{_FINISHED}",
    "/collections/7/list",
    "/collections/7/s/books?meta=_key&meta=_ts",
    "/collections/7/vs/prices/a?copies=3&meta=_ts",
    "/collections/7/cs/pages",
    "/hcf/7/list",
    "/hcf/7/shop/list",
    *(f"/hcf/7/shop/s/{slot}/{part}" for slot in ("0", "1") for part in ("q?mincount=1000", "q/count", "f")),
)
#: Requests that were added to slot 0, and the fingerprints of the two batches of it that were acknowledged.
REQUESTS: Final = [{"fp": f"/{n * 7919 % 500:03}", "p": n % 3} for n in range(500)]
ACKNOWLEDGED: Final = {str(request["fp"]) for request in REQUESTS if request["p"] == 0}


async def fill(http: Http) -> None:
    """Store data of each kind in project 7 of an empty store."""
    await _fill_jobs(http)
    await _fill_collections(http)
    slots = "/hcf/7/shop/s"
    for first in range(0, 500, 50):  # in several additions, so that runs of fingerprints are closed and merged
        await _post(http, f"{slots}/0", REQUESTS[first : first + 50])
    read = (await http.get(f"{slots}/0/q?mincount=300")).lines
    await _post(http, f"{slots}/0/q/deleted", [batch["id"] for batch in read[:2]])
    await _post(http, f"{slots}/1", [{"fp": "with data", "qdata": {"a": [1, "\u00e9"]}, "fdata": {"b": None}}])
    await _post(http, f"{slots}/1", [{"fp": "later", "p": -5}])


async def _fill_jobs(http: Http) -> None:
    for spider, state in (("books", "running"), ("books", "running"), ("books", "pending"), ("other", "pending")):
        await _post(http, "/jobq/7/push", [{"spider": spider, "state": state, "spider_args": {"page": "1"}}])
    await _post(http, f"/items/{_FINISHED}", [{"n": n, "title": f"Book {n} \u00e9\u0000"} for n in range(120)])
    await _post(http, f"/items/{_FINISHED}?start=120", [{"n": n} for n in range(120, 150)])
    request = {"method": "GET", "status": 200, "duration": 5, "rs": 10}
    for n in range(3):
        parent = {"parent": n - 1} if n else {}
        await _post(http, f"/requests/{_FINISHED}", [{**request, **parent, "time": n, "url": f"http://a.b/{n}"}])
    await _post(http, f"/logs/{_FINISHED}", [{"time": n, "level": 20, "message": f"Line {n}"} for n in range(5)])
    await _post(http, f"/samples/{_FINISHED}", [[1, 2, 3, 4, 5]])
    await _post(http, f"/items/{_RUNNING}", [{"n": n} for n in range(4)])
    finish = {"key": _FINISHED, "state": "finished", "close_reason": "finished"}
    await _post(http, "/jobq/7/update", [finish])
    assert (await http.post(f"/api/comments/{_FINISHED}/0", {"text": "A comment"})).status == 201
    assert (await http.delete("/jobs/7/2/1")).status == 200


async def _fill_collections(http: Http) -> None:
    await _post(http, "/collections/7/s/books", [{"_key": f"{n:02}", "n": n} for n in range(60)])
    await _post(http, "/collections/7/s/books/deleted", ["07", "08"])
    for n in range(5):
        await _post(http, "/collections/7/vs/prices", [{"_key": "a", "price": n}])
    await _post(http, "/collections/7/cs/pages", [{"_key": "p", "body": "x" * 2000}])


async def _post(http: Http, path: str, records: list[Any]) -> None:
    answer = await http.post(path, records)
    assert answer.status == 200, f"{path}: {answer.status} {answer.text}"


async def answers(http: Http) -> dict[str, Any]:
    """Return the decoded answer of each read."""
    found = {}
    for path in READS:
        answer = await http.get(path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.text}"
        found[path] = answer.lines
    return found


def expected(version: int, engine: str) -> dict[str, Any]:
    """Return the answers that the server of a version gave."""
    kept: dict[str, Any] = json.loads((FOLDER / f"{version:04}.{engine}.json").read_text("utf-8"))
    return kept


def load_sqlite(version: int, data: Path) -> None:
    """Make the file of a data directory from a dump."""
    data.mkdir(parents=True)
    with closing(sqlite3.connect(data / "platform.db")) as database:
        database.executescript((FOLDER / f"{version:04}.sqlite.sql").read_text("utf-8"))


def load_postgresql(version: int, cluster: Cluster) -> str:
    """Make a database from a dump; return its URL."""
    url = cluster.database()
    cluster.run_file(url, FOLDER / f"{version:04}.postgresql.sql")
    return url


def dump_sqlite(data: Path) -> str:
    """Return the SQL that makes the file of a data directory."""
    with closing(sqlite3.connect(data / "platform.db")) as database:
        return "\n".join(database.iterdump()) + "\n"


def portable(dump: str) -> str:
    """Return a dump of PostgreSQL without what differs between its versions."""
    left_out = r"(?m)^(?:--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(?:un)?restrict .*)\n"
    return re.sub(r"\n{3,}", "\n\n", re.sub(left_out, "", dump)).lstrip()
