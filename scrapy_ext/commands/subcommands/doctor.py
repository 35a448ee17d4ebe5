"""``scrapy platform doctor``: checks of the installation, the services and this machine, each with its remedy."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.doctor import installation, machine, services
from scrapy_ext.commands.doctor.checking import Check, Finding, Status, findings, problem
from scrapy_ext.commands.options import argument, output_options
from scrapy_ext.commands.output import Column, StandardOutput, one_line, status
from scrapy_ext.commands.stores import store_of_options
from scrapy_ext.commands.subcommand import FAILED, INTERRUPTED, OK, Subcommand
from scrapy_ext.commands.text import counted
from scrapy_ext.crawl.session.embedded import EmbeddedServerError, check_installed
from scrapy_ext.crawl.session.project import data_directory
from scrapy_ext.server import launch
from scrapy_ext.server.config.command_line import add_options
from scrapy_ext.server.config.option import Role
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.server.store.engine.address import DatabaseUrl

_COLUMNS: Final = (
    Column.field("check"),
    Column.field("status"),
    Column("finding", lambda record: record["finding"], wrap=True),
    Column("remedy", lambda record: record["remedy"], wrap=True),
)


def _checks(settings: BaseSettings, options: argparse.Namespace) -> list[Check]:
    """Return the checks that fit: those of a server where one runs, or would run for a crawl."""
    given = options.data is not None or options.database is not None
    remote = services.found_in(settings)
    if remote.is_remote and not given:
        found = installation.checks(settings, server=False, wrong=remote.wrong)
        return [*found, *remote.checks, *machine.checks(None)[:1]]
    wrong, of_server = list(remote.wrong), []
    try:
        if launch.UNSUPPORTED:
            raise EmbeddedServerError(
                f"{launch.UNSUPPORTED}. Set EXTRACT_API_URL and PLATFORM_URL to use remote services."
            )
        check_installed()
        try:
            where = _store(settings, options)
        except SettingError as error:
            wrong.append(error)
            where = None
        of_server = _of_server(where, options.browser)
    except EmbeddedServerError as error:
        missing = _missing(error)
        of_server = [Check("server", lambda: _returned(missing))]
    return [*installation.checks(settings, server=True, wrong=wrong), *remote.checks, *of_server]


def _of_server(where: Path | DatabaseUrl | None, path: str | None) -> list[Check]:
    """Return the checks of a server's machine. ``where``: its data; None if that is not known."""
    # Only these checks need the server's libraries.
    from scrapy_ext.commands.doctor import browser, store

    of_data = [store.check(where)] if where is not None else []
    return [browser.check(path), *of_data, *machine.checks(where if isinstance(where, Path) else None)]


def _store(settings: BaseSettings, options: argparse.Namespace) -> Path | DatabaseUrl:
    from scrapy_ext.server.store.engine.address import DatabaseUrl
    from scrapy_ext.server.store.engine.errors import StoreError

    if (named := store_of_options(options)) is not None:
        return named
    database: str | None = names.SERVER_DATABASE.read(settings)
    try:
        return DatabaseUrl(str(database)) if database else data_directory(settings)
    except StoreError as error:
        raise SettingError("SERVER_DATABASE", "is not the URL of a database", str(error)) from None


def _missing(error: EmbeddedServerError) -> Finding:
    text, _, remedy = str(error).rstrip(".").rpartition(". " if ". " in str(error) else ": ")
    return problem("server", text, f"{remedy}.")


async def _returned(finding: Finding) -> list[Finding]:
    return [finding]


async def _show(settings: BaseSettings, options: argparse.Namespace) -> int:
    output = StandardOutput.of(options)
    counts: Counter[Status] = Counter()

    async def records() -> AsyncIterator[Mapping[str, Any]]:
        async for finding in findings(_checks(settings, options)):
            counts[finding.status] += 1
            yield {
                "check": finding.subject, "status": finding.status.value,
                "finding": one_line(finding.text), "remedy": one_line(finding.remedy),
            }  # fmt: skip

    with status("checking ...", quiet=output.form != "table"):
        shown = [record async for record in records()]

    async def each() -> AsyncIterator[Mapping[str, Any]]:
        for record in shown:
            yield record

    await output.records(each(), _COLUMNS)
    doubtful = (counted(counts[each], each.value) for each in (Status.WARNING, Status.PROBLEM))
    await output.note(", ".join([f"{counts[Status.OK]} ok", *doubtful]))
    return FAILED if counts[Status.PROBLEM] else OK


def _run(settings: BaseSettings, options: argparse.Namespace) -> int:
    try:
        return asyncio.run(_show(settings, options))
    except KeyboardInterrupt:
        return INTERRUPTED


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    add_options(parser, Role.STORE)


SUBCOMMANDS: Final = (
    Subcommand(
        name="doctor",
        examples=(
            ("scrapy platform doctor", "in a project: all that its crawls need, here and on remote services"),
            ("scrapy platform doctor --data DIR", "on the machine of a server; likewise --database URL"),
            ("scrapy platform doctor --json", "one line a finding, for programs"),
        ),
        arguments=(
            _add_server_options,
            argument("--browser", metavar="PATH", help="Chromium of the server (default: as serve finds it)"),
            output_options(),
        ),
        run=_run,
        details=(
            "The exit code is 1 if there is a problem; warnings do not count. Keys are checked with calls that store "
            "nothing and cost nothing, and are never shown."
        ),
    ),
)
