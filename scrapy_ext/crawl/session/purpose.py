"""Purpose of a crawler: a crawl, or a command of Scrapy that fetches a few pages for whoever typed it.

``scrapy bench``, ``check``, ``fetch``, ``parse`` and ``view`` replace the spider's ``start()`` by one of their own,
which tells them from ``crawl`` and ``runspider`` (scrapy/commands in Scrapy 2.13 to 2.19). ``scrapy shell`` crawls
nothing: it applies the settings and downloads by itself.
"""

from __future__ import annotations

from typing import Final

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES

_COMMANDS: Final = "scrapy.commands"


def command_of(crawler: Crawler) -> str | None:
    """Return the name of the command that the crawler works for, None for a crawl. ``scrapy view`` counts as ``fetch``,
    on which it is built."""
    package, _, name = str(getattr(crawler.spidercls.start, "__module__", "")).rpartition(".")
    if package == _COMMANDS:
        return name
    return "shell" if not crawler.crawling and _has_settings_of_shell(crawler) else None


def _has_settings_of_shell(crawler: Crawler) -> bool:
    # Only asked of a crawler that does not crawl; a crawl need not load the shell.
    from scrapy.commands.shell import Command

    settings, lowest = crawler.settings, SETTINGS_PRIORITIES["command"]
    return all((settings.getpriority(name) or 0) >= lowest for name in Command.default_settings)
