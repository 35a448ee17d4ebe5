"""``scrapy platform project``: the projects of a platform, and their names."""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.platform.projects import Project, name_of_project
from scrapy_ext.commands.options import argument
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.subcommand import CommandAction, View, with_actions
from scrapy_ext.commands.text import counted

_COLUMNS: Final = (Column.field("id", right=True), Column.field("name"))


async def _list(view: View) -> None:
    found = await view.client.projects.named()
    await view.show(found, _COLUMNS, f"{counted(len(found), 'project')} with data or a name")


async def _name(view: View) -> None:
    await _show(view, await view.client.projects.name(view.project, name_of_project(view.options.name.strip())))


async def _unname(view: View) -> None:
    await _show(view, await view.client.projects.name(view.project, None))


async def _show(view: View, project: Project) -> None:
    await view.show([project], _COLUMNS)


SUBCOMMANDS: Final = (
    with_actions(
        "project",
        (
            CommandAction("list", "the projects that the key may read", _list),
            CommandAction(
                "name",
                "name the project, or rename it",
                _name,
                (argument("name", metavar="NAME", help="the new name, which no other project has"),),
            ),
            CommandAction("unname", "remove the name of the project", _unname),
        ),
        (
            ("scrapy platform project", "numbers and names of the projects"),
            ("scrapy platform project name books --project 12", "pages show the name beside the number"),
            ("scrapy platform project unname --project 12", "remove the name"),
        ),
    ),
)
