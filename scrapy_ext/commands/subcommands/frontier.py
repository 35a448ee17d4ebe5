"""``scrapy platform frontier``.

A move enqueues a batch at its new place, and only then deletes it at the old one. Whatever interrupts it, each
request is at one of the places, or at both; the same move again goes on, for a slot queues no fingerprint twice.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.dead_letters import DEAD_LETTERS
from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES, NAME_PATTERN, FrontierRequest
from scrapy_ext.client.platform.frontier import QueuedBatch, put_back
from scrapy_ext.commands.selection import add_yes_option, confirm
from scrapy_ext.commands.subcommand import (
    Action,
    CommandError,
    View,
    add_paging_options,
    add_view_options,
    with_actions,
)
from scrapy_ext.commands.terminal.output import Column, reading
from scrapy_ext.commands.terminal.progress import bar
from scrapy_ext.commands.terminal.text import counted, shown

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


_REQUEST_COLUMNS: Final = (
    Column.field("batch"),
    Column.field("fp"),
    Column("request", lambda record: shown(record.get("qdata"))),
)
#: Requests shown of a slot when no count is given, also in a pipe; `dump` gives all.
_HEAD: Final = 100


def _frontier(parser: argparse.ArgumentParser, count: str | None = None) -> None:
    parser.add_argument("frontier", nargs=count, metavar="FRONTIER", help="its name")


def _slot(parser: argparse.ArgumentParser, told: str, count: str | None = None) -> None:
    parser.add_argument("slot", nargs=count, metavar="SLOT", help=told)


def _list_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser, "?")
    add_paging_options(parser, "records", start=False)
    add_view_options(parser)


def _show_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser)
    _slot(parser, "a slot of it")
    parser.add_argument("--fingerprints", action="store_true", help="show the fingerprints that the slot knows instead")
    add_paging_options(parser, "records", start=False)
    add_view_options(parser)


def _count_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser)
    _slot(parser, "this slot alone", "?")
    parser.add_argument("--fingerprints", action="store_true", help="count fingerprints too: all of them are read")
    add_view_options(parser)


def _dump_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser)
    _slot(parser, "this slot alone", "?")
    add_view_options(parser)


def _move_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser)
    _slot(parser, "this slot alone", "?")
    add_to_options(parser)
    add_yes_option(parser)
    add_view_options(parser)


def _requeue_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser)
    add_view_options(parser)


def _delete_options(parser: argparse.ArgumentParser) -> None:
    _frontier(parser)
    _slot(parser, "this slot alone", "?")
    add_yes_option(parser)
    add_view_options(parser)


async def _list(view: View) -> None:
    if view.options.frontier is None:
        await _frontiers(view)
    else:
        await _slots(view)


async def _frontiers(view: View) -> None:
    names = await view.client.frontier.frontiers(view.project)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for name in islice(names, view.output.count(view.options)):
            slots = await view.client.frontier.slots(view.project, name)
            yield {"frontier": name, "slots": len(slots)}

    number = await view.output.records(rows())
    await view.output.note(
        f"{number} of {counted(len(names), 'frontier')}; a crawl removes its own when it has finished"
    )


async def _slots(view: View) -> None:
    name, slots = view.options.frontier, await slots_of(view)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for slot in islice(slots, view.output.count(view.options)):
            head = await view.client.frontier.read(view.project, name, slot, 1)
            yield {
                "frontier": name,
                "slot": slot,
                "queued": await view.client.frontier.count(view.project, name, slot),
                "next": next((fp for batch in head for fp, _ in batch.requests), None),
            }

    number = await view.output.records(rows())
    await view.output.note(f"{number} of {counted(len(slots), 'slot')}")


async def slots_of(view: View) -> list[str]:
    """The slots that the arguments name; raises :class:`CommandError` when there are none."""
    name, wanted = view.options.frontier, getattr(view.options, "slot", None)
    slots = await view.client.frontier.slots(view.project, name)
    if not slots:
        raise CommandError(f"there is no frontier {name!r}; `scrapy platform frontier` lists them")
    if wanted is not None and wanted not in slots:
        raise CommandError(f"frontier {name} has no slot {wanted!r}; `scrapy platform frontier list {name}` lists them")
    return slots if wanted is None else [wanted]


async def _show(view: View) -> None:
    await slots_of(view)
    await (_fingerprints(view) if view.options.fingerprints else _requests(view))


async def _requests(view: View) -> None:
    options, output = view.options, view.output
    count = options.count or (output.count(options) or _HEAD)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        left = count
        queue = view.client.frontier.queue(view.project, options.frontier, options.slot, count=min(count, 2000))
        async with reading(queue) as batches:
            async for batch in batches:
                for fp, qdata in batch.requests[:left]:
                    yield {"batch": batch.id, "fp": fp, "qdata": qdata}
                left -= len(batch.requests)
                if left <= 0:
                    return

    number = await output.records(rows(), _REQUEST_COLUMNS)
    await output.note(
        f"{counted(number, 'request')} at the head of {options.frontier}/{options.slot}; reading them changes nothing"
    )


async def _fingerprints(view: View) -> None:
    options = view.options

    async def rows() -> AsyncIterator[dict[str, Any]]:
        left = view.output.count(options)
        known = view.client.frontier.fingerprints(view.project, options.frontier, options.slot)
        async with reading(known) as fingerprints:
            async for fp in fingerprints:
                if left == 0:
                    return
                left = None if left is None else left - 1
                yield {"fp": fp}

    number = await view.output.records(rows())
    await view.output.note(f"{counted(number, 'fingerprint')} of {options.frontier}/{options.slot}")


async def _count(view: View) -> None:
    name, slots = view.options.frontier, await slots_of(view)
    total = 0

    async def rows() -> AsyncIterator[dict[str, Any]]:
        nonlocal total
        for slot in slots:
            queued = await view.client.frontier.count(view.project, name, slot)
            total += queued
            row: dict[str, Any] = {"frontier": name, "slot": slot, "queued": queued}
            if view.options.fingerprints:
                known = 0
                async with reading(view.client.frontier.fingerprints(view.project, name, slot)) as fingerprints:
                    async for _ in fingerprints:
                        known += 1
                row["fingerprints"] = known
            yield row

    await view.output.records(rows())
    await view.output.note(f"{counted(total, 'request')} queued in {name}")


async def _dump(view: View) -> None:
    await dump(view, await slots_of(view))


async def _move(view: View) -> None:
    await move(view, await slots_of(view))


async def _requeue(view: View) -> None:
    await slots_of(view)
    await requeue(view)


async def _delete(view: View) -> None:
    name, slots = view.options.frontier, await slots_of(view)
    queued = sum([await view.client.frontier.count(view.project, name, slot) for slot in slots])
    what = f"slot {slots[0]} of frontier {name}" if view.options.slot else f"frontier {name}"
    await confirm(view, f"Delete {what} with {counted(queued, 'queued request')}? No crawl may be using it.")
    for slot in slots:
        await view.client.frontier.delete_slot(view.project, name, slot)
    await view.output.note(f"{what} is deleted")


def _in_full(words: list[str]) -> list[str]:
    """What a frontier and a slot alone mean, or with an option that has become an action."""
    for option, action, further in (("--put-back", "requeue", ()), ("--delete", "delete", ("--yes",))):
        if option in words:
            return [action, *(word for word in words if word != option), *further]
    slot_is_named = len(words) > 1 and not words[1].startswith("-")
    return ["show" if slot_is_named else "list", *words]


SUBCOMMAND: Final = with_actions(
    "frontier",
    (
        Action("list", "list frontiers, or the slots of one", _list_options, _list),
        Action("show", "show the next requests of a slot; they stay in it", _show_options, _show),
        Action("count", "count the requests in the queues of a frontier", _count_options, _count),
        Action("dump", "write all queued requests as JSON lines; they stay queued", _dump_options, _dump),
        Action("move", "move queued requests to another frontier or slot", _move_options, _move),
        Action("requeue", "enqueue the requests again that were set aside", _requeue_options, _requeue),
        Action("delete", "delete a frontier or a slot, with its fingerprints", _delete_options, _delete),
    ),
    (
        ("scrapy platform frontier", "the project's frontiers"),
        ("scrapy platform frontier list books", "the slots of a frontier, and how many requests each holds"),
        ("scrapy platform frontier show books 3 --count 10", "the next ten requests of a slot"),
        ("scrapy platform frontier show books 3 --fingerprints", "what the slot has seen"),
        ("scrapy platform frontier show books dead-letters", "requests that were set aside, with their error"),
        ("scrapy platform frontier requeue books", "have them run again"),
        ("scrapy platform frontier dump books > books.jsonl", "all that is queued, to a file"),
        ("scrapy platform frontier move books --to shelves", "to another frontier, each to the slot of its name"),
    ),
    in_full=_in_full,
)
