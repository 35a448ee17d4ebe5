"""One call to the platform, as data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

import msgspec

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.client.platform.urls import Value, query

JSON_LINES: Final = "application/x-jsonlines"
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"


class ClientCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call. ``repeatable`` says that sending it twice does no more than sending it once; ``attempts``
    overrides how often it is tried then. ``encoding`` is the content encoding that ``body`` has already; with
    ``identity`` it is sent as it is, else it is compressed if that is worth it. ``source`` gives a body in pieces
    instead, which are sent as they are."""

    method: str
    host: Host
    path: str
    parameters: tuple[tuple[str, Value], ...] = ()
    body: bytes | None = None
    source: Callable[[], AsyncIterator[bytes]] | None = None
    content_type: str = JSON_LINES
    encoding: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    accept: str = JSON_LINES
    repeatable: bool = True
    attempts: int | None = None

    def error(
        self,
        kind: type[PlatformError],
        message: str,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> PlatformError:
        """An error about this call."""
        return kind(message, method=self.method, path=self.path, status=status, retry_after=retry_after)


def get(host: Host, path: str, *parameters: tuple[str, Value], accept: str = JSON_LINES) -> ClientCall:
    """A call that reads."""
    return ClientCall(method="GET", host=host, path=path, parameters=parameters, accept=accept)


def delete(host: Host, path: str, *parameters: tuple[str, Value]) -> ClientCall:
    """A call that deletes; what is gone already is not an error."""
    return ClientCall(method="DELETE", host=host, path=path, parameters=parameters)


def form(path: str, *parameters: tuple[str, Value], repeatable: bool = True) -> ClientCall:
    """A POST of form fields to the app host."""
    return ClientCall(
        method="POST",
        host=Host.APP,
        path=path,
        body=query(parameters).encode(),
        content_type=FORM,
        accept=JSON,
        repeatable=repeatable,
    )


def named(**parameters: Value) -> Iterable[tuple[str, Value]]:
    """Parameters by keyword; those that are None are left out when the query is written."""
    return parameters.items()
