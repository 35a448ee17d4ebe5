"""``scrapy platform frontier``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Any, Final

from scrapy_ext.api.platform.frontier import Batch
from scrapy_ext.commands.output import Column, reading
from scrapy_ext.commands.subcommand import (
    CommandError,
    Subcommand,
    View,
    add_output_options,
    add_paging_options,
    look,
)
from scrapy_ext.commands.text import shown
from scrapy_ext.crawl.deadletters import put_back

_REQUEST_COLUMNS: Final = (
    Column.field("batch"),
    Column.field("fp"),
    Column("request", lambda record: shown(record.get("qdata"))),
)
#: Requests shown of a slot when no count is given, also in a pipe: a queue is read from its head in one answer.
_HEAD: Final = 100


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("frontier", nargs="?", metavar="FRONTIER", help="show the slots of this frontier")
    parser.add_argument("slot", nargs="?", metavar="SLOT", help="show the requests that this slot would give out next")
    parser.add_argument("--fingerprints", action="store_true", help="show a slot's fingerprints instead")
    parser.add_argument("--put-back", action="store_true", help="enqueue the requests again that were set aside")
    parser.add_argument("--delete", action="store_true", help="delete the frontier: no crawl may be using it")
    add_paging_options(parser, "records", start=False)
    add_output_options(parser)


async def _show(view: View) -> None:
    options = view.options
    if options.fingerprints and options.slot is None:
        raise CommandError("--fingerprints needs a frontier and a slot")
    if options.put_back or options.delete:
        await _change(view)
        return
    if options.frontier is None:
        await _frontiers(view)
    elif options.slot is None:
        await _slots(view)
    elif options.fingerprints:
        await _fingerprints(view)
    else:
        await _requests(view)


async def _change(view: View) -> None:
    name, client = view.options.frontier, view.client.frontier
    if name is None or view.options.slot is not None:
        raise CommandError("--put-back and --delete need a frontier, and no slot")
    slots = await client.slots(view.project, name)
    if not slots:
        raise CommandError(f"there is no frontier {name!r}; `scrapy platform frontier` lists them")
    if view.options.put_back:
        try:
            count = await put_back(client, view.project, name)
        except ValueError as error:
            raise CommandError(str(error)) from None
        await view.output.note(
            f"{count} requests are back in frontier {name}; a crawl with FRONTIER_NAME={name} runs them"
        )
        return
    for slot in slots:
        await client.delete_slot(view.project, name, slot)
    await view.output.note(f"frontier {name} is deleted")


async def _frontiers(view: View) -> None:
    names = await view.client.frontier.frontiers(view.project)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for name in islice(names, view.output.count(view.options)):
            slots = await view.client.frontier.slots(view.project, name)
            yield {"frontier": name, "slots": len(slots)}

    number = await view.output.records(rows())
    await view.output.note(f"{number} of {len(names)} frontiers; a crawl removes its own when it has finished")


async def _slots(view: View) -> None:
    name = view.options.frontier
    slots = await view.client.frontier.slots(view.project, name)
    if not slots:
        raise CommandError(f"there is no frontier {name!r}; `scrapy platform frontier` lists them")

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for slot in islice(slots, view.output.count(view.options)):
            head = await view.client.frontier.read(view.project, name, slot, 1)
            yield {
                "frontier": name,
                "slot": slot,
                "waiting": bool(head),
                "next": next((fp for batch in head for fp, _ in batch.requests), None),
            }

    number = await view.output.records(rows())
    await view.output.note(f"{number} of {len(slots)} slots")


async def _requests(view: View) -> None:
    options, output = view.options, view.output
    count = options.count or (output.count(options) or _HEAD)
    batches = await view.client.frontier.read(view.project, options.frontier, options.slot, count)
    number = await output.records(_each(islice(_rows(batches), count)), _REQUEST_COLUMNS)
    await output.note(
        f"{number} requests at the head of {options.frontier}/{options.slot}; reading them changes nothing"
    )


def _rows(batches: Iterable[Batch]) -> Iterable[dict[str, Any]]:
    return ({"batch": batch.id, "fp": fp, "qdata": qdata} for batch in batches for fp, qdata in batch.requests)


async def _each(rows: Iterable[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for row in rows:
        yield row


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
    await view.output.note(f"{number} fingerprints of {options.frontier}/{options.slot}")


SUBCOMMAND: Final = Subcommand(
    name="frontier",
    examples=(
        ("scrapy platform frontier", "the project's frontiers"),
        ("scrapy platform frontier books", "the slots of a frontier"),
        ("scrapy platform frontier books 3 --count 10", "the next ten requests of a slot"),
        ("scrapy platform frontier books 3 --fingerprints", "what the slot has seen"),
        ("scrapy platform frontier books dead-letters", "requests that were set aside, with their error"),
        ("scrapy platform frontier books --put-back", "have them run again"),
    ),
    add_options=_add_options,
    run=look(_show),
)
