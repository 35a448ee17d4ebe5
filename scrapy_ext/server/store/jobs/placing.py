"""Placing: which pending job goes to which node.

Jobs that need the same units and tags stand in one queue, so that the next of each is found without looking at those
behind it. Among the first of all queues the highest priority goes first, then who has waited longest. A queue whose
jobs fit no node at all holds nobody up. A job that has to wait for units reserves the node that has most of them free:
else small jobs would take them one by one, and it would wait for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from scrapy_ext.api.platform.jobs import MAX_RUNNING, JobState
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.store.engine.interface import Engine, Transaction
from scrapy_ext.server.store.jobs import states as job_states
from scrapy_ext.server.store.jobs.nodes import Node, nodes
from scrapy_ext.server.store.jobs.rows import get_job
from scrapy_ext.server.store.jobs.states import Stamp
from scrapy_ext.server.store.versions.rows import current_version

#: Notifies a node of its new job, within the transaction that places it: the node, the job, the attempt's number.
Notify = Callable[[Transaction, str, JobKey, int], Awaitable[None]]
Placed = tuple[JobKey, int]

#: Queues that some node fits, all that are looked at to find these, and heads looked at in one turn.
_QUEUES: Final = 100
_ALL_QUEUES: Final = 1000
_STEPS: Final = 200
#: Groups of pending jobs that a page shows, and jobs of each that are counted.
_GROUPS: Final = 50
_COUNTED: Final = 10_000

_decode_tags: Final = msgspec.json.Decoder(list[str]).decode


class _Queue(NamedTuple):
    """Jobs that need the same."""

    tags: str
    units: int

    def fits(self, node: Node) -> bool:
        return self.units <= node.units and node.tags.issuperset(_decode_tags(self.tags))


class Waiting(NamedTuple):
    """Jobs that need the same tags and units of a node; at least so many when there are ``more``."""

    tags: frozenset[str]
    units: int
    jobs: int
    more: bool

    def fits(self, node: Node) -> bool:
        """Whether the node could run them, once it has nothing else to do."""
        return not node.draining and self.units <= node.units and self.tags <= node.tags


class WaitingStore:
    """The pending jobs of all projects."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def groups(self) -> list[Waiting]:
        """What pending jobs need, and how many need it."""
        return await self._engine.read(_groups)


class _Head(NamedTuple):
    """The first job of a queue. Of several heads the smallest is next."""

    rank: tuple[int, ...]
    key: JobKey
    queue: _Queue


async def is_worth_a_turn(tx: Transaction) -> bool:
    """Whether there may be a job to place, as far as a look without locks tells."""
    if await tx.fetchrow("SELECT 1 FROM jobs WHERE state = 'pending' LIMIT 1") is None:
        return False
    return any(node.free for node in await nodes(tx))


async def place_one(tx: Transaction, stamp: Stamp, notify: Notify | None) -> Placed | None:
    """Give the next pending job to a node; None when none can be given, or somebody else has the turn.

    One in each transaction: several would be locked in the order of their priorities, where others lock them by key.
    """
    await tx.execute("INSERT INTO turns (name, taken) VALUES ('placing', $1) ON CONFLICT DO NOTHING", stamp.now)
    if await tx.fetchrow("SELECT taken FROM turns WHERE name = 'placing' FOR UPDATE SKIP LOCKED") is None:
        return None
    room = {node.name: node for node in await nodes(tx)}
    queues = await _queues(tx, room.values())
    #: Projects whose jobs have to wait, whatever nodes are free, and those that have no code where a queue fits.
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
            # Reserved. It moves only to a node that has more units free, so that one day there are enough.
            queues.remove(queue)
            room[node.name] = node._replace(used=node.units)
            continue
        return await _give(tx, key, node._replace(used=queue.units), stamp, notify)
    return None


async def _give(tx: Transaction, key: JobKey, node: Node, stamp: Stamp, notify: Notify | None) -> Placed | None:
    """Give a job to a node, of which it uses ``node.used``."""
    job = await get_job(tx, key, lock=True)
    if job is None or job.state is not JobState.PENDING:
        return None  # somebody was faster, with this one
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


async def _queues(tx: Transaction, room: Collection[Node]) -> list[_Queue]:
    """What pending jobs need that some node has: each step goes to the next of the index, over all jobs that need the
    same."""
    found: list[_Queue] = []
    last = _Queue("", 0)
    for _ in range(_ALL_QUEUES):
        # Two steps: SQLite would look at all jobs that need the same tags to compare both at once.
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
            ORDER BY priority DESC, since, project, queued LIMIT 1""",  # noqa: S608 - marks
        *queue,
        *held,
    )
    if row is None:
        return None
    priority, since, project, queued, spider, job = row
    return _Head((-priority, since, project, queued), JobKey(project, spider, job), queue)


async def _with_code(tx: Transaction, project: int, fitting: Sequence[Node]) -> list[Node]:
    """The nodes that can run jobs of a project: any if a version is deployed, else those that have its code."""
    if await current_version(tx, project) is not None:
        return list(fitting)
    return [node for node in fitting if node.project == project]


async def _is_full(tx: Transaction, project: int) -> bool:
    """Whether as many jobs of a project run as its settings allow."""
    row = await tx.fetchrow("SELECT value FROM project_settings WHERE project = $1 AND name = $2", project, MAX_RUNNING)
    try:
        most = msgspec.json.decode(row[0], type=int) if row else None
    except msgspec.DecodeError:  # clients may have written anything
        most = None
    if most is None:
        return False
    running = await tx.fetchrow("SELECT count(*) FROM attempts WHERE project = $1", project)
    return running is not None and running[0] >= most


async def _groups(tx: Transaction) -> list[Waiting]:
    """Each step goes to the next of the index, over all jobs that need the same."""
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
