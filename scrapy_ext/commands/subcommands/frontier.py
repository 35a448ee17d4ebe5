"""``scrapy platform frontier``.

A move enqueues a batch in the target, and only then deletes it from the source. After an interruption, each request is
in one of them or in both. The same move continues it, because a slot queues no fingerprint twice.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.feeding import PUSH_PATTERN
from scrapy_ext.api.platform.frontier import DEAD_LETTERS, MAX_REQUEST_BYTES, NAME_PATTERN, FrontierRequest
from scrapy_ext.api.platform.job_data import is_journal
from scrapy_ext.client.platform.frontier import QueuedBatch, put_back
from scrapy_ext.commands.options import YES, argument, paging_options, positive_number
from scrapy_ext.commands.output import Column, bar, reading
from scrapy_ext.commands.selection import confirm
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View, with_actions
from scrapy_ext.commands.text import counted, shown

#: Maximum batches moved in one request, and their bytes.
_AT_ONCE: Final = 20
_BYTES: Final = 8 * MAX_REQUEST_BYTES

_encode: Final = msgspec.json.Encoder().encode


def _name(text: str) -> str:
    if not re.fullmatch(NAME_PATTERN, text):
        raise argparse.ArgumentTypeError(f"must be letters, digits, '_', '-' or '.', got {text[:60]!r}")
    return text


def _push_id(text: str) -> str:
    if not re.fullmatch(PUSH_PATTERN, text):
        raise argparse.ArgumentTypeError(f"must be 1 to 64 letters, digits, '_', '-' or '.', got {text[:60]!r}")
    return text


async def _dump(view: View) -> None:
    """Write every queued request as ``{slot, fp, qdata, p}``."""
    slots = await _slots_of(view)
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


async def _move(view: View) -> None:
    slots = await _slots_of(view)
    options, client = view.options, view.client.frontier
    name, target = options.frontier, options.to or options.frontier
    if options.to is None and options.to_slot is None:
        raise CommandError("name the target: --to FRONTIER, --to-slot SLOT, or both")
    pairs = [(slot, options.to_slot or slot) for slot in slots]
    if target == name:
        pairs = [(slot, new) for slot, new in pairs if slot != new]
    if not pairs:
        raise CommandError("source and target are the same slot; name another --to or --to-slot")
    total = sum([await client.count(view.project, name, slot) for slot, _ in pairs])
    await confirm(view, f"Move {counted(total, 'request')} of {name} to {target}? No crawl may use either frontier.")
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
    skipped = f", {known} of them not queued, as {target} had seen them" if known else ""
    await view.output.note(
        f"{counted(moved, 'request')} of {name} moved to {target}{skipped}; {name} keeps the fingerprints"
    )


async def _groups(queue: AsyncIterator[QueuedBatch]) -> AsyncIterator[list[QueuedBatch]]:
    """Yield groups of batches to move together. Reading continues after the last batch, so others may be deleted."""
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


def _line(batch: QueuedBatch, fp: str, qdata: object) -> bytes:
    return _encode(FrontierRequest(fp, qdata, p=_priority(batch, qdata))) + b"\n"


def _priority(batch: QueuedBatch, qdata: object) -> int:
    """Return the priority of the batch; from a server that omits it, the reverse of the request's own in Scrapy."""
    if batch.priority is not None:
        return batch.priority
    priority = qdata.get("priority") if isinstance(qdata, dict) else None
    return -priority if isinstance(priority, int) else 0


async def _add(view: View) -> int | None:
    from scrapy_ext.commands import pushing  # it imports Scrapy's crawler

    return await pushing.add(view)


async def _requeue(view: View) -> None:
    await _slots_of(view)
    name, client = view.options.frontier, view.client.frontier
    total = await client.count(view.project, name, DEAD_LETTERS)
    with bar("requests", total) as advance:
        try:
            count = await put_back(client, view.project, name, advance)
        except ValueError as error:
            raise CommandError(str(error)) from None
    await view.output.note(
        f"{counted(count, 'request')} queued again in frontier {name}, for a crawl with FRONTIER_NAME={name}"
    )


_REQUEST_COLUMNS: Final = (
    Column.field("batch"),
    Column.field("fp"),
    Column("request", lambda record: shown(record.get("qdata"))),
)
#: Requests of a slot shown without --count in a pipe; `dump` shows all.
_HEAD: Final = 100


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
            yield {"frontier": name, "slots": sum(not is_journal(slot) for slot in slots)}

    number = await view.output.records(rows())
    await view.output.note(
        f"{number} of {counted(len(names), 'frontier')}; a crawl deletes its own frontier when it finishes"
    )


async def _slots(view: View) -> None:
    name, slots = view.options.frontier, await _slots_of(view)

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


async def _slots_of(view: View, *, with_journals: bool = False) -> list[str]:
    """Return the slots that the arguments name; raises :class:`CommandError` when there is none.

    Without a name, those with requests; ``with_journals``: also those in which crawls note their commits.
    """
    name, wanted = view.options.frontier, getattr(view.options, "slot", None)
    slots = await view.client.frontier.slots(view.project, name)
    if not slots:
        raise CommandError(f"there is no frontier {name!r}; `scrapy platform frontier` lists the frontiers")
    if wanted is not None and wanted not in slots:
        raise CommandError(
            f"frontier {name} has no slot {wanted!r}; `scrapy platform frontier list {name}` lists its slots"
        )
    if wanted is not None:
        return [wanted]
    return slots if with_journals else [slot for slot in slots if not is_journal(slot)]


