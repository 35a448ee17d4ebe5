"""One request to the platform: who asks, for which path, with which parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from scrapy_ext.api.platform.formats import META_FIELDS, whole_number
from scrapy_ext.api.platform.keys import MAX_NUMBER, JobKey
from scrapy_ext.server.platform.answers import refused
from scrapy_ext.server.store import Store

#: Who did something, where the key of the platform was used: keys have no names.
KEY_HOLDER: Final = "api"


class Call:
    """What a handler is given. ``path`` are the parts after the resource's name, decoded."""

    def __init__(self, request: Request, store: Store) -> None:
        self.request = request
        self.store = store
        self.path = _parts(request.scope["raw_path"])[1:]
        self.who = KEY_HOLDER
        self._query = request.query_params

    @property
    def method(self) -> str:
        """``GET`` also for HEAD, whose answer is the same without its body."""
        method: str = self.request.method
        return "GET" if method == "HEAD" else method

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters; of a repeated one the last."""
        return self._query

    def all(self, name: str) -> list[str]:
        """Every value of a query parameter."""
        return self._query.getlist(name)

    def number(self, name: str, default: int | None = None) -> int | None:
        """A query parameter that is a whole number; raises ``ContractError``."""
        return whole_number(self._query, name, default)

    def meta(self, *known: str) -> tuple[str, ...]:
        """The values of ``meta``, in the order given; raises ``ContractError`` for one that is not known."""
        asked = tuple(dict.fromkeys(self.all("meta")))
        for name in asked:
            if name not in (known or META_FIELDS):
                raise refused(
                    "meta", f"must be one of {', '.join(known or META_FIELDS)}, got {name[:60]!r}", "Correct it."
                )
        return asked

    @property
    def project(self) -> int:
        """The project, which is the first part of the path."""
        return path_number(self.path, 0, "project")

    @property
    def job(self) -> JobKey:
        """The job that the first three parts of the path name."""
        return JobKey(self.project, path_number(self.path, 1, "spider"), path_number(self.path, 2, "job"))


def path_number(path: list[str], place: int, name: str) -> int:
    """A part of a path that is a number; raises ``ContractError``."""
    text = path[place] if place < len(path) else ""
    if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAX_NUMBER:
        return int(text)
    raise refused(name, f"must be a whole number in the path, got {text[:60]!r}", "Check the address.")


def _parts(raw_path: bytes) -> list[str]:
    pieces = raw_path.strip(b"/").split(b"/") if raw_path.endswith(b"/") else raw_path.lstrip(b"/").split(b"/")
    try:
        return [unquote_to_bytes(piece).decode() for piece in pieces]
    except UnicodeDecodeError:
        raise refused("path", "must be UTF-8", "Encode the path's parts as UTF-8.") from None
