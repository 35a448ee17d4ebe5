"""``scrapy platform serve`` and ``worker``, which run the server's code in a project."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.subcommand import Subcommand, failed, need_server
from scrapy_ext.crawl.session.project import data_directory, project_folder
from scrapy_ext.server.config.command_line import add_options, config_from
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.config.option import Role
from scrapy_ext.server.launch import start
from scrapy_ext.settings import SettingError


def _subcommand(name: str, role: Role, examples: Sequence[tuple[str, str]]) -> Subcommand:
    def add(parser: argparse.ArgumentParser) -> None:
        need_server(parser)
        add_options(parser, role)

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        try:
            given = names.of_server(settings)
            if role is Role.SERVER and options.data is options.database is None and not given["SERVER_DATABASE"]:
                options.data = data_directory(settings)
            config = config_from(options, names.variables(), given, role)
        except (ConfigError, SettingError) as error:
            return failed(name, error)
        if role is Role.SERVER and config.local_project is None:
            config = msgspec.structs.replace(config, local_project=project_folder())
        return start(config)

    return Subcommand(name, examples, (add,), run)


SUBCOMMANDS: Final = (
    _subcommand(
        "serve",
        Role.SERVER,
        (
            ("scrapy platform serve", "in a project: serve the data of its crawls, until Ctrl-C"),
            ("scrapy platform serve --port 8700 --data DIR", "anywhere: serve a data directory"),
            ("scrapy platform serve --database postgresql://USER@HOST/DATABASE", "serve a PostgreSQL database"),
        ),
    ),
    _subcommand(
        "worker",
        Role.WORKER,
        (
            ("scrapy platform worker --database postgresql://USER@HOST/DATABASE", "run jobs until Ctrl-C"),
            ("scrapy platform worker --units 4 --tags gpu,eu", "4 units, also for jobs that need these tags"),
        ),
    ),
)
