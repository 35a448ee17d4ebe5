"""``scrapy platform import``: copy projects from another platform."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import Any, Final
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.platform.imports import MAX_RESERVED, RESERVED
from scrapy_ext.client.platform import PlatformClient, PlatformUrls
from scrapy_ext.client.platform.errors import Forbidden, NotFound, PlatformError, Unauthorized
from scrapy_ext.commands.importing.context import ABSENT, PARTS, ImportOptions, Pace, ProjectImport, Row
from scrapy_ext.commands.importing.display import copied_text, display
from scrapy_ext.commands.importing.project import import_project
from scrapy_ext.commands.options import argument, output_options, project_number, whole_number
from scrapy_ext.commands.output import Column
from scrapy_ext.commands.subcommand import FAILED, OK, CommandError, Subcommand, View, with_platform
from scrapy_ext.commands.text import shown
from scrapy_ext.compatibility.python import datetime_of_iso
from scrapy_ext.settings import SettingError

#: Attempts at a call: with the backoff of the client, about two minutes.
_ATTEMPTS: Final = 10

Record = Mapping[str, Any]


def _verified(record: Record) -> str:
    return {True: "yes", False: "no", None: ""}[record["verified"]]


def _number(title: str, name: str) -> Column:
    return Column(title, lambda record: shown(record[name] or None), right=True)


def _project(record: Record) -> str:
    old, new = record["project"], record["target"]
    return str(old) if old == new else f"{old} into {new}"


_PROJECT: Final = Column("project", _project, right=True)
#: The tables of a terminal: parts in numbers, those of a dry run, and what is not copied.
_COPIED: Final = (
    _PROJECT,
    Column.field("part", "what"),
    _number("copied before", "copied_before"),
    _number("copied now", "copied"),
    _number("bytes", "bytes"),
    Column("verified", _verified),
)
_WOULD_COPY: Final = (
    _PROJECT,
    Column.field("part", "what"),
    _number("copied before", "copied_before"),
    _number("would be copied", "would_copy"),
    _number("bytes", "bytes"),
)
_NOT_COPIED: Final = (
    _PROJECT,
    Column.field("part", "not copied"),
    _number("number", "not_copied"),
    Column("reason", lambda record: shown(record["reason"]), wrap=True),
)


async def _import(view: View) -> int:
    options = view.options
    source = PlatformClient(_urls(options), options.from_key, attempts=_ATTEMPTS, pace=Pace(options.rate))
    imports: list[ProjectImport] = []
    async with source:
        try:
            await _all(view, source, imports)
        except asyncio.CancelledError:
            done = "; ".join(f"project {each.old}: {copied_text([*each.rows.values()])}" for each in imports)
            view.say(f"interrupted; copied so far: {done or 'nothing'}. Repeat the command to continue")
            raise
        except NotFound as error:
            if error.path.startswith("/imports"):
                raise CommandError("the target cannot import: upgrade scrapy-ext on its server") from None
            await _report(view, imports)
            raise
        except PlatformError:
            await _report(view, imports)
            raise
    if await _report(view, imports):
        view.say("scrapy platform import: incomplete; the report has the reasons")
        return FAILED
    return OK


async def _all(view: View, source: PlatformClient, imports: list[ProjectImport]) -> None:
    """Copy the projects one after the other; ``imports`` gets each of them before it begins."""
    options = view.options
    projects = options.projects or [(number, number) for number in await _all_projects(source)]
    async with display() as progress:
        for pair in projects:
            await _check_source(source, pair[0])
            imports.append(ProjectImport(source, view.client, pair, _chosen(options), progress))
            await import_project(imports[-1])


async def _report(view: View, imports: Sequence[ProjectImport]) -> bool:
    """Write the report; return true if something has failed."""
    parts = [row for each in imports for row in each.rows.values()]
    notes = [row for each in imports for row in each.notes]
    if view.output.form != "table":
        await view.show(_record(row) for row in (*parts, *notes))
    else:
        if parts:
            await view.show(map(_record, parts), _WOULD_COPY if view.options.dry_run else _COPIED)
        if notes:
            await view.output.note("")
            await view.show(map(_record, notes), _NOT_COPIED)
    return any(row.failed or row.verified is False for row in (*parts, *notes))


def _record(row: Row) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(row).items() if name != "failed"}


def _chosen(options: argparse.Namespace) -> ImportOptions:
    return ImportOptions(
        frozenset(options.only or PARTS), options.since, options.reserve, options.resume_periodic, options.dry_run
    )


def _urls(options: argparse.Namespace) -> PlatformUrls:
    storage = options.from_storage or options.source
    try:
        return PlatformUrls(options.source, storage, options.from_jobq or storage)
    except ValueError as error:
        reason = str(error).partition(" ")[2]
        raise CommandError(f"--from, the address of the source, {reason}") from None


async def _check_source(source: PlatformClient, project: int) -> None:
    """Raise :class:`CommandError` if the source cannot be read with this key."""
    try:
        await source.jobq.count(project)
    except (Unauthorized, Forbidden) as error:
        place = urlsplit(source.urls.jobq).netloc
        raise CommandError(
            f"{place} does not open project {project} to the key of the source: {error.message}"
        ) from None
    except PlatformError as error:
        raise CommandError(f"the source cannot be read: {error.message}. Check --from") from None


async def _all_projects(source: PlatformClient) -> list[int]:
    try:
        return await source.projects.numbers()
    except ABSENT as error:
        raise CommandError(
            f"the source does not list its projects ({error.message}); name them with --project"
        ) from None


# ── options ──


def _projects(text: str) -> list[tuple[int, int]]:
    """Parse ``1,2`` or ``1=7``: numbers in the source and, if they differ, in the target."""
    found = []
    for part in text.split(","):
        old, equals, new = part.partition("=")
        number = project_number(old)
        found.append((number, project_number(new) if equals else number))
    if len({new for _, new in found}) < len(found):
        raise argparse.ArgumentTypeError(
            "has a project of the target twice; name another one for each, such as 1=7,2=8"
        )
    return found


def _parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if part not in PARTS:
            raise argparse.ArgumentTypeError(f"must be some of {', '.join(PARTS)}, got {part!r}")
    of_jobs = {"items", "requests", "logs", "samples", "comments"}
    return [*parts, *(["jobs"] if of_jobs & {*parts} else [])]


def _time(text: str) -> int:
    """Parse a date or a time, in UTC unless it has a zone, as milliseconds."""
    try:
        when = datetime_of_iso(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a date such as 2026-01-31, got {text!r}") from None
    return max(int((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp() * 1000), 0)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.01 <= rate <= 10_000:
        raise argparse.ArgumentTypeError(f"must be a number of requests per second, 0.01 to 10000, got {text!r}")
    return rate


def _reserve(text: str) -> int:
    if (number := whole_number(text)) > MAX_RESERVED:
        raise argparse.ArgumentTypeError(f"must be at most {MAX_RESERVED}")
    return number


def _add_options(parser: argparse.ArgumentParser) -> None:
    output_options()(parser)


_run_import: Final = with_platform(_import)


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    """Read the key of the source, which is not shown in lists of processes when it comes from the environment."""
    from scrapy_ext.commands.subcommand import failed

    options.project = None
    try:
        options.from_key = options.from_key or names.PLATFORM_IMPORT_KEY.read(settings)
        if not options.from_key:
            remedy = "Set the environment variable of this name to the key of the source."
            raise SettingError(names.PLATFORM_IMPORT_KEY.name, "is not set", remedy)
    except SettingError as error:
        return failed(options.command, error)
    return _run_import(settings, options)


SUBCOMMANDS: Final = (
    Subcommand(
        name="import",
        examples=(
            ("scrapy platform import --from https://crawls.example.com", "all projects that the key may read"),
            ("scrapy platform import --from URL --project 1,2=7", "project 1, and project 2 as project 7"),
            ("scrapy platform import --from URL --project 1 --since 2026-01-31", "jobs that finished since then"),
            ("scrapy platform import --from URL --only collections,periodic", "no jobs"),
            ("scrapy platform import --from URL --dry-run", "what it would copy"),
        ),
        arguments=(
            argument("--from", dest="source", required=True, metavar="URL", help="address of the source"),
            argument(
                "--from-storage", metavar="URL", help="address of its storage API, if another (default: that of --from)"
            ),
            argument(
                "--from-jobq", metavar="URL", help="address of its job queue, if another (default: that of the storage)"
            ),
            argument(
                "--from-key",
                metavar="KEY",
                help="its API key; other users of this machine can see it, so set PLATFORM_IMPORT_KEY instead",
            ),
            argument(
                "--project",
                dest="projects",
                type=_projects,
                metavar="N[=M],…",
                help="projects to copy; N=M copies project N into project M (default: all that the key may read)",
            ),
            argument("--only", type=_parts, metavar="PART,…", help=f"copy only these: {', '.join(PARTS)}"),
            argument(
                "--since", type=_time, metavar="DATE", help="copy only jobs that finished at this time (UTC) or later"
            ),
            argument(
                "--rate",
                type=_rate,
                default=10.0,
                metavar="N",
                help="at most N requests per second to the source (default: 10)",
            ),
            argument(
                "--reserve",
                type=_reserve,
                default=RESERVED,
                metavar="N",
                help=f"job numbers of each spider that stay free for further jobs of the source (default: {RESERVED})",
            ),
            argument(
                "--resume-periodic",
                action="store_true",
                help="periodic jobs run in the target as in the source (default: they are paused)",
            ),
            argument("--dry-run", action="store_true", help="show what would be copied, and copy nothing"),
            _add_options,
        ),
        run=_run,
    ),
)
