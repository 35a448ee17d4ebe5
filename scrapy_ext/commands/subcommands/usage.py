"""``scrapy platform usage``, the use of a server's storage, and ``proxies``, the success of its proxies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from scrapy_ext.api.platform.usage import Part, Usage
from scrapy_ext.commands.options import argument, output_options, positive_number, project_number
from scrapy_ext.commands.output import Column, status
from scrapy_ext.commands.subcommand import Subcommand, View, with_platform
from scrapy_ext.commands.text import clock, counted, size

#: Seconds between two reads while the server counts.
_POLL: Final = 1.0
_COLUMNS: Final = (
    Column.field("by"),
    Column.field("name"),
    Column.field("jobs", right=True),
    Column.field("records", right=True),
    Column("stored", lambda row: size(row["bytes"]), right=True),
)


async def _show(view: View) -> None:
    with status("counting") as report:
        while (usage := await _read(view)).counted is None:
            report(f"counting: {size(usage.bytes)} so far")
            await asyncio.sleep(_POLL)
    await view.show([*_rows(usage)], _COLUMNS)
    whose = "all projects" if usage.project is None else f"project {usage.project}"
    await view.output.note(f"{whose}: {size(usage.bytes)} stored, counted {clock(usage.counted)} UTC")
    await view.output.note(
        f"deleted: {size(usage.deleted.waiting)} of {counted(usage.deleted.owners, 'removal')} still to be removed, "
        f"{size(usage.deleted.removed_bytes)} removed so far"
    )
    if usage.database is not None:
        free = "" if usage.database.free is None else f", {size(usage.database.free)} of it free for new data"
        await view.output.note(f"database: {size(usage.database.bytes)} on disk{free}")


async def _read(view: View) -> Usage:
    return await (view.client.usage.of_all() if view.options.all else view.client.usage.of_project(view.project))


def _rows(usage: Usage) -> Iterator[dict[str, Any]]:
    """Yield a row for each part, and for the deleted data and the database, which have other fields."""
    parts: list[tuple[str, list[Part]]] = [
        ("project", usage.projects),
        ("kind", usage.kinds),
        ("spider", usage.spiders),
        ("age", usage.ages),
    ]
    for by, each in parts:
        for part in each:
            yield {"by": by, "name": part.name, "jobs": part.jobs, "records": part.records, "bytes": part.bytes}
    deleted = usage.deleted
    yield {"by": "deleted", "name": "still to be removed", "jobs": 0, "records": 0, "bytes": deleted.waiting}
    yield {
        "by": "deleted",
        "name": "removed so far",
        "jobs": 0,
        "records": deleted.removed_rows,
        "bytes": deleted.removed_bytes,
    }
    if usage.database is not None:
        yield {"by": "database", "name": "on disk", "jobs": 0, "records": 0, "bytes": usage.database.bytes}
        if usage.database.free is not None:
            yield {"by": "database", "name": "free", "jobs": 0, "records": 0, "bytes": usage.database.free}


# ── proxies ──

_PAIRS: Final = 100
_PROXIES: Final = (
    Column.field("proxy"),
    Column("site", lambda row: row["site"] or "all"),
    Column("by", lambda row: row["by"] or "all"),
    Column.field("passed", right=True),
    Column.field("banned", right=True),
    Column.field("failed", right=True),
    Column("success", lambda row: f"{row['success']:.0%}", right=True),
    Column("cool-down", lambda row: f"{row['cooling']} s" if row["cooling"] else "", right=True),
    Column.field("address"),
)


async def _show_proxies(view: View) -> None:
    options = view.options
    found = await view.client.proxies.list(site=options.site, count=options.count or _PAIRS)
    by_site = options.sites or options.site is not None
    await view.show(found.sites if by_site else found.proxies, _PROXIES)
    configured = sum(bool(each.address) for each in found.proxies)
    await view.output.note(f"proxies: {configured}. Numbers of requests since the server's start; recent success")


SUBCOMMANDS: Final = (
    Subcommand(
        name="usage",
        examples=(
            ("scrapy platform usage", "bytes of the project by kind, spider and age"),
            ("scrapy platform usage 12", "those of another project"),
            ("scrapy platform usage --all", "of all projects, with a key of all of them"),
        ),
        arguments=(
            argument("project", nargs="?", type=project_number, metavar="PROJECT", help="default: PLATFORM_PROJECT"),
            argument("--all", action="store_true", help="all projects of the server"),
            output_options(),
        ),
        run=with_platform(_show),
    ),
    Subcommand(
        name="proxies",
        examples=(
            ("scrapy platform proxies", "each proxy, at all sites together"),
            ("scrapy platform proxies --sites", "each proxy at each site, the last requested first"),
            ("scrapy platform proxies --site shop.example", "at one site"),
        ),
        arguments=(
            argument("--sites", action="store_true", help="a line for each proxy at each site"),
            argument("--site", metavar="HOST", help="only this host, or HOST:PORT"),
            argument("--count", type=positive_number, metavar="N", help=f"N lines at most (default: {_PAIRS})"),
            output_options(),
        ),
        run=with_platform(_show_proxies),
    ),
)
