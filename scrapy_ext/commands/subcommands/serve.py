"""``scrapy platform serve``, and what it shares with ``worker``: both run the server's code in a project."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Final

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.subcommand import FAILED, Subcommand, failure, need_server
from scrapy_ext.crawl.session.project import data_directory, project_folder
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.config.option import Role
from scrapy_ext.server.config.options import add_options, config_from
from scrapy_ext.server.starting import start


def options_of(role: Role) -> Callable[[argparse.ArgumentParser], None]:
    """What adds the options of a role to a parser."""

    def add(parser: argparse.ArgumentParser) -> None:
        need_server(parser)
        add_options(parser, role)

    return add


def run_as(role: Role) -> Callable[[BaseSettings, argparse.Namespace], int]:
    """The run of a role with options, settings of the project and the environment."""

    def run(settings: BaseSettings, options: argparse.Namespace) -> int:
        given = names.of_server(settings)
        if role is Role.SERVER and options.data is options.database is None and not given["SERVER_DATABASE"]:
            options.data = data_directory(settings)
        try:
            config = config_from(options, os.environ, given, role)
        except ConfigError as error:
            sys.stderr.write(failure(options.command, error))
            return FAILED
        if role is Role.SERVER and config.local_project is None:
            config = msgspec.structs.replace(config, local_project=project_folder())
        return start(config)

    return run


SUBCOMMAND: Final = Subcommand(
    name="serve",
    examples=(
        ("scrapy platform serve", "in a project: serve what its crawls have stored, until Ctrl-C"),
        ("scrapy platform serve --port 8700 --data DIR", "anywhere: serve a data directory"),
        ("scrapy platform serve --database postgresql://USER@HOST/DATABASE", "serve a PostgreSQL database"),
    ),
    add_options=options_of(Role.SERVER),
    run=run_as(Role.SERVER),
)
