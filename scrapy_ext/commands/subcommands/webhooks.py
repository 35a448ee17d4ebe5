"""``scrapy platform webhooks``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.commands.options import argument, paging_options, view_options
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, with_platform
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

#: Seconds to wait for the outcome of a test, and between two polls.
_TEST_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2
#: Maximum deliveries of one answer.
_ALL: Final = 1000


def _state(webhook: Mapping[str, Any]) -> str:
    if webhook["disabled"]:
        return "disabled"
    since = webhook["failing_since"]
    return "enabled" if since is None else f"failing since {clock(since)[:16]} UTC"


_WEBHOOKS: Final = (
    Column.field("id", right=True),
    Column.field("url", "URL"),
    Column("events", lambda webhook: ", ".join(webhook["events"])),
    Column("state", _state),
)
_DELIVERIES: Final = (
    Column("created (UTC)", lambda delivery: clock(delivery["created"])),
    Column.field("id"),
    Column.field("event"),
    Column.field("state"),
    Column.field("attempts", right=True),
    Column.field("outcome"),
)


async def _show(view: View) -> None:
    try:
        await _ACTIONS[view.options.action](view)
    except NotFound:
        raise CommandError(
            "no webhook of the platform has this number; `scrapy platform webhooks` lists the webhooks"
        ) from None


async def _list(view: View) -> None:
    if view.options.arguments:
        raise CommandError("list has no arguments")
    found = await view.client.webhooks.list(view.project)
    await view.output.records(each_of(found), _WEBHOOKS)
    await view.output.note(f"webhooks: {len(found)}")


async def _add(view: View) -> None:
    url, *events = view.options.arguments or [""]
    if not url or not events:
        raise CommandError("add needs a URL and events, as in `add https://hooks.example.com/jobs job:completed`")
    added = await view.client.webhooks.create(view.project, url, events)
    print(added.secret)  # noqa: T201 - the output of the command, alone for programs
    use = f"This is the secret of webhook {added.id}, which verifies the signature of a delivery"
    print(f"{use}. It is not shown again.", file=sys.stderr)  # noqa: T201


async def _remove(view: View) -> None:
    await view.client.webhooks.delete(view.project, _number(view))


async def _disable(view: View) -> None:
    await view.client.webhooks.disable(view.project, _number(view), view.options.action == "disable")


async def _test(view: View) -> None:
    number = _number(view)
    sent = await view.client.webhooks.test(view.project, number)
    try:
        async with timeout_after(_TEST_SECONDS):
            while sent.state == "pending":
                await asyncio.sleep(_POLL_SECONDS)
                latest = await view.client.webhooks.deliveries(view.project, number, count=_ALL)
                sent = next((each for each in latest if each.id == sent.id), sent)
    except TIMEOUT_ERRORS:
        raise CommandError(
            f"the test was not sent within {_TEST_SECONDS:g} s; a server without --no-runner sends deliveries"
        ) from None
    if sent.state != "delivered":
        raise CommandError(f"the test was not accepted: {sent.outcome}")
    await view.output.records(each_of([sent]), _DELIVERIES)


async def _deliveries(view: View) -> None:
    count = view.output.count(view.options) or _ALL
    found = await view.client.webhooks.deliveries(view.project, _number(view), count=min(count, _ALL))
    number = await view.output.records(each_of(found), _DELIVERIES)
    await view.output.note(f"the newest {number} deliveries")


def _number(view: View) -> int:
    if len(view.options.arguments) != 1:
        raise CommandError(
            f"{view.options.action} needs the number of a webhook; `scrapy platform webhooks` lists them"
        )
    return number_of(view.options.arguments[0], "webhook")


_ACTIONS: Final = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "disable": _disable,
    "enable": _disable,
    "test": _test,
    "deliveries": _deliveries,
}

SUBCOMMANDS: Final = (
    Subcommand(
        name="webhooks",
        examples=(
            ("scrapy platform webhooks", "the webhooks of the project"),
            ("scrapy platform webhooks add https://hooks.example.com/jobs job:completed", "its secret is shown once"),
            ("scrapy platform webhooks test 1", "send a test delivery, and show its outcome"),
            ("scrapy platform webhooks deliveries 1", "deliveries with their state and outcome"),
            ("scrapy platform webhooks remove 1", "delete the webhook"),
        ),
        arguments=(
            argument(
                "action", nargs="?", choices=tuple(_ACTIONS), default="list", help="action (default: %(default)s)"
            ),
            argument(
                "arguments",
                nargs="*",
                metavar="ARGUMENT",
                help="for add: URL and EVENT …; for the others, except list: number of the webhook",
            ),
            paging_options("deliveries", start=False),
            view_options(),
        ),
        run=with_platform(_show),
    ),
)
