"""One call to the platform, as data: method, host, path, parameters and body."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.client.platform.errors import PlatformError

JSON_LINES: Final = "application/x-jsonlines"
JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"

#: A value of a parameter. None and False leave the parameter out; a sequence repeats it.
Value = str | int | bool | None | Iterable[str | int]


class ClientCall(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    host: Host
    path: str
    parameters: tuple[tuple[str, Value], ...] = ()
    body: bytes | None = None
    #: Makes the pieces of a body, in place of ``body``; they are sent uncompressed.
    source: Callable[[], AsyncGenerator[bytes]] | None = None
    content_type: str = JSON_LINES
    #: Content encoding that ``body`` has already; ``identity``: send it uncompressed; None: compress a large body.
    encoding: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    accept: str = JSON_LINES
    #: True: sending the call twice has the same effect as sending it once.
    repeatable: bool = True
    #: Number of attempts at a repeatable call; None: as the client is configured.
    attempts: int | None = None

    def error(
        self,
        kind: type[PlatformError],
        message: str,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> PlatformError:
        return kind(message, method=self.method, path=self.path, status=status, retry_after=retry_after)


def get(host: Host, path: str, *parameters: tuple[str, Value], accept: str = JSON_LINES) -> ClientCall:
    return ClientCall(method="GET", host=host, path=path, parameters=parameters, accept=accept)


def post(host: Host, path: str, body: bytes | None, **options: Any) -> ClientCall:
    """Return a POST; ``options`` are further fields of :class:`ClientCall`."""
    return ClientCall(method="POST", host=host, path=path, body=body, **options)


def put(host: Host, path: str, body: bytes, **options: Any) -> ClientCall:
    """Return a PUT; ``options`` are further fields of :class:`ClientCall`."""
    return ClientCall(method="PUT", host=host, path=path, body=body, **options)


def delete(host: Host, path: str, *parameters: tuple[str, Value]) -> ClientCall:
    """Return a call that deletes; the platform accepts it also when there is nothing to delete."""
    return ClientCall(method="DELETE", host=host, path=path, parameters=parameters)


def form(path: str, *parameters: tuple[str, Value], repeatable: bool = True) -> ClientCall:
    """Return a POST of form fields to the app host."""
    body = query(parameters).encode()
    return post(Host.APP, path, body, content_type=_FORM, accept=JSON, repeatable=repeatable)


def send_json(method: str, path: str, fields: object, *, repeatable: bool = True) -> ClientCall:
    """Return a call of this method with a JSON body to the app host."""
    return ClientCall(
        method=method,
        host=Host.APP,
        path=path,
        body=msgspec.json.encode(fields),
        content_type=JSON,
        accept=JSON,
        repeatable=repeatable,
    )


def path(*segments: object) -> str:
    """Return the path of these segments. Each is percent-encoded, so that none reaches another path."""
    return "/" + "/".join(quote(str(segment), safe="") for segment in segments)


def query(parameters: Iterable[tuple[str, Value]]) -> str:
    """Return the query of named parameters, in their order; empty when none is set."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters:
        if value is None or value is False:
            continue
        values = [value] if isinstance(value, str | int) else value
        pairs.extend((name, "1" if item is True else str(item)) for item in values)
    return urlencode(pairs)
