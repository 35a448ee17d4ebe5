"""Exactly once, as a pure state machine: events in, actions out. No I/O, no event loop, no Scrapy.

Everything that decides when a result becomes final is in this file. Its data is in
:mod:`~scrapy_ext.crawl.commit.events`; :mod:`~scrapy_ext.crawl.commit.execution` executes its actions.

A process commits the results of finished requests, many at a time. A commit is a record in the journal of the process
(:class:`~scrapy_ext.crawl.commit.events.Checkpoint`), an append-only list to which only one process can add the next
number. The invariants, and why they hold:

1. *A record names durable things only.* ``APPENDING`` is entered from ``STAGING`` when the children of the requests
   are in the frontier and every payload of their items is staged.
2. *An item has one index.* Indexes are assigned when a record is made, from the one after the last record's. A process
   that takes over completes the last record and continues after the stored items. Each worker of a group numbers the
   items of its own stream (:attr:`~scrapy_ext.crawl.commit.events.Redo.writer`), so a successor completes the record in
   the stream of the dead worker.
3. *A record is executed.* ``STORING`` and ``ACKNOWLEDGING`` follow it, in this process or in one that takes over,
   which reads the newest record and repeats both. A repeated or late execution changes nothing: the same bytes go to
   the same indexes, and a batch is deleted once. Only one record can be incomplete, since the next commit begins when
   the last one has ended.
4. *A batch is acknowledged when each of its requests is in a record.* Until then the record has the finished positions
   (:class:`~scrapy_ext.crawl.commit.events.Progress`), and a successor runs only the others.
5. *Of two processes one commits.* A process that takes over first appends a record. From then on an append of the
   former process is refused, it stops, and no record names what it has staged.
6. *A payload exists while the newest record names it.* It is deleted when the commit after that one has ended.

A process that dies before its record has changed nothing that shows: its successor runs the requests again, and their
children have known fingerprints. The successor of one that dies after its record completes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import ClassVar, Final, TypeAlias

from scrapy_ext.crawl.commit import events

#: A commit is due when this number of requests, items or bytes of items waits. It takes several calls, however few
#: requests it has.
_REQUESTS: Final = 400
_ITEMS: Final = 1000
_BYTES: Final = 1024 * 1024
#: Requests that one commit takes at most.
_MOST_REQUESTS: Final = 1000
#: Payloads that are deleted together.
_GARBAGE: Final = 30


class State(Enum):
    #: No commit runs.
    IDLE = "idle"
    #: Children and items become durable. A death here repeats the requests.
    STAGING = "staging"
    #: The newest record of another process is being read.
    READING = "reading"
    #: The record is being appended. It is valid, or it is not.
    APPENDING = "appending"
    #: The record is valid. After a death from here on, the successor stores and acknowledges.
    STORING = "storing"
    ACKNOWLEDGING = "acknowledging"
    #: Another process writes the journal, or an action has failed.
    STOPPED = "stopped"


Table: TypeAlias = Mapping[tuple[State, type[events.Event]], State]

#: States of a process that commits. ``STAGING`` and ``STORING`` end with the last of their events. An event without a
#: row changes no state.
COMMITS: Final[Table] = {
    (State.IDLE, events.Due): State.STAGING,
    (State.STAGING, events.Flushed): State.APPENDING,
    (State.STAGING, events.Staged): State.APPENDING,
    (State.APPENDING, events.Appended): State.STORING,
    (State.APPENDING, events.Refused): State.STOPPED,
    (State.STORING, events.ChunkStored): State.ACKNOWLEDGING,
    (State.ACKNOWLEDGING, events.Acknowledged): State.IDLE,
    **{(state, events.Failed): State.STOPPED for state in State if state not in (State.STOPPED, State.READING)},
}
#: States of a process that takes a journal over. If its record is refused, the former process is alive and has written
#: another one, or a third process has: the newest is read again.
TAKEOVER: Final[Table] = {
    (State.READING, events.Read): State.APPENDING,
    (State.APPENDING, events.Refused): State.READING,
    (State.APPENDING, events.Appended): State.STORING,
    (State.STORING, events.ChunkStored): State.ACKNOWLEDGING,
    (State.ACKNOWLEDGING, events.Acknowledged): State.IDLE,
}


class Verdict(Enum):
    """Treatment of a complete request."""

    COMMIT = "commit"
    RUN_AGAIN = "run again"
    DEAD_LETTER = "move to the dead letters, and commit"
    LEAVE = "leave to the next run"


def verdict(*, is_interrupted: bool, has_failed: bool, attempts_left: int) -> Verdict:
    """Decide on a complete request. ``is_interrupted``: a part of it did not run because the crawl closes.
    ``has_failed``: its callback raised."""
    if is_interrupted:
        return Verdict.LEAVE
    if not has_failed:
        return Verdict.COMMIT
    return Verdict.RUN_AGAIN if attempts_left > 0 else Verdict.DEAD_LETTER


class _Machine:
    """A state with its table, and the common end of a commit and a takeover: the items of a record are stored, then
    its batches acknowledged."""

    table: ClassVar[Table]

    def __init__(self, state: State, checkpoint: events.Checkpoint) -> None:
        self.state = state
        self.checkpoint = checkpoint
        self._chunks: deque[events.Chunk] = deque()

    def receive(self, event: events.Event) -> list[events.Action]:
        self._note(event)
        after = self.table.get((self.state, type(event)))
        if after is None:
            return []
        if after is State.ACKNOWLEDGING and self._chunks:
            return self._next_chunk()
        return self._enter(after) if self._may_enter(after) else []

    def _enter(self, state: State) -> list[events.Action]:
        self.state = state
        return self._actions_of(state)

    def _actions_of(self, state: State) -> list[events.Action]:
        redo = self.checkpoint.redo
        if state is State.STORING:
            self._chunks = deque(redo.chunks if redo is not None else ())
            return self._next_chunk() if self._chunks else self._enter(State.ACKNOWLEDGING)
        return [events.Acknowledge(redo.acknowledge if redo is not None else {})]

    def _next_chunk(self) -> list[events.Action]:
        assert self.checkpoint.redo is not None  # noqa: S101 - it has the chunks
        return [events.StoreChunk(self.checkpoint.redo, self._chunks[0])]

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.ChunkStored) and self._chunks:
            self._chunks.popleft()

    def _may_enter(self, _state: State) -> bool:
        return True


class Takeover(_Machine):
    """Takeover of a journal: its writer can commit nothing more, and its last commit is completed.

    ``heir`` describes the new writer: its ``worker``, ``slots`` and ``closed`` replace those of the record. ``number``
    is the number of the last record.
    """

    table = TAKEOVER

    def __init__(self, heir: events.Checkpoint) -> None:
        super().__init__(State.READING, events.Checkpoint())
        self._heir = heir
        self.number = 0

    def begin(self, *, is_new: bool = False) -> list[events.Action]:
        """Return the first action. ``is_new``: the journal should be empty, so that it is read only if it is not."""
        actions = self._enter(State.READING)
        return self.receive(events.Read(0, events.Checkpoint())) if is_new else actions

    def _note(self, event: events.Event) -> None:
        super()._note(event)
        if isinstance(event, events.Read):
            self.number, self.checkpoint = event.number + 1, event.checkpoint
            self.checkpoint.worker, self.checkpoint.slots = self._heir.worker, self._heir.slots
            self.checkpoint.idle, self.checkpoint.closed = False, self._heir.closed

    def _actions_of(self, state: State) -> list[events.Action]:
        if state is State.READING:
            return [events.ReadHead()]
        if state is State.APPENDING:
            return [events.Append(self.checkpoint, self.number)]
        return [] if state is State.IDLE else super()._actions_of(state)


class _Commit:
    def __init__(self, lots: list[events.Lot], before: events.Redo | None) -> None:
        self.lots = lots
        self.before = before
        self.items = [record for lot in lots for record in lot.items]
        self.payloads = [payload for lot in lots for payload in lot.payloads]
        self.batches: list[events.OpenBatch] = []
        self.are_children_flushed = False


class Commits(_Machine):
    """Commits of one process, one after the other.

    ``checkpoint``: the newest record of its journal.
    ``job``: the job that gets the items. ``start``: index of the next item.
    ``owner``: name of the process, for payloads.
    ``writer``: attempt of a worker of a group, in whose stream the items are numbered.
    """

    table = COMMITS

    def __init__(
        self, checkpoint: events.Checkpoint, job: str, owner: str, start: int, writer: int | None = None
    ) -> None:
        super().__init__(State.IDLE, checkpoint)
        self.owner = owner
        self._job = job
        self._writer = writer
        self._next = start
        self._lots: deque[events.Lot] = deque()
        self._commit: _Commit | None = None
        self._items = 0
        self._number = 0
        self._early: dict[int, int] = {}
        self._unstaged: set[int] = set()
        self._garbage: list[int] = []
        #: Whether the next commit begins at the end of this one.
        self._is_next_due = False
        #: Bytes of items that are not durable.
        self.pending_bytes = 0
        #: Numbers of lots.
        self.added = self.committed = 0
        #: Error that ended the commits.
        self.failure: Exception | None = None

    @property
    def is_due(self) -> bool:
        return len(self._lots) >= _REQUESTS or self._items >= _ITEMS or self.pending_bytes >= _BYTES

    @property
    def is_waiting(self) -> bool:
        return bool(self._lots)

    @property
    def is_idle(self) -> bool:
        """Return true if every lot is committed."""
        return self.committed == self.added

    def add(self, lot: events.Lot) -> None:
        self._lots.append(lot)
        self.added += 1
        self._items += len(lot.items)
        self.pending_bytes += sum(map(len, lot.items))

    def stage_early(self, items: list[bytes]) -> events.Stage:
        """Stage items of an unfinished request. They become a payload of its lot."""
        number = self._new_number()
        self._early[number] = size = sum(map(len, items))
        self._unstaged.add(number)
        self.pending_bytes += size
        return events.Stage(number, items, is_early=True)

    def discard(self, payloads: Iterable[events.Payload]) -> None:
        """Discard staged items of a request that runs again."""
        self._garbage += [payload.number for payload in payloads]

    # ── events ──

    def _note(self, event: events.Event) -> None:
        super()._note(event)
        if isinstance(event, events.Staged):
            self._unstaged.discard(event.number)
            self.pending_bytes -= self._early.pop(event.number, 0)
        elif isinstance(event, events.Due):
            self._is_next_due = self._commit is not None
        elif isinstance(event, events.Flushed) and self._commit is not None:
            self._commit.are_children_flushed = True
        elif isinstance(event, events.Failed | events.Refused) and self.failure is None:
            self.failure = event.error

    def _may_enter(self, state: State) -> bool:
        if state is State.STAGING:
            return self.is_waiting
        commit = self._commit
        if state is not State.APPENDING or commit is None:
            return True
        return commit.are_children_flushed and self._unstaged.isdisjoint(payload.number for payload in commit.payloads)

    # ── actions ──

    def _actions_of(self, state: State) -> list[events.Action]:
        actions = self._ENTERED.get(state)
        return actions(self) if actions is not None else super()._actions_of(state)

    def _stage(self) -> list[events.Action]:
        self._commit = commit = _Commit(self._take_lots(), self.checkpoint.redo)
        if not commit.items:
            return [events.FlushChildren()]
        stage = events.Stage(self._new_number(), commit.items)
        commit.payloads.append(stage.payload)
        self._unstaged.add(stage.number)
        return [events.FlushChildren(), stage]

    def _append(self) -> list[events.Action]:
        """Add the commit to the checkpoint, in one step: another task may write it at any time."""
        commit, checkpoint = self._running, self.checkpoint
        touched: dict[events.OpenBatch, None] = {}
        for lot in commit.lots:
            if lot.is_start:
                checkpoint.start_items += len(lot.items)
            if lot.stored is not None:
                lot.stored.batch.done |= 1 << lot.stored.position
                touched[lot.stored.batch] = None
        done: dict[int, list[str]] = {}
        for batch in touched:
            if batch.is_done:
                commit.batches.append(batch)
                done.setdefault(batch.slot, []).append(batch.id)
                checkpoint.progress.forget(batch.slot, batch.id)
            else:
                checkpoint.progress.done.setdefault(batch.slot, {})[batch.id] = f"{batch.done:x}"
        chunks = []
        for number, size in commit.payloads:
            chunks.append(events.Chunk(number, self._next, size))
            self._next += size
        checkpoint.redo = events.Redo(self._job, self.owner, chunks, done, self._writer)
        return [events.Append(checkpoint)]

    def _end(self) -> list[events.Action]:
        commit = self._running
        self._commit = None
        self.committed += len(commit.lots)
        self.pending_bytes -= sum(map(len, commit.items))
        if commit.before is not None and commit.before.owner == self.owner:
            self._garbage += [chunk.number for chunk in commit.before.chunks]
        actions: list[events.Action] = [events.Report(commit.lots, commit.batches)]
        # A payload whose staging is not confirmed could arrive after its deletion.
        if len(unused := [number for number in self._garbage if number not in self._unstaged]) >= _GARBAGE:
            self._garbage = [number for number in self._garbage if number in self._unstaged]
            actions.append(events.Forget(unused))
        # What is not due yet waits for more: a commit takes several calls, however few requests it has.
        return actions + self.receive(events.Due()) if self._is_next_due or self.is_due else actions

    def _stop(self) -> list[events.Action]:
        assert self.failure is not None  # noqa: S101 - its event came before
        return [events.Stop(self.failure)]

    _ENTERED: ClassVar[Mapping[State, Callable[[Commits], list[events.Action]]]] = {
        State.STAGING: _stage,
        State.APPENDING: _append,
        State.IDLE: _end,
        State.STOPPED: _stop,
    }

    @property
    def _running(self) -> _Commit:
        assert self._commit is not None  # noqa: S101 - staging made it
        return self._commit

    def _take_lots(self) -> list[events.Lot]:
        taken: list[events.Lot] = []
        items = size = 0
        while self._lots and len(taken) < _MOST_REQUESTS and items < _ITEMS and size < _BYTES:
            lot = self._lots.popleft()
            taken.append(lot)
            items += len(lot.items)
            size += sum(map(len, lot.items))
        self._items -= items
        return taken

    def _new_number(self) -> int:
        self._number += 1
        return self._number
