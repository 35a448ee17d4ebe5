"""``scrapy platform worker``."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.commands.subcommand import FAILED, Subcommand, add_project_settings, failure, need_server


def _add_options(parser: argparse.ArgumentParser) -> None:
    need_server(parser)
    # Only a process that runs jobs needs the server's code.
    from scrapy_ext.server.config.worker_options import add_worker_options

    add_worker_options(parser)


def _work(settings: BaseSettings, options: argparse.Namespace) -> int:
    from scrapy_ext.server.config.config import ConfigError
    from scrapy_ext.server.config.worker_options import worker_config_from
    from scrapy_ext.server.starting import start

    database = names.SERVER_DATABASE.read(settings)
    add_project_settings(options, settings)
    try:
        config = worker_config_from(options, {**os.environ, "SERVER_DATABASE": database or ""})
    except ConfigError as error:
        sys.stderr.write(failure("worker", error))
        return FAILED
    return start(config)


SUBCOMMAND: Final = Subcommand(
    name="worker",
    examples=(
        ("scrapy platform worker --database postgresql://USER@HOST/DATABASE", "run jobs until Ctrl-C"),
        ("scrapy platform worker --units 4 --tags gpu,eu", "with SERVER_DATABASE: four at once, also those that ask"),
    ),
    add_options=_add_options,
    run=_work,
)
