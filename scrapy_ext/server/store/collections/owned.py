"""Records of collections that belong to jobs: staged items and snapshots (``job_data``). Those of a deleted job are not
read or written.

Their keys name their job, so that they are unreadable from the commit of its deletion on. Their rows are removed later
(``removals``).
"""

from __future__ import annotations

from collections.abc import Iterable

from scrapy_ext.api.platform.job_data import OWNED_COLLECTIONS
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.collections.selections import Collection
from scrapy_ext.server.store.engine.interface import Transaction
from scrapy_ext.server.store.records.removal import check_not_deleted, deletion_error, find_deletion


async def check_jobs(tx: Transaction, which: Collection, keys: Iterable[bytes]) -> None:
    """Raise :class:`ContractError` (410) when a key names a deleted job. Later deletions wait for the transaction."""
    for job in sorted(_jobs(which, keys)):
        await check_not_deleted(tx, job)


async def check_job(tx: Transaction, which: Collection, key: bytes) -> None:
    """Raise :class:`ContractError` (410) when a key that is read names a deleted job."""
    for job in _jobs(which, [key]):
        if (deletion := await find_deletion(tx, job)) is not None:
            raise deletion_error(job, deletion)


async def hidden_keys(tx: Transaction, which: Collection, keys: Iterable[bytes]) -> set[bytes]:
    """Return the keys that name a deleted job."""
    hidden: set[bytes] = set()
    for job, named in _jobs(which, keys).items():
        if await find_deletion(tx, job) is not None:
            hidden.update(named)
    return hidden


def _jobs(which: Collection, keys: Iterable[bytes]) -> dict[JobKey, list[bytes]]:
    """Return the keys by the jobs that they name."""
    jobs: dict[JobKey, list[bytes]] = {}
    owned = OWNED_COLLECTIONS.get(which.name)
    if owned is not None and which.type is owned.type:
        for key in keys:
            if (job := owned.job_of(which.project, key.decode())) is not None:
                jobs.setdefault(job, []).append(key)
    return jobs
