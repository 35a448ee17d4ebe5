"""Project and command that a crawler belongs to.

``scrapy bench``, ``check``, ``fetch``, ``parse`` and ``view`` replace the spider's ``start()`` by one of their own, by
which they differ from ``crawl`` and ``runspider`` (scrapy/commands in Scrapy 2.13 to 2.19). ``scrapy shell`` does not
crawl: it applies the settings and downloads by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg
from scrapy.utils.project import data_path

from scrapy_ext import settings as names

_COMMANDS: Final = "scrapy.commands"


def command_of(crawler: Crawler) -> str | None:
    """Return the name of the command that the crawler works for, None for a crawl. ``scrapy view`` counts as ``fetch``,
    on which it is built."""
    package, _, name = str(getattr(crawler.spidercls.start, "__module__", "")).rpartition(".")
    if package == _COMMANDS:
        return name
    return "shell" if not crawler.crawling and _has_settings_of_shell(crawler) else None


def _has_settings_of_shell(crawler: Crawler) -> bool:
    # Imported here, since a crawl need not load the shell.
    from scrapy.commands.shell import Command

    settings, lowest = crawler.settings, SETTINGS_PRIORITIES["command"]
    return all((settings.getpriority(name) or 0) >= lowest for name in Command.default_settings)


def data_directory(settings: BaseSettings) -> Path:
    return project_data(names.SERVER_DATA.read(settings))


def project_data(path: str | Path) -> Path:
    """Return a path in the project's data directory, ``.scrapy``; without ``scrapy.cfg``, in that of the current
    directory."""
    try:
        return Path(data_path(path)).absolute()
    except OSError as error:
        # The directory cannot be made. Whoever needs it says so; with remote services nobody does.
        return Path(error.filename or ".scrapy", path).absolute()
    except NotConfigured:  # The project is set by SCRAPY_SETTINGS_MODULE alone.
        return Path(".scrapy", path).absolute()


def project_folder() -> Path | None:
    """Return the directory of the Scrapy project around the current directory."""
    found = closest_scrapy_cfg()
    return Path(found).absolute().parent if found else None
