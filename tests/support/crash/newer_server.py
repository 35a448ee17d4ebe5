"""The real server of a later version: it has one migration more, which rewrites tables that a crawl uses."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server import __main__ as server
from scrapy_ext.server import launch
from scrapy_ext.server.store import schema

_KNOWN: Final = schema.migrations()
#: Version and SQL of the migration.
LATER: Final = (
    _KNOWN[-1][0] + 1,
    """
CREATE TABLE later_slots AS SELECT project, frontier, slot, number FROM frontier_slots;
ALTER TABLE frontier_slots ADD COLUMN later BIGINT NOT NULL DEFAULT 1;
UPDATE frontier_slots SET later = (
    SELECT count(*) FROM frontier_batches b WHERE b.project = frontier_slots.project AND b.slot = frontier_slots.number
);
ALTER TABLE record_totals ADD COLUMN later BIGINT;
UPDATE record_totals SET later = records;
""",
)


def _main() -> None:
    schema.migrations = lambda: [*_KNOWN, LATER]
    # The program would be executed anew, without this migration.
    launch._execute_anew = lambda *_: None
    server.main()


if __name__ == "__main__":
    _main()
