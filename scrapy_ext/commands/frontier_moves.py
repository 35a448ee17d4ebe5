"""Requests of a frontier taken elsewhere: to a file, to another slot or frontier, back from the dead letters.

A move enqueues a batch at its new place, and only then deletes it at the old one. Whatever interrupts it, each request
is at one of the places, or at both; the same move again goes on, for a slot queues no fingerprint twice.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.dead_letters import DEAD_LETTERS
from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES, NAME_PATTERN, FrontierRequest
from scrapy_ext.client.platform.frontier import QueuedBatch, put_back
from scrapy_ext.commands.asking import confirm
from scrapy_ext.commands.subcommand import CommandError, View
from scrapy_ext.commands.terminal.output import reading
from scrapy_ext.commands.terminal.progress import bar
from scrapy_ext.commands.terminal.text import counted

#: Batches that are moved with one call, and their bytes.
_AT_ONCE: Final = 20
_BYTES: Final = 8 * MAX_REQUEST_BYTES

_encode: Final = msgspec.json.Encoder().encode


def add_to_options(parser: argparse.ArgumentParser) -> None:
    """Where requests are moved."""
    parser.add_argument("--to", type=_name, metavar="FRONTIER", help="the frontier to move to (default: the same)")
    parser.add_argument(
        "--to-slot", type=_name, metavar="SLOT", help="the slot to move to (default: that of the same name)"
    )


def _name(text: str) -> str:
    if not re.fullmatch(NAME_PATTERN, text):
        raise argparse.ArgumentTypeError(f"must be letters, digits, '_', '-' or '.', got {text[:60]!r}")
    return text


async def dump(view: View, slots: Sequence[str]) -> None:
    """Write every queued request as ``{slot, fp, qdata, p}``."""
    name, client = view.options.frontier, view.client.frontier
    total = sum([await client.count(view.project, name, slot) for slot in slots])

    with bar("requests", total) as advance:

        async def rows() -> AsyncIterator[dict[str, Any]]:
            for slot in slots:
                async with reading(client.queue(view.project, name, slot)) as batches:
                    async for batch in batches:
                        for fp, qdata in batch.requests:
                            yield {"slot": slot, "fp": fp, "qdata": qdata, "p": _priority(batch, qdata)}
                        advance(len(batch.requests))

        number = await view.output.records(rows())
    await view.output.note(f"{counted(number, 'request')} of {name}, still queued")


async def move(view: View, slots: Sequence[str]) -> None:
    """Move the queues of these slots."""
    options, client = view.options, view.client.frontier
    name, target = options.frontier, options.to or options.frontier
    if options.to is None and options.to_slot is None:
        raise CommandError("name where to: --to FRONTIER, --to-slot SLOT, or both")
    pairs = [(slot, options.to_slot or slot) for slot in slots]
    if target == name:
        pairs = [(slot, new) for slot, new in pairs if slot != new]
    if not pairs:
        raise CommandError("the requests are in that slot already")
    total = sum([await client.count(view.project, name, slot) for slot, _ in pairs])
    await confirm(view, f"Move {counted(total, 'request')} of {name} to {target}? No crawl may be using either.")
    moved = known = 0
    with bar("requests", total) as advance:
        for slot, new in pairs:
            async with reading(_groups(client.queue(view.project, name, slot))) as groups:
                async for group in groups:
                    body = [_line(batch, fp, qdata) for batch in group for fp, qdata in batch.requests]
                    new_count = await client.add(view.project, target, new, b"".join(body))
                    await client.delete_batches(view.project, name, slot, [batch.id for batch in group])
                    moved += len(body)
                    known += len(body) - new_count
                    advance(len(body))
    told = f", {known} of which it knew and did not queue again" if known else ""
    await view.output.note(
        f"{counted(moved, 'request')} of {name} moved to {target}{told}; the fingerprints stay known here"
    )


async def _groups(queue: AsyncIterator[QueuedBatch]) -> AsyncIterator[list[QueuedBatch]]:
    """Batches that go together. A queue is read on behind the last batch, so deleting those before is no matter."""
    group: list[QueuedBatch] = []
    size = 0
    async with reading(queue) as batches:
        async for batch in batches:
            group.append(batch)
            size += len(_encode(batch.requests))
            if len(group) == _AT_ONCE or size >= _BYTES:
                yield group
                group, size = [], 0
    if group:
        yield group


def _line(batch: QueuedBatch, fp: str, qdata: Any) -> bytes:
    return _encode(FrontierRequest(fp, qdata, p=_priority(batch, qdata))) + b"\n"


def _priority(batch: QueuedBatch, qdata: Any) -> int:
    """What the platform tells; else what a crawl's own request does, whose priority is the other way round."""
    if batch.priority is not None:
        return batch.priority
    priority = qdata.get("priority") if isinstance(qdata, dict) else None
    return -priority if isinstance(priority, int) else 0


async def requeue(view: View) -> None:
    """Enqueue what was set aside."""
    name, client = view.options.frontier, view.client.frontier
    total = await client.count(view.project, name, DEAD_LETTERS)
    with bar("requests", total) as advance:
        try:
            count = await put_back(client, view.project, name, advance)
        except ValueError as error:
            raise CommandError(str(error)) from None
    await view.output.note(
        f"{counted(count, 'request')} put back into frontier {name}, for a crawl with FRONTIER_NAME={name}"
    )
