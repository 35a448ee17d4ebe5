"""The options of a worker, and the configuration that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from scrapy_ext.server.config import option_types as arguments
from scrapy_ext.server.config.config import LOG_FORMATS, ConfigError, ServerConfig
from scrapy_ext.server.config.options import (
    DEFAULT_DATA,
    add_extraction_options,
    add_runner_options,
    extraction_from,
    runner_from,
    store_from,
)
from scrapy_ext.server.store.engine.address import DatabaseUrl


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a worker to a parser."""
    parser.add_argument(
        "--database",
        type=arguments.database_url,
        metavar="URL",
        help="postgresql://USER@HOST:PORT/DATABASE, that of a server; with a password, better in the environment "
        "variable SERVER_DATABASE, which does not show in process lists",
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="where deployed code is kept (default: data)")
    parser.add_argument(
        "--url",
        type=arguments.server_url,
        help="let jobs ask the server at this address (http://HOST:PORT) instead of this worker for storage and "
        "extraction",
    )
    add_runner_options(parser)
    add_extraction_options(parser)
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input is closed")
    parser.add_argument(
        "--log-format", choices=LOG_FORMATS, default="text", help="json: one object a line (default: %(default)s)"
    )


def worker_config_from(options: argparse.Namespace, environ: Mapping[str, str]) -> ServerConfig:
    """The configuration of a worker, as :func:`config_from`."""
    database = store_from(argparse.Namespace(data=None, database=options.database), environ)
    if not isinstance(database, DatabaseUrl):
        raise ConfigError(
            "a worker needs the database of a server: --database postgresql://USER@HOST:PORT/DATABASE, or the "
            "environment variable SERVER_DATABASE"
        )
    return ServerConfig(
        worker=True,
        host="127.0.0.1",
        port=0,
        data=options.data,
        database=database,
        door=options.url,
        exit_with_stdin=options.exit_with_stdin,
        log_format=options.log_format,
        **extraction_from(options, environ),
        **runner_from(options),
    )
