"""Write the dumps of a version: ``python -m tests.earlier_stores DIRECTORY``, a checkout of its commit.

They are written once, when a version of the schema is released, and never again. PostgreSQL must be installed. The
constants of ``frontier/fingerprints.py`` in the checkout may be lowered first (``RUN = 40``, ``FAN = 3``, ``_STEP =
300``), so that the few fingerprints of a dump are in closed, merging and merged runs as those of a large crawl are.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.earlier_stores.stored import FOLDER, answers, dump_sqlite, fill, portable
from tests.support.http import Http
from tests.support.postgresql import cluster
from tests.support.servers import RunningServer


def _write(source: Path, version: int, engine: str) -> None:
    with cluster() as own, tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        database = own.database() if engine == "postgresql" else None
        # The tests are these, the server is that of the checkout.
        environment = {"PYTHONPATH": str(source)}
        with RunningServer(data, database=database, options=["--no-runner"], environment=environment) as server:
            found = asyncio.run(_fill(server))
        dump = dump_sqlite(data) if database is None else portable(own.dump(database))
    stem = FOLDER / f"{version:04}.{engine}"
    stem.with_name(f"{stem.name}.sql").write_text(dump, "utf-8")
    kept = ",\n".join(f"{json.dumps(path)}: {json.dumps(answer)}" for path, answer in found.items())
    stem.with_name(f"{stem.name}.json").write_text(f"{{\n{kept}\n}}\n", "utf-8")


async def _fill(server: RunningServer) -> dict[str, object]:
    async with Http(server.url, server.platform_key) as http:
        await fill(http)
        return await answers(http)


def main(source: Path) -> None:
    migrations = source / "scrapy_ext/server/store/migrations"
    version = max(int(path.name[:4]) for path in migrations.glob("*.sql"))
    os.chdir(source)  # ``-m`` takes the package of the current folder
    for engine in ("sqlite", "postgresql"):
        _write(source, version, engine)
        print(f"Written: {version:04}.{engine}.sql and .json in {FOLDER}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
