"""``scrapy platform activity``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Final

from scrapy_ext.commands.follow import Rows, Watch
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, add_paging_options, add_view_options, look
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import TIME_WIDTH, clock, counted, shown

_KNOWN: Final = ("_ts", "event", "job", "user")
_COLUMNS: Final = (
    Column("time (UTC)", lambda message: clock(message.get("_ts")), least=TIME_WIDTH),
    Column.field("event"),
    Column.field("job"),
    Column.field("user"),
    Column("more", lambda message: shown({n: v for n, v in message.items() if n not in _KNOWN} or None)),
)
#: Messages shown when no count is given, and asked for at once when following.
_COUNT: Final = 100
#: Messages that are asked for at most, to find those that were shown among them.
_MOST: Final = 10_000


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="go on showing messages as they come, until Ctrl-C")
    add_paging_options(parser, "messages", start=False)
    add_view_options(parser)


async def _show(view: View) -> None:
    if view.options.follow:
        await view.output.live(_followed(view), _COLUMNS)
        return
    messages = await _newest(view, view.options.count or view.output.count(view.options) or _COUNT)
    await view.output.records(each_of(messages), _COLUMNS)
    await view.output.note(f"{counted(len(messages), 'message')} of project {view.project}, the newest first")


async def _newest(view: View, count: int) -> Rows:
    return await view.client.activity.list(view.project, count=count, meta=("_ts",))


async def _followed(view: View) -> AsyncIterator[Rows]:
    """Messages in the order in which they came: those that are there, then those that come, up to ``--count``."""
    watch, left = Watch(view.say), view.options.count
    newest = known = await watch.ask(lambda: _newest(view, _COUNT))
    whole = len(known) < _COUNT
    while True:
        if newest:
            shown_now = newest[::-1][:left]
            yield shown_now
            left = None if left is None else left - len(shown_now)
        if left == 0:
            return
        await watch.pause(something_came=bool(newest))
        newest, known, whole = await _since(view, watch, known, whole)


async def _since(view: View, watch: Watch, known: Rows, whole: bool) -> tuple[Rows, Rows, bool]:
    """What came since ``known`` was read, newest first, and what is known now.

    Messages have no numbers: those that are known are found by their order. ``whole``: they were all there are.
    """
    count = _COUNT
    while True:
        messages = await watch.ask(lambda count=count: _newest(view, count))  # type: ignore[misc]
        place = _place(messages, count, known, whole=whole)
        if place is not None:
            return messages[:place], messages[:_COUNT], len(messages) < _COUNT
        if count == _MOST or len(messages) < count:
            raise CommandError(f"more than {_MOST} messages came at once, or old ones went: begin again")
        count = min(count * 10, _MOST)


def _place(messages: Rows, count: int, known: Rows, *, whole: bool) -> int | None:
    """How many of the messages, ``count`` at most, stand before the known ones; None when that is not to be told."""
    full = len(messages) >= count
    if whole and not full and messages[len(messages) - len(known) :] == known:
        return len(messages) - len(known)
    for place in range(len(messages) if known else 0):
        rest = messages[place : place + len(known)]
        if rest == known[: len(rest)] and (full or len(rest) == len(known)):
            return place
    return None


SUBCOMMAND: Final = Subcommand(
    name="activity",
    examples=(
        ("scrapy platform activity", "what happened last in the project"),
        ("scrapy platform activity --follow", "and what happens from now on, the newest last"),
    ),
    add_options=_add_options,
    run=look(_show),
)
