"""``scrapy platform versions``."""

from __future__ import annotations

from typing import Final

import msgspec

from scrapy_ext.commands.options import argument, view_options
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, with_platform
from scrapy_ext.commands.subcommands.deploy import SPIDERS
from scrapy_ext.commands.terminal.output import Column, each_of
from scrapy_ext.commands.terminal.text import clock

_COLUMNS: Final = (
    Column("", lambda version: "*" if version["current"] else ""),
    Column.field("version"),
    Column("state", lambda version: version["state"]),
    Column("deployed (UTC)", lambda version: clock(version["created"])[:16]),
    Column.field("created_by", "by"),
    Column("kB", lambda version: str(-(-version["size"] // 1000)), right=True),
    Column.field("format"),
    Column("note", lambda version: version["message"].partition("\n")[0]),
)


async def _act(view: View) -> None:
    action, name, versions = view.options.action, view.options.version, view.client.versions
    if action == "list":
        if name is not None:
            raise CommandError(f"list has no argument V; `scrapy platform versions show {name}` shows a version")
        found = await versions.list(view.project)
        records = [msgspec.to_builtins(version) for version in found]
        for record in records:
            del record["spiders"]  # The list never has them.
        await view.output.records(each_of(records), _COLUMNS)
        await view.output.note(f"versions of project {view.project}: {len(found)}; * is the current one")
    elif name is None:
        raise CommandError(f"{action} needs a version, as in `scrapy platform versions {action} 1.0`")
    elif action == "show":
        shown = await versions.get(view.project, name)
        await view.output.records(each_of(shown.spiders or []), SPIDERS)
        why = f": {shown.message}" if shown.message else ""
        await view.output.note(f"version {name} of project {view.project} is {shown.state.value}{why}")
    elif action == "use":
        await versions.make_current(view.project, name)
        await view.output.note(f"version {name} of project {view.project} is current")
    else:
        await versions.delete(view.project, name)
        await view.output.note(f"version {name} of project {view.project} is deleted")


SUBCOMMANDS: Final = (
    Subcommand(
        name="versions",
        examples=(
            ("scrapy platform versions", "the deployed versions, the newest first"),
            ("scrapy platform versions show 1.4", "the spiders of a version and their arguments"),
            ("scrapy platform versions use 1.3", "make 1.3 the current version, which new jobs run"),
            ("scrapy platform versions delete 1.2", "delete a version that no job needs"),
        ),
        arguments=(
            argument(
                "action",
                nargs="?",
                choices=("list", "show", "use", "delete"),
                default="list",
                help="action (default: list); show: the spiders of a version; use: make it the current one",
            ),
            argument("version", nargs="?", metavar="V", help="name of the version (not for list)"),
            view_options(),
        ),
        run=with_platform(_act),
    ),
)
