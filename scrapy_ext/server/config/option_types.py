"""The kinds of value that the server's options take, each told what is wrong with one that is not of its kind."""

from __future__ import annotations

import argparse
import ipaddress
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError

_MOST: Final = 1_000_000
_BELOW: Final = 1_000_000_000


def port(text: str) -> int:
    """A port to listen on, 0 for a free one."""
    if text.isascii() and text.isdigit() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be 0 to 65535, got {text!r}")


def program(text: str) -> str:
    """A file that can be run."""
    path = Path(text).expanduser()
    if path.is_file() and os.access(path, os.X_OK):
        return text
    raise argparse.ArgumentTypeError(f"{text} is not a program; name a Chromium, or leave it out")


def tags(text: str) -> tuple[str, ...]:
    """Tags with commas between them: sorted, each once."""
    return tuple(sorted({tag.strip() for tag in text.split(",") if tag.strip()}))


def project_folder(text: str) -> Path:
    """The folder of a Scrapy project."""
    folder = Path(text).expanduser().absolute()
    if (folder / "scrapy.cfg").is_file():
        return folder
    raise argparse.ArgumentTypeError(f"{text} has no scrapy.cfg; name the folder of a Scrapy project")


def existing_path(text: str) -> str:
    """A file or folder that is there."""
    path = Path(text).expanduser().absolute()
    if path.exists():
        return str(path)
    raise argparse.ArgumentTypeError(f"{text} is not there; name a file or folder")


def denied_address(text: str) -> str:
    """A network, and a port if it has one: ``NETWORK`` or ``NETWORK PORT``."""
    network, port = text, ""
    if text.startswith("["):
        network, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        network, _, port = text.partition(":")
    try:
        found = ipaddress.ip_network(network)
    except ValueError:
        found = None
    if found is None or (port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65535)):
        raise argparse.ArgumentTypeError(f"must be NETWORK or NETWORK:PORT, such as 10.0.0.0/8, got {text!r}")
    return f"{found} {port}".strip()


def positive(unit: str) -> Callable[[str], float]:
    """A number over 0 of a unit."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if 0 < number < _BELOW:
            return number
        raise argparse.ArgumentTypeError(f"must be a number of {unit} over 0 and below {_BELOW}, got {text!r}")

    return read


def whole(unit: str = "", *, least: int = 1, why: str = "") -> Callable[[str], int]:
    """A whole number of a unit; ``why`` says in the error what the least is for."""
    rule = f"must be a whole number{unit and f' of {unit}'} from {least} to {_MOST}{why and f' ({why})'}"

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text[:10]) <= _MOST:
            return int(text)
        raise argparse.ArgumentTypeError(f"{rule}, got {text[:60]!r}")

    return read


def network(text: str) -> str:
    """An address, or a network."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an address or network such as 10.0.0.0/8, got {text!r}") from None


def database_url(text: str) -> DatabaseUrl:
    """The address of a database."""
    try:
        return DatabaseUrl(text)
    except StoreError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def server_url(text: str) -> str:
    """The address of a server."""
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.username:
        return text.rstrip("/")
    raise argparse.ArgumentTypeError(f"must be the address of a server, such as http://10.0.0.5:8700, got {text!r}")
