"""``scrapy platform versions``."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, add_view_options, look
from scrapy_ext.commands.subcommands import deploy
from scrapy_ext.commands.terminal.output import Column
from scrapy_ext.commands.terminal.text import clock

_COLUMNS: Final = (
    Column("", lambda version: "*" if version["current"] else ""),
    Column.field("version"),
    Column("state", lambda version: version["state"]),
    Column("deployed (UTC)", lambda version: clock(version["created"])[:16]),
    Column.field("created_by", "by"),
    Column("kB", lambda version: str(-(-version["size"] // 1000)), right=True),
    Column.field("format"),
    Column("why", lambda version: version["message"].partition("\n")[0]),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "show", "use", "delete"),
        default="list",
        help="show: a version's spiders; use: let new jobs run it, as going back to an earlier one does",
    )
    parser.add_argument("version", nargs="?", metavar="V", help="name of the version; list needs none")
    add_view_options(parser)


async def _act(view: View) -> None:
    action, name, versions = view.options.action, view.options.version, view.client.versions
    if action == "list":
        if name is not None:
            raise CommandError(f"list takes no name; `scrapy platform versions show {name}` shows one")
        found = await versions.list(view.project)
        await view.output.records(_records(found), _COLUMNS)
        await view.output.note(f"versions of project {view.project}: {len(found)}; * is the current one")
    elif name is None:
        raise CommandError(f"{action} needs a version, as in `scrapy platform versions {action} 1.0`")
    elif action == "show":
        shown = await versions.get(view.project, name)
        await view.output.records(_records(shown.spiders or []), deploy.COLUMNS)
        why = f": {shown.message}" if shown.message else ""
        await view.output.note(f"version {name} of project {view.project} is {shown.state.value}{why}")
    elif action == "use":
        await versions.make_current(view.project, name)
        await view.output.note(f"version {name} of project {view.project} is current")
    else:
        await versions.delete(view.project, name)
        await view.output.note(f"version {name} of project {view.project} is deleted")


async def _records(found: Sequence[msgspec.Struct]) -> AsyncIterator[dict[str, Any]]:
    for each in found:
        record: dict[str, Any] = msgspec.to_builtins(each)
        if "spiders" in record and record["spiders"] is None:
            del record["spiders"]
        yield record


SUBCOMMAND: Final = Subcommand(
    name="versions",
    examples=(
        ("scrapy platform versions", "what was deployed, the newest first"),
        ("scrapy platform versions show 1.4", "the spiders of a version and their arguments"),
        ("scrapy platform versions use 1.3", "go back: new jobs run 1.3"),
        ("scrapy platform versions delete 1.2", "remove one that no job needs"),
    ),
    add_options=_add_options,
    run=look(_act),
)
