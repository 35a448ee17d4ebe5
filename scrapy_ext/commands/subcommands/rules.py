"""``scrapy platform retention``, ``deliveries`` and ``restore-job``; and the actions of ``monitors``, also rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from scrapy_ext.api.platform import deliveries, retention
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.rules import JobsPreview, PreviewT, RuleSort, RuleT
from scrapy_ext.client.platform.rules import Rules
from scrapy_ext.commands.fields import given_fields, options_of
from scrapy_ext.commands.options import JOBS, YES, argument, whole_number
from scrapy_ext.commands.output import Column, Record
from scrapy_ext.commands.selection import confirm, selected_jobs
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View, platform_command, with_actions
from scrapy_ext.commands.text import clock, counted

T = TypeVar("T")

ID: Final = argument("id", type=whole_number, metavar="ID", help="number of the rule, as list shows it")
SERVER: Final = argument(
    "--server", action="store_true", help="rules of the whole server, for an API key of all projects"
)


@dataclass(frozen=True)
class RuleActions(Generic[RuleT, PreviewT]):
    """The actions of a command about the rules of a sort."""

    sort: RuleSort[Any, RuleT, PreviewT]
    rules: Callable[[View], Rules[RuleT, PreviewT]]
    #: The data of a preview in a sentence.
    found: Callable[[PreviewT], str]
    #: The rule, and what a preview of it shows, in the help.
    word: str = "rule"
    shows: str = ""

    def actions(self) -> tuple[CommandAction, ...]:
        """Return the actions."""
        verb, done = self.sort.verb, self.sort.done
        shows = self.shows or f"the data that would be {done} now"
        added = (
            *options_of(self.sort.new),
            argument("--dry-run", action="store_true", help=f"show {shows}, and add no {self.word}"),
            argument("--off", action="store_true", help=f"add the {self.word}, and do not enable it"),
            YES,
            SERVER,
        )
        return (
            CommandAction("list", "list the rules that cover the project", self._list, (SERVER,)),
            CommandAction("next", f"show the jobs whose data the enabled rules {verb} next", self._next),
            CommandAction("add", f"add a {self.word}, after a preview of {shows}", self._add, added),
            CommandAction("preview", f"show the data that a rule would {verb} now", self._preview, (ID, SERVER)),
            CommandAction("enable", "enable a rule, after a preview", self._enable, (YES, ID, SERVER)),
            CommandAction("disable", "disable a rule", self._enable, (ID, SERVER)),
            CommandAction("remove", f"remove a rule; what it has {done} stays {done}", self._remove, (ID, SERVER)),
        )

    async def _list(self, view: View) -> None:
        rules = await self.rules(view).list(_owner(view))
        await self._show_rules(view, rules)
        enabled = sum(rule.enabled for rule in rules)
        await view.output.note(f"rules: {len(rules)}, of which {enabled} are enabled")

    async def _next(self, view: View) -> None:
        jobs = await self.rules(view).next(view.project)
        title = f"the next {counted(len(jobs), 'job')} whose data the enabled rules {self.sort.verb}"
        await view.show(jobs, self._next_columns(), title)

    async def _add(self, view: View) -> None:
        sort = self.sort
        fields = given_fields(sort.new, view.options)
        rule = sort.parse(fields)
        preview = await self.rules(view).preview(_owner(view), fields)
        words = ", ".join(filter(None, (sort.data(rule), sort.limits(rule))))
        view.say(f"The rule {sort.does} {words}. {self.found(preview)}")
        if view.options.dry_run:
            await self._show_next(view, preview)
            return
        if not view.options.off:
            await confirm(view, "Add the rule and enable it?")
        added = await self.rules(view).create(_owner(view), {**fields, "enabled": not view.options.off})
        await self._show_rules(view, [added])

    async def _preview(self, view: View) -> None:
        preview = await self._of_one(view, self.rules(view).preview(_owner(view), view.options.id))
        view.say(self.found(preview))
        await self._show_next(view, preview)

    async def _enable(self, view: View) -> None:
        number, enable = view.options.id, view.options.action == "enable"
        rules = self.rules(view)
        if enable:
            view.say(self.found(await self._of_one(view, rules.preview(_owner(view), number))))
            await confirm(view, f"Enable rule {number}?")
        await self._show_rules(view, [await self._of_one(view, rules.enable(_owner(view), number, enable))])

    async def _remove(self, view: View) -> None:
        await self._of_one(view, self.rules(view).delete(_owner(view), view.options.id))
        await view.output.note("the rule was removed")

    async def _of_one(self, view: View, call: Awaitable[T]) -> T:
        where = "the server" if view.options.server else f"project {view.project}"
        missing = f"{where} has no rule {view.options.id}; `scrapy platform {self.sort.name}` lists the rules"
        return await view.found(call, missing)

    async def _show_rules(self, view: View, rules: Sequence[RuleT]) -> None:
        def words(of: Callable[[Any], str]) -> Callable[[Record], str]:
            return lambda record: of(msgspec.convert(record, self.sort.rule))

        columns = (
            Column.field("id", right=True),
            Column("of", lambda record: "server" if record["project"] is None else f"project {record['project']}"),
            Column("state", _state, wrap=True),
            Column(self.sort.does, words(self.sort.data)),
            Column("limits", words(self.sort.limits)),
            *(Column(title, words(text)) for title, text in self.sort.columns.items()),
        )
        await view.show(rules, columns)

    def listed(self, preview: PreviewT) -> tuple[Sequence[Any], Sequence[Column]]:
        """Return the rows of a preview, and the columns of their table."""
        return getattr(preview, "next", ()), self._next_columns()

    async def _show_next(self, view: View, preview: PreviewT) -> None:
        rows, columns = self.listed(preview)
        if view.output.form != "table":
            await view.show([preview])
        elif rows:
            await view.show(rows, columns)

    def _next_columns(self) -> tuple[Column, ...]:
        return (
            Column.field("job"),
            Column.field("spider"),
            Column(self.sort.does, lambda record: ", ".join(record["what"])),
            Column("finished (UTC)", lambda record: clock(record["finished"])),
            Column("not before (UTC)", lambda record: clock(record["due"])),
            Column.field("records", right=True),
            Column.field("bytes", right=True),
        )


def _owner(view: View) -> int | None:
    return None if view.options.server else view.project


def _state(record: Record) -> str:
    return record.get("failure") or "enabled" if record["enabled"] else "off"


def _jobs_found(preview: JobsPreview) -> str:
    """Return the data of jobs in a preview, in a sentence."""
    return f"Now this is the data of {counted(preview.jobs, 'job')}: {_records_found(preview)}."


def _records_found(preview: JobsPreview) -> str:
    return f"{counted(preview.records, 'record')}, {preview.bytes} bytes"


def _deliveries_found(preview: deliveries.DeliveryPreview) -> str:
    return _jobs_found(preview) + (f" The rule waits: {preview.failure}." if preview.failure else "")


def _retention_found(preview: retention.Preview) -> str:
    if preview.collections:
        return f"Now these are {_records_found(preview)} of {counted(preview.collections, 'collection')}."
    return _jobs_found(preview)


# ── deliveries and restores ──

#: Seconds between two polls of a restore.
_POLL_SECONDS: Final = 0.5

_DELIVERIES: Final = (
    Column.field("job"),
    Column.field("kind"),
    Column.field("records", right=True),
    Column("object", lambda each: f"{each['folder']}/{each['object']}"),
)
_RESTORES: Final = (Column.field("id", "job"), Column.field("state"))


async def _of_jobs(view: View) -> None:
    keys = [JobKey.parse(text, "job") for text in view.options.keys]
    found = [each for key in keys for each in await view.client.deliveries.of_job(key)]
    await view.show(found, _DELIVERIES, f"objects: {len(found)}")


async def _restore(view: View) -> None:
    keys = await selected_jobs(view)
    for key in keys:
        state = await view.client.deliveries.restore_state(key)
        if state.state not in ("available", "restoring"):
            await view.client.deliveries.restore(key)

    async def states() -> AsyncIterator[dict[str, Any]]:
        for key in keys:
            state = await view.client.deliveries.restore_state(key)
            while state.state == "restoring" and not view.options.no_wait:
                await asyncio.sleep(_POLL_SECONDS)
                state = await view.client.deliveries.restore_state(key)
            if state.state == "failed":
                raise CommandError(f"job {key} was not restored: {state.failure}")
            if state.state == "removed":
                raise CommandError(
                    f"some records of job {key} were removed without a copy: only the others are back; deliver a "
                    "copy before the next removal"
                )
            yield {"id": str(key), "state": state.state}

    await view.output.records(states(), _RESTORES)


SUBCOMMANDS: Final = (
    with_actions(
        "retention",
        RuleActions(retention.SORT, rules=lambda view: view.client.retention, found=_retention_found).actions(),
        (
            ("scrapy platform retention add items requests --older-than 90 --dry-run", "preview: jobs and bytes"),
            ("scrapy platform retention add jobs --keep-last 100 --spider books", "keep the newest 100 with records"),
            ("scrapy platform retention", "the rules in force"),
            ("scrapy platform retention next", "the jobs that go next"),
        ),
    ),
    with_actions(
        "deliveries",
        (
            *RuleActions(deliveries.SORT, rules=lambda view: view.client.deliveries, found=_deliveries_found).actions(),
            CommandAction(
                "of",
                "list the objects that jobs were delivered to",
                _of_jobs,
                (argument("keys", nargs="+", metavar="JOB", help="key of a job, as in 1/2/3"),),
            ),
        ),
        (
            ("scrapy platform deliveries add s3://bucket/crawls --older-than 30 --dry-run", "preview: jobs and bytes"),
            ("scrapy platform deliveries add file:///srv/archive items --parquet", "items, with tables for analysis"),
            ("scrapy platform deliveries", "the rules in force, and why one of them waits"),
            ("scrapy platform deliveries next", "the jobs that are delivered next"),
            ("scrapy platform deliveries of 1/2/3", "the objects that a job was delivered to"),
        ),
    ),
    platform_command(
        "restore-job",
        _restore,
        (("scrapy platform restore-job 1/2/3", "bring back the records of an archived job"),),
        JOBS,
        argument("--no-wait", action="store_true", help="do not wait until the records can be read"),
    ),
)
