"""``scrapy platform deploy``."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg

from scrapy_ext.api.platform.keys import number_of
from scrapy_ext.api.platform.versions import SpiderInfo, Version, VersionState
from scrapy_ext.api.violations import ContractError
from scrapy_ext.commands.deploying.packing import Packed, pack, requirements_of
from scrapy_ext.commands.deploying.targets import Target, find_target, version_name
from scrapy_ext.commands.subcommand import (
    FAILED,
    CommandError,
    Subcommand,
    View,
    add_output_options,
    failure,
    look,
)
from scrapy_ext.commands.terminal.output import Column, one_line
from scrapy_ext.commands.terminal.text import printable

_POLL: Final = 0.5
#: Seconds until the check of a version is given up, by this command.
_PATIENCE: Final = 1200.0
_ADDRESSES: Final = ("PLATFORM_URL", "PLATFORM_APP_URL", "PLATFORM_STORAGE_URL", "PLATFORM_JOBQ_URL")

COLUMNS: Final = (
    Column.field("name", "spider"),
    Column("arguments", lambda spider: ", ".join(map(_argument, spider.get("arguments") or ()))),
    Column.field("summary"),
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="a target of scrapy.cfg or scrapinghub.yml, or the number of a project (default: their default target, "
        "else what PLATFORM_URL and PLATFORM_PROJECT say)",
    )
    parser.add_argument(
        "--version", metavar="V", help="name of the version; auto, the default, is git describe or the time"
    )
    parser.add_argument("--project", type=_project, metavar="N", help="the project (default: that of the target)")
    parser.add_argument(
        "--requirements", metavar="FILE", help="requirements file (default: that of the target, else requirements.txt)"
    )
    add_output_options(parser)


def _project(text: str) -> int:
    try:
        return number_of(text, "project")
    except ContractError as error:
        raise argparse.ArgumentTypeError(error.violations[0].rule) from None


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="deploy-") as into:
        try:
            found = closest_scrapy_cfg()
            if not found:
                raise CommandError("there is no scrapy.cfg here or above; go to the folder of a Scrapy project")
            folder = Path(found).absolute().parent
            target = find_target(folder, options.target, options.project)
            name = version_name(folder, options.version or target.version)
            requirements = requirements_of(folder, options.requirements or target.requirements)
            packed = _packed(folder, Path(into), target)
        except CommandError as error:
            sys.stderr.write(failure("deploy", error))
            return FAILED
        return look(_deploying(name, packed, requirements))(_aimed(settings, target, options.project), options)


def _packed(folder: Path, into: Path, target: Target) -> Packed:
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("packing the project ..."):
            packed = pack(folder, into)
    else:
        packed = pack(folder, into)
    for note in [*target.notes, *packed.notes]:
        _say(note)
    return packed


def _aimed(settings: BaseSettings, target: Target, project: int | None) -> BaseSettings:
    """The settings with what the target says in their place."""
    aimed = settings.copy()
    if target.url:
        for name in _ADDRESSES:
            aimed.set(name, target.url, "cmdline")
        aimed.set("PLATFORM_API_KEY", target.key or _key(settings), "cmdline")
    number = project if project is not None else target.project
    if number is not None:
        aimed.set("PLATFORM_PROJECT", number, "cmdline")
    return aimed


def _key(settings: BaseSettings) -> str | None:
    found = settings.get("PLATFORM_API_KEY") or os.environ.get("PLATFORM_API_KEY") or os.environ.get("SHUB_APIKEY")
    return str(found) if found else None


def _deploying(name: str, packed: Packed, requirements: str) -> Callable[[View], Awaitable[None]]:
    async def deploy(view: View) -> None:
        version = await _upload(view, name, packed, requirements)
        version = await _checked(view, version)
        if version.state is not VersionState.READY:
            sys.stderr.write(printable(version.message, newlines=True) + "\n")
            raise CommandError(f"version {name} failed its check, see above; the version before stays the current one")
        await view.output.records(_spiders(version.spiders or []), COLUMNS)
        state = "current" if version.current else "ready, and another one is current"
        number = len(version.spiders or [])
        what = "1 spider or script" if number == 1 else f"{number} spiders and scripts"
        _say(f"version {name} of project {view.project} is {state}: {what}")

    return deploy


async def _upload(view: View, name: str, packed: Packed, requirements: str) -> Version:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
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
    """The version once its check has ended; what is done meanwhile is shown."""
    console, told = Console(stderr=True), ""
    with console.status("") if console.is_terminal else _Nothing() as status:
        async with asyncio.timeout(_PATIENCE) as limit:
            while version.state is VersionState.UPLOADED:
                if version.message != told:
                    told = version.message
                    limit.reschedule(asyncio.get_running_loop().time() + _PATIENCE)
                    if console.is_terminal:
                        status.update(one_line(told)[: max(console.width - 10, 10)])
                await asyncio.sleep(_POLL)
                version = await view.client.versions.get(view.project, version.version, version.deploy_id)
    return version


class _Nothing:
    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None


async def _spiders(spiders: list[SpiderInfo]) -> AsyncIterator[dict[str, Any]]:
    for spider in spiders:
        yield msgspec.to_builtins(spider)


def _argument(argument: dict[str, Any]) -> str:
    annotation = f": {argument['annotation']}" if argument.get("annotation") else ""
    default = "" if argument.get("required") else f" = {argument.get('default')}"
    return printable(f"{argument['name']}{annotation}{default}")


def _say(message: str) -> None:
    sys.stderr.write(f"scrapy platform deploy: {one_line(message)}\n")


SUBCOMMAND: Final = Subcommand(
    name="deploy",
    examples=(
        ("scrapy platform deploy", "the project of this folder to the platform of its settings"),
        ("scrapy platform deploy production --version 1.4", "to a target of scrapy.cfg or scrapinghub.yml"),
        ("scrapy platform deploy 7", "to project 7 at the default target's address"),
    ),
    add_options=_add_options,
    run=_run,
)
