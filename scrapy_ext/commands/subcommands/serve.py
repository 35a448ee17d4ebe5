"""``scrapy platform serve``."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.subcommand import FAILED, Subcommand, add_project_settings, failure, need_server
from scrapy_ext.crawl.session.embedded import data_directory, project_folder


def _add_options(parser: argparse.ArgumentParser) -> None:
    need_server(parser)
    # Only a serving process needs the server's code.
    from scrapy_ext.server.config.options import add_options

    add_options(parser)


def _serve(settings: BaseSettings, options: argparse.Namespace) -> int:
    from scrapy_ext.server.config.config import ConfigError
    from scrapy_ext.server.config.options import config_from
    from scrapy_ext.server.starting import start

    database = names.SERVER_DATABASE.read(settings)
    if options.data is None and options.database is None and not database:
        options.data = data_directory(settings)
    add_project_settings(options, settings)
    try:
        config = config_from(options, {**os.environ, "SERVER_DATABASE": database or ""})
        config = msgspec.structs.replace(
            config,
            local_project=config.local_project or project_folder(),
            local_project_id=options.local_project_id or names.PLATFORM_PROJECT.read(settings),
        )
    except ConfigError as error:
        sys.stderr.write(failure("serve", error))
        return FAILED
    return start(config)


SUBCOMMAND: Final = Subcommand(
    name="serve",
    examples=(
        ("scrapy platform serve", "in a project: serve what its crawls have stored, until Ctrl-C"),
        ("scrapy platform serve --port 8700 --data DIR", "anywhere: serve a data directory"),
        ("scrapy platform serve --database postgresql://USER@HOST/DATABASE", "serve a PostgreSQL database"),
    ),
    add_options=_add_options,
    run=_serve,
)
