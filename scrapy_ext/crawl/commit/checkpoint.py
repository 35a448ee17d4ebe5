"""What a crawl's process has done, as its journal has it.

Each process of a crawl writes one journal, the *commit journal* of its job. Its newest record, a
:class:`Checkpoint`, says everything that a successor needs: how far partly finished batches are, and what the last
commit was about to do, so that the successor can do it again.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from scrapy_ext.crawl.commit.journal import UnreadableJournal

T = TypeVar("T")

#: Batch ID to finished positions, as a bit mask in hexadecimal digits.
Done = dict[str, str]


class Chunk(msgspec.Struct, array_like=True):
    """Items that are laid down (:mod:`~scrapy_ext.crawl.commit.payload`): under which number, and where they belong."""

    number: int
    start: int
    count: int


class Redo(msgspec.Struct, omit_defaults=True):
    """The end of a commit: chunks of items to store in a job, batches to acknowledge by slot. Doing it again changes
    nothing. ``owner`` is whose chunks they are."""

    job: str
    owner: str
    chunks: list[Chunk] = []
    acknowledge: dict[int, list[str]] = {}


class Progress(msgspec.Struct, omit_defaults=True):
    """How far partly finished batches are, by slot."""

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
        """A batch is done."""
        batches = self.done.get(slot)
        if batches is not None and batches.pop(batch, None) is not None and not batches:
            del self.done[slot]


class Checkpoint(msgspec.Struct, omit_defaults=True):
    """A record of a commit journal.

    ``worker`` and ``slots`` say who wrote it and what it owns; no worker: the slots were taken over for another job.
    ``idle`` says that it has nothing to do, ``turns`` how often that has changed, ``closed`` that it has ended.
    ``start_items`` counts the stored items of ``start()``.
    """

    worker: str = ""
    slots: list[int] = []
    idle: bool = False
    turns: int = 0
    closed: bool = False
    start_items: int = 0
    progress: Progress = msgspec.field(default_factory=Progress)
    redo: Redo | None = None

    @classmethod
    def read(cls, data: dict[str, Any]) -> Checkpoint:
        """From a journal's record; raises :class:`UnreadableJournal`."""
        return _read(cls, data)

    def write(self) -> dict[str, Any]:
        """For a journal's record."""
        written: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return written


class Assignment(msgspec.Struct, omit_defaults=True):
    """A record of the journal that says which slots belong to whose commit journal.

    ``left`` is the progress of slots that an owner gave up; ``start``, the commit journal of the worker that stores the
    items of ``start()``: the first that owned slots.
    """

    owners: dict[str, list[int]] = {}
    left: Progress = msgspec.field(default_factory=Progress)
    start: str = ""

    @classmethod
    def read(cls, data: dict[str, Any]) -> Assignment:
        """From a journal's record; raises :class:`UnreadableJournal`."""
        return _read(cls, data)

    def write(self) -> dict[str, Any]:
        """For a journal's record."""
        written: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return written


def _read(kind: type[T], data: dict[str, Any]) -> T:
    try:
        return msgspec.convert(data, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise UnreadableJournal(f"a journal has a record that this version cannot read ({error})") from None
