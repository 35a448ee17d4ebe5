"""``scrapy platform proxies``: the success of a server's proxies, at all sites or at each."""

from __future__ import annotations

from typing import Final

from scrapy_ext.commands.options import argument, output_options, positive_number
from scrapy_ext.commands.subcommand import Subcommand, View, with_platform
from scrapy_ext.commands.terminal.output import Column, each_of

_COUNT: Final = 100
_COLUMNS: Final = (
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


async def _show(view: View) -> None:
    options = view.options
    found = await view.client.proxies.list(site=options.site, count=options.count or _COUNT)
    by_site = options.sites or options.site is not None
    await view.output.records(each_of(found.sites if by_site else found.proxies), _COLUMNS)
    configured = sum(bool(each.address) for each in found.proxies)
    await view.output.note(f"proxies: {configured}. Numbers of requests since the server's start; recent success")


SUBCOMMANDS: Final = (
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
            argument("--count", type=positive_number, metavar="N", help=f"N lines at most (default: {_COUNT})"),
            output_options(),
        ),
        run=with_platform(_show),
    ),
)
