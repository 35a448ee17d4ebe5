"""Data of the commit protocol (:mod:`~scrapy_ext.crawl.commit.protocol`): the records of a journal, the lots that are
committed, the events that the protocol receives and the actions that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

# ── records of a journal ──

#: Batch ID to finished positions, as a bit mask in hexadecimal digits.
Done: TypeAlias = dict[str, str]


class Chunk(msgspec.Struct, array_like=True):
    """Staged items: number of their payload, index of the first of them in the job or its writer's stream, number of
    items."""

    number: int
    start: int
    count: int


class Redo(msgspec.Struct, omit_defaults=True):
    """End of a commit, which changes nothing when it is repeated.

    ``job``, ``chunks``: items to store in a job. ``owner``: process that staged them.
    ``acknowledge``: batches to acknowledge, by slot.
    ``writer``: attempt of the worker of a group in whose stream the chunks are; None: their indexes are those of the
    job.
    """

    job: str
    owner: str
    chunks: list[Chunk] = []
    acknowledge: dict[int, list[str]] = {}
    writer: int | None = None


class Progress(msgspec.Struct, omit_defaults=True):
    """Finished positions of partly finished batches, by slot."""

    done: dict[int, Done] = {}

    def of(self, slots: set[int]) -> Progress:
        return Progress({slot: done for slot, done in self.done.items() if slot in slots})

    def finished(self, slot: int, batch: str) -> int:
        """Return the finished positions of a batch, as a bit mask."""
        return int(self.done.get(slot, {}).get(batch, "0"), 16)

    def add(self, other: Progress) -> None:
        """Add other progress, whichever is newer: a finished position stays finished."""
        for slot, batches in other.done.items():
            mine = self.done.setdefault(slot, {})
            for batch, mask in batches.items():
                mine[batch] = f"{int(mine.get(batch, '0'), 16) | int(mask, 16):x}"

    def drop(self, slots: set[int]) -> None:
        for slot in slots:
            self.done.pop(slot, None)

    def forget(self, slot: int, batch: str) -> None:
        """Remove a batch, which is finished."""
        batches = self.done.get(slot)
        if batches is not None and batches.pop(batch, None) is not None and not batches:
            del self.done[slot]


class Checkpoint(msgspec.Struct, omit_defaults=True):
    """Record of a commit journal. The newest one has everything that a successor needs.

    ``worker``: name of its writer in logs; empty if the slots were taken over for another job.
    ``slots``: slots that the writer owns.
    ``idle``: whether the writer has no work. ``turns``: number of changes of ``idle``.
    ``closed``: whether the writer has ended.
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


# ── lots ──


class OpenBatch(msgspec.Struct, eq=False):
    """Batch that was read and not acknowledged. ``done``: committed positions, as a bit mask."""

    slot: int
    id: str
    size: int
    done: int = 0

    @property
    def is_done(self) -> bool:
        return self.done == (1 << self.size) - 1


class Stored(NamedTuple):
    """Request as the frontier has it: fingerprint in the slot, JSON form, batch, position in the batch."""

    fp: str
    form: dict[str, Any]
    batch: OpenBatch
    position: int


class Payload(NamedTuple):
    """Staged items, no longer in memory: number of the payload, number of items."""

    number: int
    size: int


class Lot(NamedTuple):
    """Unit of a commit: a complete request with its items, or items without a request.

    ``stored``: the request in its batch; None without a request, and for one that is in no batch.
    ``payloads``: items that were staged before the others.
    ``is_start``: whether the items are of ``start()``.
    ``origin``: object to recognise the lot by in the report.
    """

    items: list[bytes]
    stored: Stored | None = None
    payloads: Sequence[Payload] = ()
    is_start: bool = False
    origin: object = None


# ── events ──


class Due(NamedTuple):
    """The waiting lots should be committed."""


class Flushed(NamedTuple):
    """The children of all requests are in the frontier."""


class Staged(NamedTuple):
    """A payload is durable."""

    number: int


class Read(NamedTuple):
    """The newest record of a journal was read; number 0 and an empty checkpoint if there is none."""

    number: int
    checkpoint: Checkpoint


class Appended(NamedTuple):
    """The record is in the journal."""


class Refused(NamedTuple):
    """The number of the record is taken: another process writes the journal."""

    error: Exception


class ChunkStored(NamedTuple):
    """The items of a chunk are stored."""


class Acknowledged(NamedTuple):
    """The batches are deleted."""


class Failed(NamedTuple):
    """An action failed, after every useful retry."""

    error: Exception


Event: TypeAlias = Due | Flushed | Staged | Read | Appended | Refused | ChunkStored | Acknowledged | Failed

# ── actions ──


class FlushChildren(NamedTuple):
    """Make the requests that were sent to the frontier durable; then :class:`Flushed`."""


class Stage(NamedTuple):
    """Make items durable as a payload; then :class:`Staged`. ``is_early``: their request is not finished."""

    number: int
    items: list[bytes]
    is_early: bool = False

    @property
    def payload(self) -> Payload:
        return Payload(self.number, len(self.items))


class ReadHead(NamedTuple):
    """Read the newest record of the journal; then :class:`Read`."""


class Append(NamedTuple):
    """Append the checkpoint as the record ``number``, by default the next; then :class:`Appended` or
    :class:`Refused`."""

    checkpoint: Checkpoint
    number: int | None = None


class StoreChunk(NamedTuple):
    """Store staged items at their indexes; then :class:`ChunkStored`."""

    redo: Redo
    chunk: Chunk


class Acknowledge(NamedTuple):
    """Delete batches, by slot; then :class:`Acknowledged`."""

    batches: Mapping[int, list[str]]


class Report(NamedTuple):
    """Report committed lots and acknowledged batches."""

    lots: Sequence[Lot]
    batches: Sequence[OpenBatch]


class Forget(NamedTuple):
    """Delete payloads that no record names. A failure only wastes space."""

    numbers: Sequence[int]


class Stop(NamedTuple):
    """Commit nothing more."""

    error: Exception


Action: TypeAlias = (
    FlushChildren | Stage | ReadHead | Append | StoreChunk | Acknowledge | Report | Forget | Stop
)  # fmt: skip
