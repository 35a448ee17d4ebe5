"""``scrapy platform webhooks`` and ``alerts``: receivers of a project's activity, and of messages about monitors."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.alerts import NewTarget, target_of
from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.client.platform.receivers import Receivers
from scrapy_ext.commands.fields import given_fields, options_of
from scrapy_ext.commands.options import argument, paging_options, view_options, whole_number
from scrapy_ext.commands.output import Column, Record
from scrapy_ext.commands.subcommand import CommandAction, CommandError, Subcommand, View, with_actions, with_platform
from scrapy_ext.commands.text import clock
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

#: Messages of one answer.
_ALL: Final = 1000
#: Seconds between two polls of the outcome of a test.
_POLL_SECONDS: Final = 0.3


def _state(receiver: Record) -> str:
    if receiver["disabled"]:
        return "disabled"
    since = receiver["failing_since"]
    why = f": {receiver['outcome']}" if "outcome" in receiver else ""
    return "enabled" if since is None else f"failing since {clock(since)[:16]} UTC{why}"


def _message_columns(*named: str) -> tuple[Column, ...]:
    created = Column("created (UTC)", lambda message: clock(message["created"]))
    further = (Column.field("state"), Column.field("attempts", right=True), Column.field("outcome"))
    return (created, *map(Column.field, named), *further)


@dataclass(frozen=True)
class _ReceiverCalls:
    """The calls of a command about receivers of a sort, and their output."""

    receivers: Callable[[View], Receivers[Any, Any]]
    columns: tuple[Column, ...]
    messages: tuple[Column, ...]
    #: The receivers in the line below their list.
    title: str
    #: The error for a number that no receiver has.
    unknown: str
    #: Returns the number of the receiver that the arguments name.
    number: Callable[[View], int]
    #: A message, and several, in notes.
    message: tuple[str, str]
    #: The messages in the error for a test that was not sent in time.
    sends: str
    #: The command that lists the messages.
    lists: str
    #: Seconds to wait for the outcome of a test.
    test_seconds: float
    #: State of a message that a receiver has accepted.
    accepted: str
    #: True: the changed receiver is shown, and a note after its removal.
    shows_changes: bool = False

    async def list(self, view: View) -> None:
        found = await self.receivers(view).list(view.project)
        await view.show(found, self.columns, f"{self.title}: {len(found)}")

    async def remove(self, view: View) -> None:
        await view.found(self.receivers(view).delete(view.project, self.number(view)), self.unknown)
        if self.shows_changes:
            await view.output.note("the target was removed")

    async def disable(self, view: View) -> None:
        """Disable or enable a receiver, as the action says."""
        disabled = view.options.action == "disable"
        changed = await view.found(
            self.receivers(view).disable(view.project, self.number(view), disabled), self.unknown
        )
        if self.shows_changes:
            await view.show([changed], self.columns)

    async def show_messages(self, view: View) -> None:
        count = min(view.output.count(view.options) or _ALL, _ALL)
        found = await view.found(
            self.receivers(view).messages(view.project, self.number(view), count=count), self.unknown
        )
        await view.show(found, self.messages, f"the newest {len(found)} {self.message[len(found) != 1]}")

    async def test(self, view: View) -> None:
        """Send a test, and show its outcome; raise :class:`CommandError` when it is not accepted."""
        number = self.number(view)
        sent = await view.found(self.receivers(view).test(view.project, number), self.unknown)
        await self._show_outcome(view, number, sent, "the test")

    async def resend(self, view: View, place: int) -> None:
        """Send a message that was given up again, and show its outcome as :meth:`test` does."""
        number, message = self.number(view), self.message[0]
        unknown = f"there is no {message} {place} that was given up; use one of `{self.lists}`"
        sent = await view.found(self.receivers(view).resend(view.project, number, place), unknown)
        await self._show_outcome(view, number, sent, f"the {message}")

    async def _show_outcome(self, view: View, number: int, sent: Any, what: str) -> None:
        receivers = self.receivers(view)
        try:
            async with timeout_after(self.test_seconds):
                while sent.state == "pending":
                    await asyncio.sleep(_POLL_SECONDS)
                    latest = await receivers.messages(view.project, number, count=_ALL)
                    sent = next((each for each in latest if each.id == sent.id), sent)
        except TIMEOUT_ERRORS:
            late = f"{what} was not sent within {self.test_seconds:g} s"
            raise CommandError(f"{late}; start a server without --no-runner, which sends {self.sends}") from None
        if sent.state != self.accepted:
            raise CommandError(f"{what} was not accepted: {sent.outcome}")
        await view.show([sent], self.messages)


# ── webhooks ──


async def _list_webhooks(view: View) -> None:
    if view.options.arguments:
        raise CommandError("list takes no arguments; leave them out")
    await _WEBHOOKS.list(view)


async def _add_webhook(view: View) -> None:
    url, *events = view.options.arguments or [""]
    if not url or not events:
        raise CommandError("add needs a URL and events, as in `add https://hooks.example.com/jobs job:completed`")
    added = await view.client.webhooks.create(view.project, {"url": url, "events": events})
    sys.stdout.write(f"{added.secret}\n")
    use = f"This is the secret of webhook {added.id}, which verifies the signature of a delivery"
    view.say(f"{use}. It is not shown again.")


async def _resend_delivery(view: View) -> None:
    words = view.options.arguments
    if len(words) != 2:
        raise CommandError("resend needs a webhook and a delivery, as in `resend 1 1-1-345`")
    await _WEBHOOKS.resend(view, number_of(words[1].rpartition("-")[2], "delivery"))


def _webhook(view: View) -> int:
    words = view.options.arguments
    if len(words) != 1 + (view.options.action == "resend"):
        action = view.options.action
        raise CommandError(f"{action} needs the number of a webhook; `scrapy platform webhooks` lists them")
    return number_of(words[0], "webhook")


_WEBHOOKS: Final = _ReceiverCalls(
    lambda view: view.client.webhooks,
    columns=(
        Column.field("id", right=True),
        Column.field("url", "URL"),
        Column("events", lambda webhook: ", ".join(webhook["events"])),
        Column("state", _state),
    ),
    messages=_message_columns("id", "event"),
    title="webhooks",
    unknown="no webhook of the platform has this number; `scrapy platform webhooks` lists the webhooks",
    number=_webhook,
    message=("delivery", "deliveries"),
    sends="deliveries",
    lists="scrapy platform webhooks deliveries ID",
    test_seconds=30.0,
    accepted="delivered",
)
_WEBHOOK_ACTIONS: Final = {
    "list": _list_webhooks,
    "add": _add_webhook,
    "remove": _WEBHOOKS.remove,
    "disable": _WEBHOOKS.disable,
    "enable": _WEBHOOKS.disable,
    "test": _WEBHOOKS.test,
    "deliveries": _WEBHOOKS.show_messages,
    "resend": _resend_delivery,
}

# ── targets of alerts ──


async def _add_target(view: View) -> None:
    fields = given_fields(NewTarget, view.options)
    added = await view.client.alerts.create(view.project, msgspec.to_builtins(target_of(fields)))
    await view.show([added], _TARGETS.columns)
    view.say(f"Its address is not shown again. Try it: scrapy platform alerts test {added.id}")


_TARGETS: Final = _ReceiverCalls(
    lambda view: view.client.alerts,
    columns=(
        Column.field("id", right=True),
        Column.field("name"),
        Column.field("url", "address"),
        Column("state", _state, wrap=True),
    ),
    messages=_message_columns("id", "kind", "title"),
    title="targets of alerts",
    unknown="no target of the project has this number; `scrapy platform alerts` lists them",
    number=lambda view: int(view.options.id),
    message=("message", "messages"),
    sends="alerts",
    lists="scrapy platform alerts messages ID",
    test_seconds=90.0,
    accepted="sent",
    shows_changes=True,
)
_TARGET: Final = argument("id", type=whole_number, metavar="ID", help="number of the target, as list shows it")
_MESSAGE: Final = argument("message", type=whole_number, metavar="MESSAGE", help="its id, as messages shows it")
_MESSAGES: Final = paging_options("messages", start=False)
_TARGET_ACTIONS: Final = (
    CommandAction("list", "list the targets of the project", _TARGETS.list),
    CommandAction("add", "add a target", _add_target, options_of(NewTarget)),
    CommandAction("test", "send a trial message, and show its outcome", _TARGETS.test, (_TARGET,)),
    CommandAction("messages", "show the messages to a target", _TARGETS.show_messages, (_TARGET, _MESSAGES)),
    CommandAction(
        "resend",
        "send a message that was given up again, and show its outcome",
        lambda view: _TARGETS.resend(view, int(view.options.message)),
        (_TARGET, _MESSAGE),
    ),
    CommandAction("disable", "disable a target, and drop its pending messages", _TARGETS.disable, (_TARGET,)),
    CommandAction("enable", "enable a target", _TARGETS.disable, (_TARGET,)),
    CommandAction("remove", "remove a target", _TARGETS.remove, (_TARGET,)),
)

SUBCOMMANDS: Final = (
    Subcommand(
        name="webhooks",
        examples=(
            ("scrapy platform webhooks", "the webhooks of the project"),
            ("scrapy platform webhooks add https://hooks.example.com/jobs job:completed", "its secret is shown once"),
            ("scrapy platform webhooks test 1", "send a test delivery, and show its outcome"),
            ("scrapy platform webhooks deliveries 1", "deliveries with their state and outcome"),
            ("scrapy platform webhooks resend 1 1-1-345", "send a delivery that was given up again"),
            ("scrapy platform webhooks remove 1", "delete the webhook"),
        ),
        arguments=(
            argument(
                "action",
                nargs="?",
                choices=tuple(_WEBHOOK_ACTIONS),
                default="list",
                help="action (default: %(default)s)",
            ),
            argument(
                "arguments",
                nargs="*",
                metavar="ARGUMENT",
                help="for add: URL and EVENT …; for resend: number of a webhook, and a delivery; for others, except "
                "list: number of the webhook",
            ),
            paging_options("deliveries", start=False),
            view_options(),
        ),
        run=with_platform(lambda view: _WEBHOOK_ACTIONS[view.options.action](view)),
    ),
    with_actions(
        "alerts",
        _TARGET_ACTIONS,
        (
            ("scrapy platform alerts", "the targets of the project"),
            ("scrapy platform alerts add on-call slack://TOKEN_A/TOKEN_B/TOKEN_C", "send alerts to Slack"),
            ("scrapy platform alerts test 1", "send a trial message, and show its outcome"),
            ("scrapy platform alerts messages 1", "messages with their state and outcome"),
            ("scrapy platform alerts resend 1 7", "send a message that was given up again"),
        ),
    ),
)
