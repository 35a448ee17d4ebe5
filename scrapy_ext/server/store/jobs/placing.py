"""Placing: the choice of the next pending job, and of its node.

Jobs with equal needs (units and tags) are in one queue, so that its first job is found without reading the others. Of
the first jobs of all queues, the one with the highest priority is next, then the one that has waited longest. A queue
that fits no node delays no other. A job that must wait for units reserves the node with most free units: otherwise
small jobs would occupy them one by one, for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import MAX_RUNNING, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import EngineStore, Method, Transaction
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs.nodes import StoredNode, nodes
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.jobs.states import Stamp
from scrapy_ext.server.store.version_rows import current_version

#: Notifies a node of a job in the transaction that places it: node, job, number of the attempt.
Notify = Callable[[Transaction, str, JobKey, int], Awaitable[None]]
Placed = tuple[JobKey, int]

#: Maximum queues that fit some node, queues read to find these, and heads compared in one call.
_QUEUES: Final = 100
_ALL_QUEUES: Final = 1000
_STEPS: Final = 200
#: Maximum groups of pending jobs on a page, and jobs counted per group.
_GROUPS: Final = 50
_COUNTED: Final = 10_000

_decode_tags: Final = msgspec.json.Decoder(list[str]).decode


class _Queue(NamedTuple):
    """Pending jobs with equal needs."""

    tags: str
    units: int

    def fits(self, node: StoredNode) -> bool:
        return self.units <= node.units and node.tags.issuperset(_decode_tags(self.tags))


class Waiting(NamedTuple):
    """Pending jobs with equal needs; ``jobs`` is a lower bound if there are ``more``."""

    tags: frozenset[str]
    units: int
    jobs: int
    more: bool

    def fits(self, node: StoredNode) -> bool:
        """Return true when an idle node could run them."""
        return not node.draining and self.units <= node.units and self.tags <= node.tags


class _Head(NamedTuple):
    """The first job of a queue. The smallest head is next."""

    rank: tuple[int, ...]
    key: JobKey
    queue: _Queue


async def may_place(tx: Transaction) -> bool:
    """Return false when no job can be placed, without taking locks."""
    if await tx.fetchrow("SELECT 1 FROM jobs WHERE state = 'pending' LIMIT 1") is None:
        return False
    return any(node.free for node in await nodes(tx))


async def place_one(tx: Transaction, stamp: Stamp, notify: Notify | None) -> Placed | None:
    """Place the next pending job; None when there is none, or another process is placing.

    One per transaction: several would be locked by priority, while other operations lock jobs by key.
    """
    await tx.execute("INSERT INTO locks (name, created) VALUES ('placing', $1) ON CONFLICT DO NOTHING", stamp.now)
    if await tx.fetchrow("SELECT created FROM locks WHERE name = 'placing' FOR UPDATE SKIP LOCKED") is None:
        return None
    room = {node.name: node for node in await nodes(tx)}
    queues = await _queues(tx, room.values())
    #: Projects with the maximum of running jobs, and by queue those whose code no fitting node has.
    full: set[int] = set()
    without: dict[_Queue, set[int]] = {queue: set() for queue in queues}
    for _ in range(_STEPS):
        heads = [head for queue in queues if (head := await _head(tx, queue, full | without[queue])) is not None]
        if not heads or not any(node.free for node in room.values()):
            return None
        _, key, queue = min(heads)
        able = await _with_code(tx, key.project, [node for node in room.values() if queue.fits(node)])
        if not able:
            without[queue].add(key.project)
            continue
        if await _is_full(tx, key.project):
            full.add(key.project)
            continue
        node = max(able, key=lambda node: (node.free, node.name))
        if node.free < queue.units:
            # The reservation moves only to a node with more free units, so that they suffice in the end.
            queues.remove(queue)
            room[node.name] = node._replace(used=node.units)
            continue
        return await _give(tx, key, node._replace(used=queue.units), stamp, notify)
    return None


async def _give(tx: Transaction, key: JobKey, node: StoredNode, stamp: Stamp, notify: Notify | None) -> Placed | None:
    """Place a job on a node; ``node.used`` is the number of its units."""
    job = await get_job(tx, key, lock=True)
    if job is None or job.state is not JobState.PENDING:
        return None  # another operation has changed it meanwhile
    number = await job_states.start_on(tx, job, node.name, stamp)
    await tx.execute(
        """INSERT INTO attempts (project, spider, job, attempt, node, units, placed)
           VALUES ($1, $2, $3, $4, $5, $6, $7)""",
        *key,
        number,
        node.name,
        node.used,
        stamp.now,
    )
    if notify is not None:
        await notify(tx, node.name, key, number)
    await job_states.report_started(tx, key, stamp)
    return key, number


async def _queues(tx: Transaction, room: Collection[StoredNode]) -> list[_Queue]:
    """Return the queues that fit some node; each step skips to the next entry of the index with other needs."""
    found: list[_Queue] = []
    last = _Queue("", 0)
    for _ in range(_ALL_QUEUES):
        # Two steps: SQLite would read all jobs with equal tags to compare both columns at once.
        row = await tx.fetchrow(
            """SELECT node_tags, units FROM jobs WHERE state = 'pending' AND node_tags = $1 AND units > $2
               ORDER BY units LIMIT 1""",
            *last,
        ) or await tx.fetchrow(
            """SELECT node_tags, units FROM jobs WHERE state = 'pending' AND node_tags > $1
               ORDER BY node_tags, units LIMIT 1""",
            last.tags,
        )
        if row is None:
            break
        last = _Queue(*row)
        if any(map(last.fits, room)):
            found.append(last)
            if len(found) == _QUEUES:
                break
    return found


async def _head(tx: Transaction, queue: _Queue, held: Collection[int]) -> _Head | None:
    marks = ", ".join(f"${place}" for place in range(3, 3 + len(held)))
    row = await tx.fetchrow(
        f"""SELECT priority, since, project, queued, spider, job FROM jobs
            WHERE state = 'pending' AND node_tags = $1 AND units = $2{f" AND project NOT IN ({marks})" if held else ""}
            ORDER BY priority DESC, since, project, queued LIMIT 1""",
        *queue,
        *held,
    )
    if row is None:
        return None
    priority, since, project, queued, spider, job = row
    return _Head((-priority, since, project, queued), JobKey(project, spider, job), queue)


async def _with_code(tx: Transaction, project: int, fitting: Sequence[StoredNode]) -> list[StoredNode]:
    """Return the nodes that can run a project: all if a version is deployed, else those with its local code."""
    if await current_version(tx, project) is not None:
        return list(fitting)
    return [node for node in fitting if node.project == project]


async def _is_full(tx: Transaction, project: int) -> bool:
    """Return true when a project runs the maximum of jobs that its settings allow."""
    row = await tx.fetchrow("SELECT value FROM project_settings WHERE project = $1 AND name = $2", project, MAX_RUNNING)
    try:
        most = msgspec.json.decode(row[0], type=int) if row else None
    except msgspec.DecodeError:  # clients may set any value
        most = None
    if most is None:
        return False
    running = await tx.fetchrow(
        "SELECT count(*) FROM (SELECT DISTINCT spider, job FROM attempts WHERE project = $1 AND node <> '') AS running",
        project,
    )
    return running is not None and running[0] >= most


async def groups(tx: Transaction) -> list[Waiting]:
    """Return groups of equal needs; each step skips to the next entry of the index with other needs."""
    found: list[Waiting] = []
    tags, units = "", 0
    while len(found) < _GROUPS:
        row = await tx.fetchrow(
            """SELECT node_tags, units FROM jobs WHERE state = 'pending' AND (node_tags, units) > ($1, $2)
               ORDER BY node_tags, units LIMIT 1""",
            tags,
            units,
        )
        if row is None:
            break
        tags, units = row
        count = await tx.fetchrow(
            """SELECT count(*) FROM (
                 SELECT 1 FROM jobs WHERE state = 'pending' AND node_tags = $1 AND units = $2 LIMIT $3) AS part""",
            tags,
            units,
            _COUNTED,
        )
        jobs = count[0] if count else 0
        found.append(Waiting(frozenset(_decode_tags(tags)), units, jobs, jobs == _COUNTED))
    return found


class WaitingStore(EngineStore):
    """The pending jobs of all projects."""

    groups = Method("read", groups)
