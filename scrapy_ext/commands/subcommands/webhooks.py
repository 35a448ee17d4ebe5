"""``scrapy platform webhooks``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, add_paging_options, add_view_options, look
from scrapy_ext.commands.terminal.output import Column
from scrapy_ext.commands.terminal.text import clock

#: Seconds to wait for what comes of a test.
_PATIENCE: Final = 30.0
_LOOK: Final = 0.2
#: Deliveries of one answer.
_ALL: Final = 1000


def _state(webhook: Mapping[str, Any]) -> str:
    if webhook["disabled"]:
        return "disabled"
    since = webhook["failing_since"]
    return "takes deliveries" if since is None else f"failing since {clock(since)[:16]} UTC"


_WEBHOOKS: Final = (
    Column.field("id", right=True),
    Column.field("url", "address"),
    Column("events", lambda webhook: ", ".join(webhook["events"])),
    Column("state", _state),
)
_DELIVERIES: Final = (
    Column("made (UTC)", lambda delivery: clock(delivery["created"])),
    Column.field("id"),
    Column.field("event"),
    Column.field("state"),
    Column.field("attempts", right=True),
    Column.field("outcome"),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=tuple(_ACTIONS), default="list", help="what to do (default: list)")
    parser.add_argument(
        "arguments", nargs="*", metavar="ARGUMENT", help="add: URL and EVENT …; else: number of a webhook"
    )
    add_paging_options(parser, "deliveries", start=False)
    add_view_options(parser)


async def _show(view: View) -> None:
    try:
        await _ACTIONS[view.options.action](view)
    except NotFound:
        raise CommandError(
            "there is no such webhook, or the platform has none; `scrapy platform webhooks` lists them"
        ) from None


async def _list(view: View) -> None:
    if view.options.arguments:
        raise CommandError("list takes no arguments")
    found = await view.client.webhooks.list(view.project)
    await view.output.records(_records(found), _WEBHOOKS)
    await view.output.note(f"webhooks: {len(found)}")


async def _add(view: View) -> None:
    url, *events = view.options.arguments or [""]
    if not url or not events:
        raise CommandError("add needs an address and events, as in `add https://hooks.example.com/jobs job:completed`")
    added = await view.client.webhooks.create(view.project, url, events)
    print(added.secret)  # noqa: T201  # the command's output, alone, so that a program can take it
    told = f"This is the secret of webhook {added.id}, with which it knows that it is told by this platform. "
    print(f"{told}It is shown once.", file=sys.stderr)  # noqa: T201


async def _remove(view: View) -> None:
    await view.client.webhooks.delete(view.project, _number(view))


async def _disable(view: View) -> None:
    await view.client.webhooks.disable(view.project, _number(view), view.options.action == "disable")


async def _test(view: View) -> None:
    number = _number(view)
    sent = await view.client.webhooks.test(view.project, number)
    try:
        async with asyncio.timeout(_PATIENCE):
            while sent.state == "pending":
                await asyncio.sleep(_LOOK)
                latest = await view.client.webhooks.deliveries(view.project, number, count=_ALL)
                sent = next((each for each in latest if each.id == sent.id), sent)
    except TimeoutError:
        raise CommandError("nothing came of it yet; does a server run that may run jobs?") from None
    if sent.state != "delivered":
        raise CommandError(f"the test was not taken: {sent.outcome}")
    await view.output.records(_records([sent]), _DELIVERIES)


async def _deliveries(view: View) -> None:
    count = view.output.count(view.options) or _ALL
    found = await view.client.webhooks.deliveries(view.project, _number(view), count=min(count, _ALL))
    number = await view.output.records(_records(found), _DELIVERIES)
    await view.output.note(f"the newest {number} deliveries")


def _number(view: View) -> int:
    if len(view.options.arguments) != 1:
        raise CommandError(
            f"{view.options.action} needs the number of a webhook; `scrapy platform webhooks` lists them"
        )
    return number_of(view.options.arguments[0], "webhook")


async def _records(found: list[Any]) -> AsyncIterator[dict[str, Any]]:
    for each in found:
        yield msgspec.to_builtins(each)


_ACTIONS: Final = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "disable": _disable,
    "enable": _disable,
    "test": _test,
    "deliveries": _deliveries,
}

SUBCOMMAND: Final = Subcommand(
    name="webhooks",
    examples=(
        ("scrapy platform webhooks", "who is told of the project's activity"),
        ("scrapy platform webhooks add https://hooks.example.com/jobs job:completed", "its secret is shown once"),
        ("scrapy platform webhooks test 1", "send something, and see what comes of it"),
        ("scrapy platform webhooks deliveries 1", "what was sent, and what is to be sent"),
        ("scrapy platform webhooks remove 1", "it is told nothing more"),
    ),
    add_options=_add_options,
    run=look(_show),
)
