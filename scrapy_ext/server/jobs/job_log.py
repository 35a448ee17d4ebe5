"""Lines that a node adds to the log of a job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from scrapy_ext.api.platform.items import MAX_ITEM_BYTES
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.logs import LogRecord
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.chunks import LOGS, Packer

#: Characters of a line: as JSON, a character has six bytes at most.
_LONGEST: Final = MAX_ITEM_BYTES // 8


async def add_lines(store: Store, key: JobKey, lines: Sequence[str], level: int = logging.INFO) -> None:
    """Add lines to a job's log; not while its own process adds some, which numbers them itself."""
    if not lines:
        return
    now = store.clock()
    records = [LogRecord(time=now, level=level, message=line[:_LONGEST]) for line in lines]
    packer = Packer(LOGS)
    chunks = packer.add(
        [msgspec.json.encode(each) for each in records], [msgspec.to_builtins(each) for each in records]
    )
    rest = packer.rest()
    await store.logs.write(key, None, [*chunks, *([] if rest is None else [rest])])
