"""``scrapy platform serve``."""

from __future__ import annotations

import argparse
import os
from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.commands.subcommand import FAILED, Subcommand, failure
from scrapy_ext.embedded import EmbeddedServerError, check_installed, data_directory


def _add_options(parser: argparse.ArgumentParser) -> None:
    try:
        check_installed()
    except EmbeddedServerError as error:
        parser.exit(FAILED, failure("serve", error))
    # Only a serving process needs the server's code.
    from scrapy_ext.server.options import add_options

    add_options(parser)
    parser.set_defaults(data=None)


def _serve(settings: BaseSettings, options: argparse.Namespace) -> int:
    from scrapy_ext.server.options import config_from
    from scrapy_ext.server.serve import serve

    if options.data is None:
        options.data = data_directory(settings)
    return serve(config_from(options, os.environ))


SUBCOMMAND: Final = Subcommand(
    name="serve",
    examples=(
        ("scrapy platform serve", "in a project: serve what its crawls have stored, until Ctrl-C"),
        ("scrapy platform serve --port 8700 --data DIR", "anywhere: serve a data directory"),
    ),
    add_options=_add_options,
    run=_serve,
)
