"""``scrapy platform monitors``: rules about finished jobs and expected runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from scrapy_ext.api.platform.monitors import FAILED, NOT_APPLICABLE, SORT, Monitor, MonitorPreview
from scrapy_ext.commands.options import argument, paging_options, whole_number
from scrapy_ext.commands.output import Column, Record
from scrapy_ext.commands.subcommand import CommandAction, View, with_actions
from scrapy_ext.commands.subcommands.rules import SERVER, RuleActions
from scrapy_ext.commands.text import clock, counted

#: Results of one answer.
_ALL: Final = 1000


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


def _found(preview: MonitorPreview) -> str:
    if preview.sentence:
        return f"Now {preview.sentence}."
    if not preview.jobs:
        return "It covers none of the jobs so far."
    parts = ((preview.failed, FAILED), (preview.not_applicable, NOT_APPLICABLE), (preview.passed, "passed"))
    outcomes = ", ".join(f"{number} {name}" for number, name in parts if number)
    return f"Of the last {counted(preview.jobs, 'job')}: {outcomes}."


_RULES: Final = _MonitorActions(
    SORT,
    rules=lambda view: view.client.monitors,
    found=_found,
    word="monitor",
    shows="its results for the last jobs",
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
    await view.show(found, _RESULTS, f"the newest {counted(len(found), 'result')}")


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
    await view.show(found, columns, f"monitors that fail now: {len(found)}")


_MONITOR_ACTIONS: Final = (
    *(action for action in _RULES.actions() if action.name != "next"),
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
)