async def _show(view: View) -> None:
    await _slots_of(view)
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
        f"{counted(number, 'request')} at the head of {options.frontier}/{options.slot}; they stay queued"
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
    name, slots = view.options.frontier, await _slots_of(view)
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


async def _delete(view: View) -> None:
    name, slots = view.options.frontier, await _slots_of(view, with_journals=True)
    of_requests = slots if view.options.slot else [slot for slot in slots if not is_journal(slot)]
    queued = sum([await view.client.frontier.count(view.project, name, slot) for slot in of_requests])
    target = f"slot {slots[0]} of frontier {name}" if view.options.slot else f"frontier {name}"
    await confirm(view, f"Delete {target} with {counted(queued, 'queued request')}? No crawl may use it.")
    for slot in slots:
        await view.client.frontier.delete_slot(view.project, name, slot)
    await view.output.note(f"{target} was deleted")


def _in_full(words: list[str]) -> list[str]:
    """Return the arguments with an action, for a frontier and a slot alone, or with an option of earlier versions."""
    for option, action, further in (("--put-back", "requeue", ()), ("--delete", "delete", ("--yes",))):
        if option in words:
            return [action, *(word for word in words if word != option), *further]
    slot_is_named = len(words) > 1 and not words[1].startswith("-")
    return ["show" if slot_is_named else "list", *words]


_FRONTIER: Final = argument("frontier", metavar="FRONTIER", help="name of the frontier")
_OPTIONAL_FRONTIER: Final = argument("frontier", nargs="?", metavar="FRONTIER", help="name of a frontier")
_SLOT: Final = argument("slot", metavar="SLOT", help="name of the slot")
_OPTIONAL_SLOT: Final = argument("slot", nargs="?", metavar="SLOT", help="only this slot (default: all)")
_PAGING: Final = paging_options("records", start=False)

SUBCOMMANDS: Final = (
    with_actions(
        "frontier",
        (
            CommandAction("list", "list frontiers, or the slots of one", _list, (_OPTIONAL_FRONTIER, _PAGING)),
            CommandAction(
                "show",
                "show the next requests of a slot; they stay queued",
                _show,
                (
                    _FRONTIER,
                    _SLOT,
                    argument("--fingerprints", action="store_true", help="show the seen fingerprints instead"),
                    _PAGING,
                ),
            ),
            CommandAction(
                "count",
                "count the queued requests of a frontier",
                _count,
                (
                    _FRONTIER,
                    _OPTIONAL_SLOT,
                    argument("--fingerprints", action="store_true", help="count fingerprints too, by reading all"),
                ),
            ),
            CommandAction(
                "dump", "write all queued requests as JSON lines; they stay queued", _dump, (_FRONTIER, _OPTIONAL_SLOT)
            ),
            CommandAction(
                "move",
                "move queued requests to another frontier or slot",
                _move,
                (
                    _FRONTIER,
                    _OPTIONAL_SLOT,
                    argument("--to", type=_name, metavar="FRONTIER", help="target frontier (default: the same)"),
                    argument("--to-slot", type=_name, metavar="SLOT", help="target slot (default: the same name)"),
                    YES,
                ),
            ),
            CommandAction(
                "add",
                "push requests into the frontier of a crawl that waits, or of the next one",
                _add,
                (
                    argument("target", metavar="TARGET", help="name of a frontier, or key of a job that waits"),
                    argument("url", nargs="*", metavar="URL", help="URL (default: the lines of --file)"),
                    argument(
                        "--file",
                        metavar="FILE",
                        help="lines with URLs, or JSON objects with attributes of requests (default: standard input)",
                    ),
                    argument(
                        "--spider",
                        metavar="NAME",
                        help="check callbacks with this spider of the project, and use its fingerprints",
                    ),
                    argument("--method", metavar="NAME", help="with --spider: the requests of this method, as start"),
                    argument(
                        "--slots",
                        type=positive_number,
                        metavar="NUMBER",
                        help="FRONTIER_SLOTS of the crawl, if none has used the frontier yet (default: 8)",
                    ),
                    argument(
                        "--push-id",
                        type=_push_id,
                        metavar="ID",
                        help="ID of this push: repeated with it, also requests with dont_filter are queued once",
                    ),
                    argument("--skip-bad", action="store_true", help="leave bad lines out, and push as lines come"),
                ),
            ),
            CommandAction("requeue", "queue the dead letters of a frontier again", _requeue, (_FRONTIER,)),
            CommandAction(
                "delete",
                "delete a frontier or a slot, with its fingerprints",
                _delete,
                (_FRONTIER, _OPTIONAL_SLOT, YES),
            ),
        ),
        (
            ("scrapy platform frontier", "the project's frontiers"),
            ("scrapy platform frontier list books", "the slots of a frontier, with the number of their requests"),
            ("scrapy platform frontier show books 3 --count 10", "the next ten requests of a slot"),
            ("scrapy platform frontier show books 3 --fingerprints", "the fingerprints that the slot has seen"),
            ("scrapy platform frontier show books dead-letters", "requests whose last attempt failed, with the error"),
            ("scrapy platform frontier requeue books", "queue them again"),
            ("scrapy platform frontier add books https://books.example/new", "push a URL"),
            ("scrapy platform frontier add 1/2/3 --file requests.jsonl", "push lines into the frontier of a job"),
            ("scrapy platform frontier add books --spider books --method start", "push what a spider starts with"),
            ("scrapy platform frontier dump books > books.jsonl", "all queued requests, to a file"),
            ("scrapy platform frontier move books --to shelves", "to another frontier, into slots of the same names"),
        ),
        in_full=_in_full,
    ),
)
