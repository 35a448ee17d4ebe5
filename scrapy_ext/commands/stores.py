"""Choice and opening of a store, for the commands that work on a whole store."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.subcommand import need_server
from scrapy_ext.crawl.session.project import data_directory
from scrapy_ext.settings import SettingError

if TYPE_CHECKING:
    from scrapy_ext.server.store.engine.address import DatabaseUrl
    from scrapy_ext.server.store.engine.interface import Engine

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
#: Settings that name a remote platform.
_REMOTE: Final = (names.PLATFORM_URL, names.PLATFORM_APP_URL, names.PLATFORM_STORAGE_URL)
#: Probable misspellings of the two names, which would otherwise be new directories.
_MISSPELT: Final = ("postgres", "psql", "pg", "sqlite3")


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``, ``--database`` and ``--local``."""
    need_server(parser)
    # Only these commands need the server's code.
    from scrapy_ext.server.config.command_line import add_options
    from scrapy_ext.server.config.option import Role

    add_options(parser, Role.STORE)
    parser.add_argument(
        "--local", action="store_true", help="use the project's own store even if PLATFORM_URL names a remote platform"
    )


def store_of_options(options: argparse.Namespace) -> Path | DatabaseUrl | None:
    """Return the store that the options name; None for the project's."""
    named: DatabaseUrl | None = options.database
    return named if options.data is None else Path(options.data)


def chosen_store(settings: BaseSettings, options: argparse.Namespace) -> Path | DatabaseUrl:
    """Return the store that the options name, else the project's.

    Raises :class:`SettingError` when the project uses a remote platform, whose store the command cannot open.
    """
    if (named := store_of_options(options)) is not None:
        return named
    database: str | None = names.SERVER_DATABASE.read(settings)
    own = _url(database) if database else data_directory(settings)
    for setting in _REMOTE if not options.local else ():
        if remote := setting.read(settings):
            raise SettingError(
                setting.name,
                f"is set, and `scrapy platform {options.command}` is about a store on this machine, not about {remote}",
                f"Run it where that platform runs, with its --data or --database, or add --local for {own}.",
            )
    return own


def named_store(settings: BaseSettings, name: str) -> Path | DatabaseUrl:
    """Return the store of a name.

    ``sqlite`` is the project's data directory, ``postgresql`` the database of SERVER_DATABASE; any other name is a URL
    or a directory.
    """
    if name == SQLITE:
        return data_directory(settings)
    if name == POSTGRESQL:
        database = names.SERVER_DATABASE.read(settings)
        if not database:
            raise SettingError("SERVER_DATABASE", "is not set", "Set it, or give the URL of the database instead.")
        return _url(database)
    if name in _MISSPELT and not Path(name).is_dir():
        raise SettingError(name, "is neither sqlite nor postgresql", f"Write one of them, or ./{name} for a directory.")
    return _url(name) if "://" in name else Path(name)


def _url(text: str) -> DatabaseUrl:
    from scrapy_ext.server.config.command_line import DATABASE_PASSWORD
    from scrapy_ext.server.config.secret_files import SecretFileError, secret_in
    from scrapy_ext.server.store.engine.address import DatabaseUrl

    try:
        password = secret_in(names.variables(), DATABASE_PASSWORD)
    except SecretFileError as error:
        raise SettingError(error.name, error.rule, error.remedy) from None
    return DatabaseUrl(text).with_password(password) if password else DatabaseUrl(text)


@contextlib.asynccontextmanager
async def opened(where: Path | DatabaseUrl, *, must_exist: bool) -> AsyncIterator[Engine]:
    """Open a store, migrated to the newest version; raises ``StoreError``."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.engine.opening import open_engine
    from scrapy_ext.server.store.schema import is_made, migrate
    from scrapy_ext.server.store.store import now_ms

    if must_exist and isinstance(where, Path):
        check_exists(where)
    engine = await open_engine(where)
    try:
        if must_exist and not isinstance(where, Path) and not await engine.read(is_made):
            raise StoreError(f"There is no store in {where}. Name another database, or a directory with --data.")
        await engine.write(migrate, now_ms())
        yield engine
    finally:
        await engine.close()


def check_exists(data: Path) -> None:
    """Raise ``StoreError`` for a directory without a store."""
    from scrapy_ext.server.store import StoreError
    from scrapy_ext.server.store.engine.opening import FILE

    if not (data / FILE).exists():
        raise StoreError(f"There is no store in {data}. Name its directory, or a database.")
