"""Actions of the commands about rules: ``scrapy platform retention``, ``deliveries`` and ``monitors``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from scrapy_ext.api.platform.rules import JobsPreview, RuleRecord
from scrapy_ext.client.platform.errors import NotFound
from scrapy_ext.client.platform.rules import Rules
from scrapy_ext.commands.options import YES, AddOptions, argument, positive_number, whole_number
from scrapy_ext.commands.selection import confirm
from scrapy_ext.commands.subcommand import CommandAction, CommandError, View
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock, counted

Record = Mapping[str, Any]
RuleT = TypeVar("RuleT", bound=RuleRecord)
PreviewT = TypeVar("PreviewT")

ID: Final = argument("id", type=whole_number, metavar="ID", help="number of the rule, as list shows it")
SERVER: Final = argument(
    "--server", action="store_true", help="rules of the whole server, for an API key of all projects"
)


#: Options of the scope of a new rule.
SCOPE: Final = (
    argument("--spider", metavar="NAME", help="only jobs of this spider"),
    argument("--tag", metavar="TAG", help="only jobs with this tag"),
)


@dataclass(frozen=True)
class RuleActions(Generic[RuleT, PreviewT]):
    """The actions of a command about the rules of a purpose."""

    #: Name of the command.
    command: str
    #: Its effect on data, as a verb in the infinitive and the third person, and as a past participle.
    verb: str
    does: str
    done: str
    rule: type[RuleT]
    rules: Callable[[View], Rules[RuleT, PreviewT]]
    #: The fields of a new rule, as the options give them; and the rule that they make.
    fields: Callable[[Any], dict[str, Any]]
    parse: Callable[[dict[str, Any]], Any]
    #: The data, and the limits, of a rule in words.
    data: Callable[[Any], str]
    limits: Callable[[Any], str]
    #: The data of a preview in a sentence.
    found: Callable[[PreviewT], str]
    #: Columns of the table of rules beside the common ones.
    columns: Sequence[Column] = ()

    def actions(self, new: Sequence[AddOptions]) -> tuple[CommandAction, ...]:
        """Return the actions; ``new``: the arguments for a new rule beside the common ones."""
        verb, done = self.verb, self.done
        added = (
            *new,
            argument("--older-than", type=positive_number, metavar="DAYS", help="only what is older than so many days"),
            argument("--keep-last", type=positive_number, metavar="N", help="not the newest N jobs of each spider"),
            *SCOPE,
            argument("--dry-run", action="store_true", help=f"show the data that would be {done}, and add no rule"),
            argument("--off", action="store_true", help="add the rule, and do not enable it"),
            YES,
            SERVER,
        )
        return (
            CommandAction("list", "list the rules that cover the project", self._list, (SERVER,)),
            CommandAction("next", f"show the jobs whose data the enabled rules {verb} next", self._next),
            CommandAction("add", f"add a rule, after a preview of the data that is {done} now", self.add, added),
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
        await view.output.records(each_of(map(msgspec.to_builtins, jobs)), self._next_columns())
        await view.output.note(f"the next {counted(len(jobs), 'job')} whose data the enabled rules {self.verb}")

    async def add(self, view: View) -> None:
        """Add a rule, after a preview."""
        fields = {name: value for name, value in self.fields(view.options).items() if value is not None}
        rule = self.parse(fields)
        preview = await self.rules(view).preview(_owner(view), fields)
        words = ", ".join(filter(None, (self.data(rule), self.limits(rule))))
        view.say(f"The rule {self.does} {words}. {self.found(preview)}")
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

    async def _of_one(self, view: View, call: Any) -> Any:
        try:
            return await call
        except NotFound:
            where = "the server" if view.options.server else f"project {view.project}"
            raise CommandError(
                f"{where} has no rule {view.options.id}; `scrapy platform {self.command}` lists the rules"
            ) from None

    async def _show_rules(self, view: View, rules: Sequence[RuleT]) -> None:
        def words(of: Callable[[Any], str]) -> Callable[[Record], str]:
            return lambda record: of(msgspec.convert(record, self.rule))

        columns = (
            Column.field("id", right=True),
            Column("of", lambda record: "server" if record["project"] is None else f"project {record['project']}"),
            Column("state", _state, wrap=True),
            Column(self.does, words(self.data)),
            Column("limits", words(self.limits)),
            *self.columns,
        )
        await view.output.records(each_of(map(msgspec.to_builtins, rules)), columns)

    def listed(self, preview: PreviewT) -> tuple[Sequence[Any], Sequence[Column]]:
        """Return the rows of a preview, and the columns of their table."""
        return getattr(preview, "next", ()), self._next_columns()

    async def _show_next(self, view: View, preview: PreviewT) -> None:
        rows, columns = self.listed(preview)
        if view.output.form != "table":
            await view.output.records(each_of([msgspec.to_builtins(preview)]))
        elif rows:
            await view.output.records(each_of(map(msgspec.to_builtins, rows)), columns)

    def _next_columns(self) -> tuple[Column, ...]:
        return (
            Column.field("job"),
            Column.field("spider"),
            Column(self.does, lambda record: ", ".join(record["what"])),
            Column("finished (UTC)", lambda record: clock(record["finished"])),
            Column("not before (UTC)", lambda record: clock(record["due"])),
            Column.field("records", right=True),
            Column.field("bytes", right=True),
        )


def _owner(view: View) -> int | None:
    return None if view.options.server else view.project


def _state(record: Record) -> str:
    return record.get("failure") or "enabled" if record["enabled"] else "off"


def condition_fields(options: Any) -> dict[str, Any]:
    """Return the fields of the conditions, as the options of a new rule give them."""
    return {
        "spider": options.spider,
        "tag": options.tag,
        "older_than": options.older_than,
        "keep_last": options.keep_last,
    }


def jobs_found(preview: JobsPreview) -> str:
    """Return the data of jobs in a preview, in a sentence."""
    return f"Now this is the data of {counted(preview.jobs, 'job')}: {records_found(preview)}."


def records_found(preview: JobsPreview) -> str:
    return f"{counted(preview.records, 'record')}, {preview.bytes} bytes"
