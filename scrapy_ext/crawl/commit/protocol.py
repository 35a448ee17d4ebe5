"""Exactly once, as a state machine: events come in, actions go out. No I/O, no event loop and no Scrapy in it.

Everything that decides when something becomes final is in this file. What carries the actions out stands beside it:
:mod:`~scrapy_ext.crawl.commit.committer`, :mod:`~scrapy_ext.crawl.commit.journal` and
:mod:`~scrapy_ext.crawl.commit.staging`.

A process commits what finished requests have led to, many at a time. A commit is a record in the journal of the process
(:class:`Checkpoint`), an append-only list to which one process alone can add the next number. The invariants, and why
they hold:

1. *A record names durable things only.* ``APPENDING`` is entered from ``STAGING``, when the children of the requests
   are in the frontier and every payload of their items is staged.
2. *An item has one place.* Places are given out when a record is made, from the one behind the last record's. A process
   that takes over counts on from what is stored after it has finished the last record.
3. *What a record says happens.* ``STORING`` and ``ACKNOWLEDGING`` follow it, in this process or in one that takes over,
   which reads the newest record and does both again. Doing so twice, or late, changes nothing: the same bytes go to
   the same places, and a batch is deleted once. There is only one record to finish, since the next commit begins when
   the last one has ended.
4. *A batch is acknowledged when each of its requests is in a record.* Until then the positions that are done are in the
   record (:class:`Progress`), and a successor runs the others alone.
5. *Of two processes one commits.* Whoever takes over appends a record before it does anything else. From then on an
   append of the former process is refused, it stops, and what it had staged is named by no record.
6. *A payload is there while the newest record names it.* It is forgotten when the commit behind that one has ended.

A process that dies before the record has done nothing that shows: its successor runs the requests again, and their
children have known fingerprints. One that dies after it has its successor finish.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import msgspec

#: A commit is due when so many requests, items or bytes of items wait, and takes about so many at once.
_REQUESTS: Final = 100
_ITEMS: Final = 1000
_BYTES: Final = 1024 * 1024
#: Payloads that are forgotten together.
_GARBAGE: Final = 30

# ── what a journal says ──

#: Batch ID to finished positions, as a bit mask in hexadecimal digits.
Done: TypeAlias = dict[str, str]


class Chunk(msgspec.Struct, array_like=True):
    """Staged items: the number of their payload, the index of the first of them in the job, how many they are."""

    number: int
    start: int
    count: int


class Redo(msgspec.Struct, omit_defaults=True):
    """The end of a commit: chunks of items to store in a job, batches to acknowledge by slot. Doing it again changes
    nothing. ``owner`` is the process that staged the chunks."""

    job: str
    owner: str
    chunks: list[Chunk] = []
    acknowledge: dict[int, list[str]] = {}


class Progress(msgspec.Struct, omit_defaults=True):
    """Finished positions of partly finished batches, by slot."""

    done: dict[int, Done] = {}

    def of(self, slots: set[int]) -> Progress:
        """Only of these slots."""
        return Progress({slot: done for slot, done in self.done.items() if slot in slots})

    def add(self, other: Progress) -> None:
        """Take over what the other knows. What is done stays done, so it does not matter which of them is newer."""
        for slot, batches in other.done.items():
            mine = self.done.setdefault(slot, {})
            for batch, mask in batches.items():
                mine[batch] = f"{int(mine.get(batch, '0'), 16) | int(mask, 16):x}"

    def drop(self, slots: set[int]) -> None:
        """Forget these slots."""
        for slot in slots:
            self.done.pop(slot, None)

    def forget(self, slot: int, batch: str) -> None:
        """Note that a batch is done."""
        batches = self.done.get(slot)
        if batches is not None and batches.pop(batch, None) is not None and not batches:
            del self.done[slot]


class Checkpoint(msgspec.Struct, omit_defaults=True):
    """A record of a commit journal. The newest has everything that a successor needs.

    ``worker``: who wrote it, for people; empty: the slots were taken over for another job.
    ``slots``: the slots that it owns.
    ``idle``: whether it has nothing to do; ``turns``: how often that has changed; ``closed``: whether it has ended.
    ``start_items``: number of stored items of ``start()``.
    """

    worker: str = ""
    slots: list[int] = []
    idle: bool = False
    turns: int = 0
    closed: bool = False
    start_items: int = 0
    progress: Progress = msgspec.field(default_factory=Progress)
    redo: Redo | None = None


# ── what is committed ──


class OpenBatch:
    """A batch that was read and not acknowledged."""

    __slots__ = ("done", "id", "size", "slot")

    def __init__(self, slot: int, id: str, size: int, done: int = 0) -> None:
        self.slot = slot
        self.id = id
        self.size = size
        #: Bit mask of the positions that are committed.
        self.done = done

    @property
    def is_done(self) -> bool:
        """Whether each of its requests is committed."""
        return self.done == (1 << self.size) - 1


class Stored(NamedTuple):
    """A request as the frontier has it: its fingerprint in the slot, its JSON form, its place in a batch."""

    fp: str
    form: dict[str, Any]
    batch: OpenBatch
    position: int


class Payload(NamedTuple):
    """Items that are staged, out of memory: the number of their payload, and how many they are."""

    number: int
    size: int


class Lot(NamedTuple):
    """Something to commit: a complete request with its items, or items of none.

    ``stored``: the request's place; None for items of no request, and for a request that is in no batch.
    ``payloads``: items that were staged before the others.
    ``is_start``: whether the items are of ``start()``.
    ``origin``: whatever the lot stands for, for the report of the commit.
    """

    items: list[bytes]
    stored: Stored | None = None
    payloads: Sequence[Payload] = ()
    is_start: bool = False
    origin: object = None


class Verdict(Enum):
    """What becomes of a complete request."""

    COMMIT = "commit"
    RUN_AGAIN = "run again"
    SET_ASIDE = "move to the dead letters, and commit"
    LEAVE = "leave to the next run"


def verdict(*, is_interrupted: bool, has_failed: bool, attempts_left: int) -> Verdict:
    """Decide what becomes of a complete request. ``is_interrupted``: a part of it was not done because the crawl
    closes. ``has_failed``: its callback raised."""
    if is_interrupted:
        return Verdict.LEAVE
    if not has_failed:
        return Verdict.COMMIT
    return Verdict.RUN_AGAIN if attempts_left > 0 else Verdict.SET_ASIDE


# ── events, actions, states ──


class Due(NamedTuple):
    """What waits is to be committed."""


class Flushed(NamedTuple):
    """The children of all requests are in the frontier."""


class Staged(NamedTuple):
    """A payload is durable."""

    number: int


class Read(NamedTuple):
    """The newest record of a journal was read: its number, and the checkpoint; 0 and an empty one of an empty
    journal."""

    number: int
    checkpoint: Checkpoint


class Appended(NamedTuple):
    """The record is in the journal."""


class Refused(NamedTuple):
    """The number of the record is taken: another process writes the journal now."""

    error: Exception


class ChunkStored(NamedTuple):
    """The items of a chunk are stored."""


class Acknowledged(NamedTuple):
    """The batches are deleted."""


class Failed(NamedTuple):
    """An action cannot be carried out. It was repeated as long as that was of use."""

    error: Exception


Event: TypeAlias = Due | Flushed | Staged | Read | Appended | Refused | ChunkStored | Acknowledged | Failed


class FlushChildren(NamedTuple):
    """Make durable what was sent to the frontier; then :class:`Flushed`."""


class Stage(NamedTuple):
    """Make items durable as a payload; then :class:`Staged`. ``is_early``: they are not stored soon after."""

    number: int
    items: list[bytes]
    is_early: bool = False

    @property
    def payload(self) -> Payload:
        """The payload that they become."""
        return Payload(self.number, len(self.items))


class ReadHead(NamedTuple):
    """Read the newest record of the journal; then :class:`Read`."""


class Append(NamedTuple):
    """Append the checkpoint to the journal; then :class:`Appended` or :class:`Refused`. ``number`` is that of the
    record, None: the next."""

    checkpoint: Checkpoint
    number: int | None = None


class StoreChunk(NamedTuple):
    """Store staged items at their places; then :class:`ChunkStored`."""

    redo: Redo
    chunk: Chunk


class Acknowledge(NamedTuple):
    """Delete batches, by slot; then :class:`Acknowledged`."""

    batches: Mapping[int, list[str]]


class Report(NamedTuple):
    """Report what was committed, and the batches that were acknowledged by it."""

    lots: Sequence[Lot]
    batches: Sequence[OpenBatch]


class Forget(NamedTuple):
    """Remove payloads that no record names. If that fails, it only takes room."""

    numbers: Sequence[int]


class Stop(NamedTuple):
    """Commit nothing more."""

    error: Exception


Action: TypeAlias = (
    FlushChildren | Stage | ReadHead | Append | StoreChunk | Acknowledge | Report | Forget | Stop
)  # fmt: skip


class State(Enum):
    """State of a commit, or of a takeover."""

    #: Nothing is under way.
    IDLE = "idle"
    #: Children and items become durable. A death here repeats the requests.
    STAGING = "staging"
    #: The newest record of another process is being read.
    READING = "reading"
    #: The record is on its way. It counts, or it does not.
    APPENDING = "appending"
    #: The record counts. A death from here on has the successor store and acknowledge.
    STORING = "storing"
    ACKNOWLEDGING = "acknowledging"
    #: Another process writes the journal, or an action failed for good.
    STOPPED = "stopped"


Table: TypeAlias = Mapping[tuple[State, type[Event]], State]

#: States of the process that commits. ``STAGING`` and ``STORING`` are left when nothing of them is missing any more.
#: What is not in the table changes no state.
COMMITS: Final[Table] = {
    (State.IDLE, Due): State.STAGING,
    (State.STAGING, Flushed): State.APPENDING,
    (State.STAGING, Staged): State.APPENDING,
    (State.APPENDING, Appended): State.STORING,
    (State.APPENDING, Refused): State.STOPPED,
    (State.STORING, ChunkStored): State.ACKNOWLEDGING,
    (State.ACKNOWLEDGING, Acknowledged): State.IDLE,
    **{(state, Failed): State.STOPPED for state in State if state not in (State.STOPPED, State.READING)},
}
#: States of a process that takes a journal over. A record that is refused was written by the former process, which is
#: not dead, or by a third one: the newest is read again.
TAKEOVER: Final[Table] = {
    (State.READING, Read): State.APPENDING,
    (State.APPENDING, Refused): State.READING,
    (State.APPENDING, Appended): State.STORING,
    (State.STORING, ChunkStored): State.ACKNOWLEDGING,
    (State.ACKNOWLEDGING, Acknowledged): State.IDLE,
}


class _Machine:
    """A state, its table, and the end that a commit and a takeover have in common: a record's items are stored, then
    its batches acknowledged."""

    table: ClassVar[Table]

    def __init__(self, state: State, checkpoint: Checkpoint) -> None:
        self.state = state
        self.checkpoint = checkpoint
        self._chunks: deque[Chunk] = deque()

    def receive(self, event: Event) -> list[Action]:
        """Take an event; returns the actions that follow from it."""
        self._note(event)
        after = self.table.get((self.state, type(event)))
        if after is None:
            return []
        if after is State.ACKNOWLEDGING and self._chunks:
            return self._next_chunk()
        return self._enter(after) if self._may_enter(after) else []

    def _enter(self, state: State) -> list[Action]:
        self.state = state
        return self._actions_of(state)

    def _actions_of(self, state: State) -> list[Action]:
        redo = self.checkpoint.redo
        if state is State.STORING:
            self._chunks = deque(redo.chunks if redo is not None else ())
            return self._next_chunk() if self._chunks else self._enter(State.ACKNOWLEDGING)
        return [Acknowledge(redo.acknowledge if redo is not None else {})]

    def _next_chunk(self) -> list[Action]:
        assert self.checkpoint.redo is not None  # noqa: S101 - it has the chunks
        return [StoreChunk(self.checkpoint.redo, self._chunks[0])]

    def _note(self, event: Event) -> None:
        if isinstance(event, ChunkStored) and self._chunks:
            self._chunks.popleft()

    def _may_enter(self, _state: State) -> bool:
        return True


class Takeover(_Machine):
    """Takeover of a journal: its writer can commit nothing more, and what it had begun is finished.

    ``heir`` says who takes over: its ``worker``, ``slots`` and ``closed`` replace those of the record.
    """

    table = TAKEOVER

    def __init__(self, heir: Checkpoint) -> None:
        super().__init__(State.READING, Checkpoint())
        self._heir = heir
        #: The number of the last record.
        self.number = 0

    def begin(self) -> list[Action]:
        """Return the first action."""
        return self._enter(State.READING)

    def _note(self, event: Event) -> None:
        super()._note(event)
        if isinstance(event, Read):
            self.number, self.checkpoint = event.number + 1, event.checkpoint
            self.checkpoint.worker, self.checkpoint.slots = self._heir.worker, self._heir.slots
            self.checkpoint.idle, self.checkpoint.closed = False, self._heir.closed

    def _actions_of(self, state: State) -> list[Action]:
        if state is State.READING:
            return [ReadHead()]
        if state is State.APPENDING:
            return [Append(self.checkpoint, self.number)]
        return [] if state is State.IDLE else super()._actions_of(state)


class _Commit:
    """A commit that is under way."""

    __slots__ = ("are_children_flushed", "batches", "before", "items", "lots", "payloads")

    def __init__(self, lots: list[Lot], before: Redo | None) -> None:
        self.lots = lots
        self.before = before
        self.items = [record for lot in lots for record in lot.items]
        self.payloads = [payload for lot in lots for payload in lot.payloads]
        self.batches: list[OpenBatch] = []
        self.are_children_flushed = False


class Commits(_Machine):
    """The commits of one process, one after the other.

    ``checkpoint`` is the newest record of its journal. ``job`` is the job that gets the items, ``owner`` the name of
    the process for payloads, ``start`` the index of the next item.
    """

    table = COMMITS

    def __init__(self, checkpoint: Checkpoint, job: str, owner: str, start: int) -> None:
        super().__init__(State.IDLE, checkpoint)
        self._job = job
        self._owner = owner
        self._next = start
        self._lots: deque[Lot] = deque()
        self._commit: _Commit | None = None
        self._items = 0
        self._number = 0
        self._early: dict[int, int] = {}
        self._unstaged: set[int] = set()
        self._garbage: list[int] = []
        #: Bytes of items that are not durable.
        self.pending_bytes = 0
        #: How many lots were added, and how many are committed.
        self.added = self.committed = 0
        #: Why nothing more is committed.
        self.failure: Exception | None = None

    @property
    def is_due(self) -> bool:
        """Whether so much waits that it should be committed now."""
        return len(self._lots) >= _REQUESTS or self._items >= _ITEMS or self.pending_bytes >= _BYTES

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for the next commit."""
        return bool(self._lots)

    @property
    def is_idle(self) -> bool:
        """Whether everything is committed that was added."""
        return self.committed == self.added

    def add(self, lot: Lot) -> None:
        """Take something to commit."""
        self._lots.append(lot)
        self.added += 1
        self._items += len(lot.items)
        self.pending_bytes += sum(map(len, lot.items))

    def stage_early(self, items: list[bytes]) -> Stage:
        """Take items of an unfinished request out of memory. Their number and count are a payload of its lot."""
        number = self._new_number()
        self._early[number] = size = sum(map(len, items))
        self._unstaged.add(number)
        self.pending_bytes += size
        return Stage(number, items, is_early=True)

    def discard(self, payloads: Iterable[Payload]) -> None:
        """Forget items of a request that runs again."""
        self._garbage += [payload.number for payload in payloads]

    # ── events ──

    def _note(self, event: Event) -> None:
        super()._note(event)
        if isinstance(event, Staged):
            self._unstaged.discard(event.number)
            self.pending_bytes -= self._early.pop(event.number, 0)
        elif isinstance(event, Flushed) and self._commit is not None:
            self._commit.are_children_flushed = True
        elif isinstance(event, Failed | Refused) and self.failure is None:
            self.failure = event.error

    def _may_enter(self, state: State) -> bool:
        if state is State.STAGING:
            return self.is_waiting
        commit = self._commit
        if state is not State.APPENDING or commit is None:
            return True
        return commit.are_children_flushed and self._unstaged.isdisjoint(payload.number for payload in commit.payloads)

    # ── actions ──

    def _actions_of(self, state: State) -> list[Action]:
        actions = self._ENTERED.get(state)
        return actions(self) if actions is not None else super()._actions_of(state)

    def _stage(self) -> list[Action]:
        self._commit = commit = _Commit(self._taken(), self.checkpoint.redo)
        if not commit.items:
            return [FlushChildren()]
        stage = Stage(self._new_number(), commit.items)
        commit.payloads.append(stage.payload)
        self._unstaged.add(stage.number)
        return [FlushChildren(), stage]

    def _append(self) -> list[Action]:
        """Put the commit into the checkpoint, at one go: another task may write it at any time."""
        commit, checkpoint = self._under_way, self.checkpoint
        touched: dict[OpenBatch, None] = {}
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
            chunks.append(Chunk(number, self._next, size))
            self._next += size
        checkpoint.redo = Redo(self._job, self._owner, chunks, done)
        return [Append(checkpoint)]

    def _end(self) -> list[Action]:
        commit = self._under_way
        self._commit = None
        self.committed += len(commit.lots)
        self.pending_bytes -= sum(map(len, commit.items))
        if commit.before is not None and commit.before.owner == self._owner:
            self._garbage += [chunk.number for chunk in commit.before.chunks]
        actions: list[Action] = [Report(commit.lots, commit.batches)]
        # A payload that is on its way would arrive after it was removed.
        if len(gone := [number for number in self._garbage if number not in self._unstaged]) >= _GARBAGE:
            self._garbage = [number for number in self._garbage if number in self._unstaged]
            actions.append(Forget(gone))
        return actions + self.receive(Due())

    def _stop(self) -> list[Action]:
        assert self.failure is not None  # noqa: S101 - its event came before
        return [Stop(self.failure)]

    _ENTERED: ClassVar[Mapping[State, Callable[[Commits], list[Action]]]] = {
        State.STAGING: _stage,
        State.APPENDING: _append,
        State.IDLE: _end,
        State.STOPPED: _stop,
    }

    @property
    def _under_way(self) -> _Commit:
        assert self._commit is not None  # noqa: S101 - staging made it
        return self._commit

    def _taken(self) -> list[Lot]:
        taken: list[Lot] = []
        items = size = 0
        while self._lots and len(taken) < 10 * _REQUESTS and items < _ITEMS and size < _BYTES:
            lot = self._lots.popleft()
            taken.append(lot)
            items += len(lot.items)
            size += sum(map(len, lot.items))
        self._items -= items
        return taken

    def _new_number(self) -> int:
        self._number += 1
        return self._number
