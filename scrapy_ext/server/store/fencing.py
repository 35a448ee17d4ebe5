"""Fencing: whoever does a job, or holds a lease, writes nothing once another does.

Attempts: a job's process writes nothing once its attempt is over. Every operation that such a process can reach has a
parameter ``attempt``, and passes it to :func:`check_attempt` before its first write. The check is in the transaction of
the write and locks the attempt until the commit, so that no other attempt begins in between. The routes take the
attempt from the call (``Call.attempt``).

Leases: work that one process at a time does, for longer than a transaction. A row lock would keep a transaction open
for hours. A lease is a row with an owner and an expiry. Its token increases with each new holder, and every result of
the work is stored in a transaction that compares the token (:func:`check_lease`): a holder whose lease has expired, and
was taken over, changes nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from scrapy_ext.api.platform.jobs import ATTEMPT_OVER
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError, Violation
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Transaction


class Attempt(NamedTuple):
    """An assignment of a job to a node, numbered per job."""

    key: JobKey
    number: int

    def __str__(self) -> str:
        return f"{self.key}, attempt {self.number}"


async def check_attempt(tx: Transaction, attempt: Attempt | None) -> None:
    """Raise :class:`ContractError` (403) when the attempt is over; else lock it until the commit.

    ``attempt`` None: the write is not that of a job's process.
    """
    if attempt is None:
        return
    row = await tx.fetchrow(
        "SELECT 1 FROM attempts WHERE project = $1 AND spider = $2 AND job = $3 AND attempt = $4 FOR SHARE",
        *attempt.key,
        attempt.number,
    )
    if row is None:
        raise ContractError([over(attempt)])


def over(attempt: Attempt) -> Violation:
    """Return the error for an attempt that is over."""
    return Violation(
        "attempt",
        f"{attempt.number} of job {attempt.key} {ATTEMPT_OVER}",
        "Nothing more of it is stored. The job continues in another attempt, or is finished.",
        403,
    )


#: Milliseconds until a lease expires that is not renewed, which bounds the delay after a crash.
DURATION: Final = 60_000


class Lease(NamedTuple):
    name: str
    token: int


class LeaseLostError(Exception):
    """Another process has the lease."""


async def _take(tx: Transaction, now: int, name: str, owner: str, duration: int) -> Lease | None:
    """Take a lease that nobody holds; return None while another process holds it."""
    await tx.execute(
        "INSERT INTO leases (name, owner, token, expires) VALUES ($1, '', 0, 0) ON CONFLICT (name) DO NOTHING", name
    )
    row = await tx.fetchrow("SELECT token, expires FROM leases WHERE name = $1 FOR UPDATE", name)
    if row is None or row[1] > now:
        return None
    await tx.execute(
        "UPDATE leases SET owner = $2, token = $3, expires = $4 WHERE name = $1",
        name,
        owner,
        row[0] + 1,
        now + duration,
    )
    return Lease(name, row[0] + 1)


async def release(tx: Transaction, lease: Lease) -> None:
    await tx.execute("UPDATE leases SET expires = 0 WHERE name = $1 AND token = $2", *lease)


async def check_lease(tx: Transaction, lease: Lease) -> None:
    """Keep the lease until the end of the transaction; raise :class:`LeaseLostError` if another process has it."""
    row = await tx.fetchrow("SELECT token FROM leases WHERE name = $1 FOR UPDATE", lease.name)
    if row is None or row[0] != lease.token:
        raise LeaseLostError


async def extend_lease(tx: Transaction, lease: Lease, expires: int) -> None:
    """Renew a lease; raise :class:`LeaseLostError` if another process has it."""
    await check_lease(tx, lease)
    await tx.execute("UPDATE leases SET expires = $2 WHERE name = $1", lease.name, expires)


class LeaseStore(EngineStore):
    async def take(self, name: str, owner: str, duration: int = DURATION) -> Lease | None:
        """Take a lease for some milliseconds; return None while another process holds it."""
        return await self._engine.write(_take, self._clock(), name, owner, duration)

    release = Method("write", release)
