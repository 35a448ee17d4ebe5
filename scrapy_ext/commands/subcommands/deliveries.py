"""``scrapy platform deliveries`` and ``restore-job``: copies of finished jobs in other storage."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.deliveries import (
    COMPRESSIONS,
    DeliveryRule,
    data_in_words,
    format_in_words,
    limits_in_words,
    rule_of,
)
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.platform.rules import KINDS
from scrapy_ext.commands.options import JOBS, argument, view_options
from scrapy_ext.commands.rules import RuleActions, condition_fields, jobs_found
from scrapy_ext.commands.selection import selected_jobs
from scrapy_ext.commands.subcommand import (
    CommandAction,
    CommandError,
    Subcommand,
    View,
    with_actions,
    with_platform,
)
from scrapy_ext.commands.terminal.output import Column, each_of

#: Seconds between two polls of a restore.
_POLL_SECONDS: Final = 0.5

_DELIVERIES: Final = (
    Column.field("job"),
    Column.field("kind"),
    Column.field("records", right=True),
    Column("object", lambda each: f"{each['folder']}/{each['object']}"),
)
_RESTORES: Final = (Column.field("id", "job"), Column.field("state"))


def _fields(options: Any) -> dict[str, Any]:
    return {
        "target": options.target,
        "what": options.what or None,
        **condition_fields(options),
        "compression": options.compression,
        "parquet": options.parquet or None,
    }


def _rule(record: Any) -> DeliveryRule:
    return msgspec.convert(record, DeliveryRule)


async def _of_jobs(view: View) -> None:
    keys = [JobKey.parse(text, "job") for text in view.options.keys]
    found = [each for key in keys for each in await view.client.deliveries.of_job(key)]
    await view.output.records(each_of(found), _DELIVERIES)
    await view.output.note(f"objects: {len(found)}")


_ACTIONS: Final = RuleActions(
    command="deliveries",
    verb="deliver",
    does="delivers",
    done="delivered",
    rule=DeliveryRule,
    rules=lambda view: view.client.deliveries,
    fields=_fields,
    parse=rule_of,
    data=data_in_words,
    limits=limits_in_words,
    found=jobs_found,
    columns=(Column("format", lambda record: format_in_words(_rule(record))),),
)


def _kind(text: str) -> str:
    # Not as choices: Python before 3.12 refuses the empty list of an argument with choices.
    if text in KINDS:
        return text
    raise argparse.ArgumentTypeError(f"must be one of {', '.join(KINDS)}, got {text!r}")


_NEW: Final = (
    argument("target", metavar="URL", help="folder or prefix of a bucket that the operator of the server allows"),
    argument(
        "what",
        nargs="*",
        type=_kind,
        metavar="WHAT",
        help=f"records to deliver: {', '.join(KINDS)} (default: all of them)",
    ),
    argument("--compression", choices=COMPRESSIONS, help="gzip or Zstandard (default: gz)"),
    argument("--parquet", action="store_true", help="the records as Parquet, too"),
)


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
                raise CommandError(f"some records of job {key} were removed without a copy: only the others are back")
            yield {"id": str(key), "state": state.state}

    await view.output.records(states(), _RESTORES)


SUBCOMMANDS: Final = (
    with_actions(
        "deliveries",
        (
            *_ACTIONS.actions(_NEW),
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
    Subcommand(
        name="restore-job",
        examples=(("scrapy platform restore-job 1/2/3", "bring back the records of an archived job"),),
        arguments=(
            JOBS,
            argument("--no-wait", action="store_true", help="do not wait until the records can be read"),
            view_options(),
        ),
        run=with_platform(_restore),
    ),
)
