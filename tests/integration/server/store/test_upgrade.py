"""Databases of earlier versions of the package."""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files
from pathlib import Path

from scrapy_ext.api.platform.jobs import JobState
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.jobs import NewJob


async def test_jobs_from_before_priorities_were_columns_start_first(tmp_path: Path) -> None:
    ground = files("scrapy_ext.server.store").joinpath("migrations/0001_ground.sql").read_text("utf-8")
    with sqlite3.connect(tmp_path / "platform.db") as old:
        old.executescript(re.sub(r"/\*sqlite (.*?)\*/", r"\1", ground))
        old.execute("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, opened BIGINT)")
        old.execute("INSERT INTO schema_version (version) VALUES (1)")
        old.execute("INSERT INTO counters VALUES (7, 'spider', 1), (7, 'job 1', 1)")
        old.execute("INSERT INTO spiders VALUES (7, 'books', 1)")
        metadata = b'{"spider":"books","state":"pending","tags":["t"]}'
        old.execute("INSERT INTO jobs VALUES (7, 1, 1, 'books', 'pending', 1, 1, NULL, ?)", (metadata,))
        old.execute("INSERT INTO job_tags VALUES (7, 't', 1, 1)")
    old.close()
    store = await Store.open(tmp_path)
    try:
        (added,) = await store.jobs.add(7, [NewJob("books", JobState.PENDING, {"priority": 2})], "me")
        started = [await store.jobs.start_next(7, {}, "me") for _ in range(3)]
        assert [job and str(job.key) for job in started] == ["7/1/1", str(added), None]
        spider = await store.spiders.get(7, 1)
        assert spider is not None
        assert (spider.name, spider.tags) == ("books", [])
    finally:
        await store.close()
