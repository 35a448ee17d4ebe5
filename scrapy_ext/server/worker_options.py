"""The options of a worker, and the configuration that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from scrapy_ext.server.config import ConfigError, ServerConfig
from scrapy_ext.server.operation.logs import FORMATS
from scrapy_ext.server.options import (
    DEFAULT_DATA,
    add_extraction_options,
    add_options,
    add_runner_options,
    config_from,
    database_url,
)


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a worker to a parser."""
    parser.add_argument(
        "--database",
        type=database_url,
        metavar="URL",
        help="postgresql://USER@HOST:PORT/DATABASE, that of a server; with a password, better in the environment "
        "variable SERVER_DATABASE, which does not show in process lists",
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="where deployed code is kept (default: data)")
    parser.add_argument(
        "--url",
        type=_address,
        help="let jobs ask the server at this address (http://HOST:PORT) instead of this worker for storage and "
        "extraction",
    )
    add_runner_options(parser)
    add_extraction_options(parser)
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input is closed")
    parser.add_argument(
        "--log-format", choices=FORMATS, default="text", help="json: one object a line (default: %(default)s)"
    )


def worker_config_from(options: argparse.Namespace, environ: Mapping[str, str]) -> ServerConfig:
    """The configuration of a worker, as :func:`config_from`."""
    full = argparse.ArgumentParser()
    add_options(full)
    given = {**vars(full.parse_args([])), **vars(options), "data": None, "host": "127.0.0.1", "port": 0}
    config = config_from(argparse.Namespace(**given), environ)
    if config.database is None:
        raise ConfigError(
            "a worker needs the database of a server: --database postgresql://USER@HOST:PORT/DATABASE, or the "
            "environment variable SERVER_DATABASE"
        )
    return msgspec.structs.replace(
        config, worker=True, data=options.data, door=options.url, runner=True, extract_key=None, platform_key=None
    )


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.username:
        return text.rstrip("/")
    raise argparse.ArgumentTypeError(f"must be the address of a server, such as http://10.0.0.5:8700, got {text!r}")
