"""``scrapy platform activity``: the messages about a project's jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from scrapy_ext.api.platform.event_sentences import parts_of
from scrapy_ext.commands.follow import Poller, Rows
from scrapy_ext.commands.options import argument, paging_options
from scrapy_ext.commands.output import Column, Record
from scrapy_ext.commands.subcommand import CommandError, View, platform_command
from scrapy_ext.commands.text import TIME_WIDTH, clock, counted

_TIME: Final = "_ts"


def _sentence(message: Record) -> str:
    return "".join(part.text for part in parts_of({name: value for name, value in message.items() if name != _TIME}))


_COLUMNS: Final = (
    Column("time (UTC)", lambda message: clock(message.get(_TIME)), least=TIME_WIDTH),
    Column("event", _sentence, wrap=True),
)
#: Messages shown without ``--count``, and messages of one poll.
_COUNT: Final = 100
#: Maximum messages of one poll, read to find the ones that were already shown.
_MOST: Final = 10_000


async def _show(view: View) -> None:
    if view.options.follow:
        await view.output.live(_followed(view), _COLUMNS)
        return
    messages = await _newest(view, view.options.count or view.output.count(view.options) or _COUNT)
    await view.show(
        messages, _COLUMNS, f"{counted(len(messages), 'message')} of project {view.project}, the newest first"
    )


async def _newest(view: View, count: int) -> Rows:
    return await view.client.activity.list(view.project, count=count, meta=(_TIME,))


async def _followed(view: View) -> AsyncIterator[Rows]:
    """Yield messages, the oldest first: the stored ones, then new ones, ``--count`` at most."""
    poller, left = Poller(view.say), view.options.count
    newest = known = await poller.call(lambda: _newest(view, _COUNT))
    complete = len(known) < _COUNT
    while True:
        if newest:
            shown_now = newest[::-1][:left]
            yield shown_now
            left = None if left is None else left - len(shown_now)
        if left == 0:
            return
        await poller.pause(is_new=bool(newest))
        newest, known, complete = await _poll(view, poller, known, complete)


async def _poll(view: View, poller: Poller, known: Rows, complete: bool) -> tuple[Rows, Rows, bool]:
    """Return the messages newer than the known ones, the newest first, and the known ones of the next poll.

    Messages have no IDs, so the known ones are found by their order. ``complete``: no older messages exist.
    """
    count = _COUNT
    while True:
        messages = await poller.call(partial(_newest, view, count))
        number = _number_of_new(messages, count, known, complete=complete)
        if number is not None:
            return messages[:number], messages[:_COUNT], len(messages) < _COUNT
        if count == _MOST or len(messages) < count:
            raise CommandError(f"over {_MOST} new messages arrived at once, or old ones were deleted; start it again")
        count = min(count * 10, _MOST)


def _number_of_new(messages: Rows, count: int, known: Rows, *, complete: bool) -> int | None:
    """Return the number of messages, of ``count`` read ones, before the known ones; None when these are not found."""
    full = len(messages) >= count
    if complete and not full and messages[len(messages) - len(known) :] == known:
        return len(messages) - len(known)
    for place in range(len(messages) if known else 0):
        rest = messages[place : place + len(known)]
        if rest == known[: len(rest)] and (full or len(rest) == len(known)):
            return place
    return None


SUBCOMMANDS: Final = (
    platform_command(
        "activity",
        _show,
        (
            ("scrapy platform activity", "the newest messages of the project"),
            ("scrapy platform activity --follow", "also new messages, the newest last"),
        ),
        argument("-f", "--follow", action="store_true", help="also show new messages, until Ctrl-C"),
        paging_options("messages", start=False),
    ),
)
