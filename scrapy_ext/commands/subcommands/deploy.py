"""``scrapy platform deploy``: pack the project, upload it as a version, and wait for its check; and ``versions``."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg

from scrapy_ext import settings as names
from scrapy_ext.api.platform.versions import Version, VersionState
from scrapy_ext.commands.deploy_targets import Target, find_target, version_name
from scrapy_ext.commands.options import YES, argument, output_options, project_number
from scrapy_ext.commands.output import Column, one_line, status
from scrapy_ext.commands.packing import Packed, note_deployed, pack, requirements_of
from scrapy_ext.commands.selection import confirm
from scrapy_ext.commands.subcommand import CommandError, Subcommand, View, failed, platform_command, with_platform
from scrapy_ext.commands.text import clock, printable
from scrapy_ext.compatibility.python import timeout_after

_POLL_SECONDS: Final = 0.5
#: Seconds to wait for the next message of a check.
_CHECK_SECONDS: Final = 1200.0
_ADDRESSES: Final = ("PLATFORM_URL", "PLATFORM_APP_URL", "PLATFORM_STORAGE_URL", "PLATFORM_JOBQ_URL")

#: Columns of the spiders of a version.
SPIDERS: Final = (
    Column.field("name", "spider"),
    Column("arguments", lambda spider: ", ".join(map(_argument, spider.get("arguments") or ()))),
    Column.field("summary"),
)


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="deploy-") as into:
        try:
            found = closest_scrapy_cfg()
            if not found:
                raise CommandError(
                    "there is no scrapy.cfg in this folder or above; run the command in a Scrapy project"
                )
            folder = Path(found).absolute().parent
            target = find_target(folder, options.target, options.project)
            name = version_name(folder, options.version or target.version)
            requirements = requirements_of(folder, options.requirements or target.requirements)
            packed = _packed(folder, Path(into), target)
        except CommandError as error:
            return failed("deploy", error)
        return with_platform(_deploying(folder, name, packed, requirements))(
            _for_target(settings, target, options.project), options
        )


def _packed(folder: Path, into: Path, target: Target) -> Packed:
    with status("packing the project ..."):
        packed = pack(folder, into)
    for note in [*target.notes, *packed.notes]:
        _say(note)
    return packed


def _for_target(settings: BaseSettings, target: Target, project: int | None) -> BaseSettings:
    """Return the settings with those of the target."""
    changed = settings.copy()
    if target.url:
        for name in _ADDRESSES:
            changed.set(name, target.url, "cmdline")
        changed.set("PLATFORM_API_KEY", target.key or _key(settings), "cmdline")
    number = project if project is not None else target.project
    if number is not None:
        changed.set("PLATFORM_PROJECT", number, "cmdline")
    return changed


def _key(settings: BaseSettings) -> str | None:
    found = names.PLATFORM_API_KEY.read(settings) or os.environ.get("SHUB_APIKEY")
    return str(found) if found else None


def _deploying(folder: Path, name: str, packed: Packed, requirements: str) -> Callable[[View], Awaitable[None]]:
    async def deploy(view: View) -> None:
        version = await _upload(view, name, packed, requirements)
        version = await _checked(view, version)
        if version.state is not VersionState.READY:
            sys.stderr.write(printable(version.message, newlines=True) + "\n")
            raise CommandError(f"version {name} failed its check, see above; the current version is unchanged")
        note_deployed(folder, version)
        await view.show(version.spiders or [], SPIDERS)
        state = "current" if version.current else "ready, and another version is current"
        number = len(version.spiders or [])
        spiders = "1 spider or script" if number == 1 else f"{number} spiders and scripts"
        _say(f"version {name} of project {view.project} is {state}: {spiders}")
        if version.message:
            _say(f"Warning: {version.message}")

    return deploy


async def _upload(view: View, name: str, packed: Packed, requirements: str) -> Version:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"uploading version {name}", total=packed.path.stat().st_size)
        return await view.client.versions.deploy(
            view.project,
            name,
            packed.path,
            settings=packed.settings,
            requirements=requirements,
            on_sent=lambda sent, total: progress.update(bar, completed=sent, total=total),
        )


async def _checked(view: View, version: Version) -> Version:
    """Return the version after its check, whose messages are shown meanwhile."""
    message = ""
    with status("") as show:
        async with timeout_after(_CHECK_SECONDS) as limit:
            while version.state is VersionState.UPLOADED:
                if version.message != message:
                    message = version.message
                    limit.reschedule(asyncio.get_running_loop().time() + _CHECK_SECONDS)
                    show(one_line(message))
                await asyncio.sleep(_POLL_SECONDS)
                version = await view.client.versions.get(view.project, version.version, version.deploy_id)
    return version


def _argument(argument: dict[str, Any]) -> str:
    annotation = f": {argument['annotation']}" if argument.get("annotation") else ""
    default = "" if argument.get("required") else f" = {argument.get('default')}"
    return printable(f"{argument['name']}{annotation}{default}")


def _say(message: str) -> None:
    sys.stderr.write(f"scrapy platform deploy: {one_line(message)}\n")


# ── deployed versions ──

_VERSIONS: Final = (
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
        await view.show(records, _VERSIONS, f"versions of project {view.project}: {len(found)}; * is the current one")
    elif name is None:
        raise CommandError(f"{action} needs a version, as in `scrapy platform versions {action} 1.0`")
    elif action == "show":
        shown = await versions.get(view.project, name)
        await view.show(shown.spiders or [], SPIDERS)
        why = f": {shown.message}" if shown.message else ""
        await view.output.note(f"version {name} of project {view.project} is {shown.state.value}{why}")
    elif action == "use":
        await versions.make_current(view.project, name)
        await view.output.note(f"version {name} of project {view.project} is current")
    else:
        await confirm(view, f"Delete version {name} of project {view.project}?")
        await versions.delete(view.project, name)
        await view.output.note(f"version {name} of project {view.project} is deleted")


SUBCOMMANDS: Final = (
    Subcommand(
        name="deploy",
        examples=(
            ("scrapy platform deploy", "the project of this folder, to the platform of its settings"),
            ("scrapy platform deploy production --version 1.4", "to a target of scrapy.cfg or scrapinghub.yml"),
            ("scrapy platform deploy 7", "to project 7 at the URL of the default target"),
        ),
        arguments=(
            argument(
                "target",
                nargs="?",
                metavar="TARGET",
                help="a target of scrapy.cfg or scrapinghub.yml, or the number of a project (default: their default "
                "target, else PLATFORM_URL and PLATFORM_PROJECT)",
            ),
            argument(
                "--version",
                metavar="V",
                help="name of the version (default: auto, the output of git describe, else the time)",
            ),
            argument(
                "--project",
                type=project_number,
                metavar="N",
                help="number of the project (default: that of the target)",
            ),
            argument(
                "--requirements",
                metavar="FILE",
                help="requirements file (default: that of the target, else requirements.txt)",
            ),
            output_options(),
        ),
        run=_run,
    ),
    platform_command(
        "versions",
        _act,
        (
            ("scrapy platform versions", "the deployed versions, the newest first"),
            ("scrapy platform versions show 1.4", "the spiders of a version and their arguments"),
            ("scrapy platform versions use 1.3", "make 1.3 the current version, which new jobs run"),
            ("scrapy platform versions delete 1.2", "delete a version that no job needs, after confirmation"),
        ),
        argument(
            "action",
            nargs="?",
            choices=("list", "show", "use", "delete"),
            default="list",
            help="action (default: list); show: the spiders of a version; use: make it the current one",
        ),
        argument("version", nargs="?", metavar="V", help="name of the version (not for list)"),
        YES,
    ),
)
