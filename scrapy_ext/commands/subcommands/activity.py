"""``scrapy platform activity``: the messages about a project's jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from scrapy_ext.commands.follow import Poller, Rows
from scrapy_ext.commands.options import argument, paging_options, view_options
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, with_platform
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
#: Messages shown without ``--count``, and messages of one poll.
_COUNT: Final = 100
#: Maximum messages of one poll, read to find the ones that were already shown.
_MOST: Final = 10_000


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
        messages = await poller.call(lambda count=count: _newest(view, count))  # type: ignore[misc]
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
    Subcommand(
        name="activity",
        examples=(
            ("scrapy platform activity", "the newest messages of the project"),
            ("scrapy platform activity --follow", "also new messages, the newest last"),
        ),
        arguments=(
            argument("-f", "--follow", action="store_true", help="also show new messages, until Ctrl-C"),
            paging_options("messages", start=False),
            view_options(),
        ),
        run=with_platform(_show),
    ),
)
