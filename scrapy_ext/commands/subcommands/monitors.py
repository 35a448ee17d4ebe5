"""``scrapy platform monitors``: rules about finished jobs and expected runs; ``alerts``: the receivers of messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.alerts import target_of
from scrapy_ext.api.platform.monitors import (
    DEFAULT_SAMPLE,
    FAILED,
    NOT_APPLICABLE,
    Monitor,
    MonitorPreview,
    conditions_in_words,
    jobs_in_words,
    monitor_of,
)
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.commands.options import YES, argument, paging_options, pair, repeated, whole_number
from scrapy_ext.commands.rules import SCOPE, SERVER, RuleActions
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View, with_actions
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock, counted
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after

Record = Mapping[str, Any]

#: Results of one answer.
_ALL: Final = 1000
#: Seconds to wait for the outcome of a test, and between two polls.
_TEST_SECONDS: Final = 90.0
_POLL_SECONDS: Final = 0.3


def _sentences(result: Record) -> str:
    """Return the sentences of a result, those of failed checks first."""
    checks = sorted(result["checks"], key=lambda check: check["outcome"] != FAILED)
    chosen = [check for check in checks if check["outcome"] == result["outcome"]] or checks
    return "; ".join(check["sentence"] for check in chosen)


_RESULTS: Final = (
    Column("finished (UTC)", lambda result: clock(result["finished"])),
    Column.field("job"),
    Column.field("spider"),
    Column.field("name", "monitor"),
    Column.field("outcome", "result"),
    Column("why", _sentences, wrap=True),
)


@dataclass(frozen=True)
class _MonitorActions(RuleActions[Monitor, MonitorPreview]):
    """The actions of rules, with results of jobs."""

    def listed(self, preview: MonitorPreview) -> tuple[Sequence[Any], Sequence[Column]]:
        return preview.results, _RESULTS


def _fields(options: Any) -> dict[str, Any]:
    return {
        "name": options.name,
        "spider": options.spider,
        "tag": options.tag,
        "args": dict(options.arg) or None,
        "checks": options.check or None,
        "schema": None if options.schema is None else _schema_in(options.schema),
        "sample": options.sample,
        "expect": options.expect,
    }


def _schema_in(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{path} cannot be read as JSON: {error}") from None


def _found(preview: MonitorPreview) -> str:
    if preview.sentence:
        return f"Now {preview.sentence}."
    if not preview.jobs:
        return "It covers none of the jobs so far."
    parts = ((preview.failed, FAILED), (preview.not_applicable, NOT_APPLICABLE), (preview.passed, "passed"))
    outcomes = ", ".join(f"{number} {name}" for number, name in parts if number)
    return f"Of the last {counted(preview.jobs, 'job')}: {outcomes}."


_RULES: Final = _MonitorActions(
    command="monitors",
    verb="check",
    does="checks",
    done="checked",
    rule=Monitor,
    rules=lambda view: view.client.monitors,
    fields=_fields,
    parse=monitor_of,
    data=jobs_in_words,
    limits=conditions_in_words,
    found=_found,
    columns=(Column.field("name"),),
)
_NEW: Final = (
    repeated("--check", metavar="CHECK", help='such as "items >= 100", "coverage price >= 95%%" or "errors == 0"'),
    argument("--schema", metavar="FILE", help="file with a JSON Schema of the items"),
    argument(
        "--sample",
        type=whole_number,
        metavar="N",
        help=f"compare N items with the schema; 0: all (default: {DEFAULT_SAMPLE})",
    ),
    argument("--expect", metavar="TIME", help="a successful run at least every TIME (24h, 7d), or schedule"),
    argument("--name", metavar="NAME", help="name in results and messages"),
    repeated("--arg", type=pair, metavar="NAME=VALUE", help="only jobs with this spider argument"),
    *SCOPE,
    argument("--dry-run", action="store_true", help="show the results for the last jobs, and add no monitor"),
    argument("--off", action="store_true", help="add the monitor, and do not enable it"),
    YES,
    SERVER,
)


async def _results(view: View) -> None:
    count = view.output.count(view.options) or _ALL
    found = await view.client.monitors.results(
        view.project,
        job=view.options.job,
        monitor=view.options.monitor,
        of_server=view.options.server,
        count=min(count, _ALL),
    )
    number = await view.output.records(each_of(map(msgspec.to_builtins, found)), _RESULTS)
    await view.output.note(f"the newest {counted(number, 'result')}")


async def _incidents(view: View) -> None:
    found = await view.client.monitors.incidents(view.project)
    columns = (
        Column("since (UTC)", lambda each: clock(each["since"])),
        Column.field("spider"),
        Column.field("name", "monitor"),
        Column.field("jobs", right=True),
        Column("last job", lambda each: each["job"] or ""),
        Column.field("sentence", "why"),
    )
    await view.output.records(each_of(map(msgspec.to_builtins, found)), columns)
    await view.output.note(f"monitors that fail now: {len(found)}")


_MONITOR_ACTIONS: Final = (
    *(action for action in _RULES.actions(()) if action.name not in ("next", "add")),
    CommandAction("add", "add a monitor, after a preview of its results for the last jobs", _RULES.add, _NEW),
    CommandAction(
        "results",
        "show the results of jobs, the newest first",
        _results,
        (
            argument("--job", metavar="KEY", help="only those of this job, such as 1/2/3"),
            argument("--monitor", type=whole_number, metavar="ID", help="only those of the monitor with this number"),
            paging_options("results", start=False),
            SERVER,
        ),
    ),
    CommandAction("incidents", "show the monitors that fail now, and since when", _incidents),
)

# ── alerts ──


def _state(target: Record) -> str:
    if target["disabled"]:
        return "disabled"
    since = target["failing_since"]
    return "enabled" if since is None else f"failing since {clock(since)[:16]} UTC: {target['outcome']}"


_TARGETS: Final = (
    Column.field("id", right=True),
    Column.field("name"),
    Column.field("url", "address"),
    Column("state", _state, wrap=True),
)
_MESSAGES: Final = (
    Column("created (UTC)", lambda message: clock(message["created"])),
    Column.field("kind"),
    Column.field("title"),
    Column.field("state"),
    Column.field("attempts", right=True),
    Column.field("outcome"),
)


async def _of_target(call: Any) -> Any:
    try:
        return await call
    except NotFound:
        raise CommandError("no target of the project has this number; `scrapy platform alerts` lists them") from None


async def _list(view: View) -> None:
    found = await view.client.alerts.list(view.project)
    await view.output.records(each_of(map(msgspec.to_builtins, found)), _TARGETS)
    await view.output.note(f"targets of alerts: {len(found)}")


async def _add(view: View) -> None:
    new = target_of({"name": view.options.name, "url": view.options.url})
    added = await view.client.alerts.create(view.project, new.name, new.url)
    await view.output.records(each_of([msgspec.to_builtins(added)]), _TARGETS)
    view.say(f"Its address is not shown again. Try it: scrapy platform alerts test {added.id}")


async def _remove(view: View) -> None:
    await _of_target(view.client.alerts.delete(view.project, view.options.id))
    await view.output.note("the target was removed")


async def _disable(view: View) -> None:
    call = view.client.alerts.disable(view.project, view.options.id, view.options.action == "disable")
    await view.output.records(each_of([msgspec.to_builtins(await _of_target(call))]), _TARGETS)


async def _test(view: View) -> None:
    number = view.options.id
    sent = await _of_target(view.client.alerts.test(view.project, number))
    try:
        async with timeout_after(_TEST_SECONDS):
            while sent.state == "pending":
                await asyncio.sleep(_POLL_SECONDS)
                latest = await view.client.alerts.messages(view.project, number, count=_ALL)
                sent = next((each for each in latest if each.id == sent.id), sent)
    except TIMEOUT_ERRORS:
        raise CommandError(
            f"the test was not sent within {_TEST_SECONDS:g} s; a server without --no-runner sends alerts"
        ) from None
    if sent.state != "sent":
        raise CommandError(f"the test was not accepted: {sent.outcome}")
    await view.output.records(each_of([msgspec.to_builtins(sent)]), _MESSAGES)


async def _messages(view: View) -> None:
    count = view.output.count(view.options) or _ALL
    found = await _of_target(view.client.alerts.messages(view.project, view.options.id, count=min(count, _ALL)))
    number = await view.output.records(each_of(map(msgspec.to_builtins, found)), _MESSAGES)
    await view.output.note(f"the newest {counted(number, 'message')}")


_TARGET: Final = argument("id", type=whole_number, metavar="ID", help="number of the target, as list shows it")
_ALERT_ACTIONS: Final = (
    CommandAction("list", "list the targets of the project", _list),
    CommandAction(
        "add",
        "add a target",
        _add,
        (
            argument("name", metavar="NAME", help="name in lists and messages"),
            argument("url", metavar="URL", help="address of Apprise, such as slack://TOKEN_A/TOKEN_B/TOKEN_C"),
        ),
    ),
    CommandAction("test", "send a trial message, and show its outcome", _test, (_TARGET,)),
    CommandAction(
        "messages", "show the messages to a target", _messages, (_TARGET, paging_options("messages", start=False))
    ),
    CommandAction("disable", "disable a target, and drop its pending messages", _disable, (_TARGET,)),
    CommandAction("enable", "enable a target", _disable, (_TARGET,)),
    CommandAction("remove", "remove a target", _remove, (_TARGET,)),
)

SUBCOMMANDS: Final = (
    with_actions(
        "monitors",
        _MONITOR_ACTIONS,
        (
            ('scrapy platform monitors add --check "items >= 0.8 x median" --dry-run', "results for the last jobs"),
            ('scrapy platform monitors add --spider books --check "errors == 0"', "add a monitor and enable it"),
            ("scrapy platform monitors add --spider books --expect 24h", "a successful run every day"),
            ("scrapy platform monitors", "the monitors in force"),
            ("scrapy platform monitors results --job 1/2/3", "the results of a job"),
            ("scrapy platform monitors incidents", "what fails now, and since when"),
        ),
    ),
    with_actions(
        "alerts",
        _ALERT_ACTIONS,
        (
            ("scrapy platform alerts", "the targets of the project"),
            ("scrapy platform alerts add on-call slack://TOKEN_A/TOKEN_B/TOKEN_C", "send alerts to Slack"),
            ("scrapy platform alerts test 1", "send a trial message, and show its outcome"),
            ("scrapy platform alerts messages 1", "messages with their state and outcome"),
        ),
    ),
)
