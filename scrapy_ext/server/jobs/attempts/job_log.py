"""Lines that a node adds to the log of a job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from scrapy_ext.api.platform.items import MAX_ITEM_BYTES
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.logs import LogRecord
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.jobs.attempts.output import Line, LiveLines
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.engine.errors import StoreError
from scrapy_ext.server.store.records.chunks import LOGS, Packer

#: Characters of a line: as JSON, a character has six bytes at most.
_LONGEST: Final = MAX_ITEM_BYTES // 8
#: Seconds between two writes of what a script says.
_EVERY: Final = 0.5

logger = logging.getLogger(__name__)


async def add_lines(store: Store, key: JobKey, lines: Sequence[Line]) -> None:
    """Add lines to a job's log; not while its own process adds some, which numbers them itself."""
    if not lines:
        return
    now = store.clock()
    records = [LogRecord(time=now, level=line.level, message=line.text[:_LONGEST]) for line in lines]
    packer = Packer(LOGS)
    chunks = packer.add(
        [msgspec.json.encode(each) for each in records], [msgspec.to_builtins(each) for each in records]
    )
    rest = packer.rest()
    await store.logs.write(key, None, [*chunks, *([] if rest is None else [rest])])


async def keep_adding(store: Store, key: JobKey, lines: LiveLines) -> None:
    """Add what a script says while it runs, until all of it has come, or the attempt is over. ``store``: that of the
    attempt."""
    is_last = False
    while not is_last:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(lines.due.wait(), _EVERY)
        is_last = lines.is_closed
        some = lines.taken()
        while some:
            try:
                await add_lines(store, key, some)
                break
            except ContractError:
                return
            except StoreError as error:
                logger.warning("The output of job %s waits for the database: %s", key, error)
                await asyncio.sleep(_EVERY)
