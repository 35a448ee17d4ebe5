"""Where calls go: the platform's hosts, and paths and parameters in their encoded form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.client.http import base_url

_SETTINGS: Final = {
    Host.APP: "PLATFORM_APP_URL",
    Host.STORAGE: "PLATFORM_STORAGE_URL",
    Host.JOBQ: "PLATFORM_JOBQ_URL",
}

_EXAMPLE: Final = "https://platform.example.com"

#: What a parameter can be given as; None leaves it out, a sequence repeats it.
Value = str | int | bool | None | Iterable[str | int]


class PlatformUrls(msgspec.Struct, frozen=True):
    """The base addresses of a platform, without a slash at the end."""

    app: str
    storage: str
    jobq: str

    def __post_init__(self) -> None:
        for host in Host:
            msgspec.structs.force_setattr(
                self, host.value, base_url(getattr(self, host.value), _SETTINGS[host], _EXAMPLE)
            )

    @classmethod
    def single(cls, url: str) -> PlatformUrls:
        """Those of a platform that serves everything at one address."""
        base = base_url(url, "PLATFORM_URL", _EXAMPLE)
        return cls(base, base, base)

    def base(self, host: Host) -> str:
        """The address of one host."""
        address: str = getattr(self, host.value)
        return address


def path(*segments: object) -> str:
    """A path of these segments, each percent-encoded, so that none can reach outside of its place."""
    return "/" + "/".join(quote(str(segment), safe="") for segment in segments)


def query(parameters: Iterable[tuple[str, Value]]) -> str:
    """The query of named parameters, in their order; empty when nothing is set."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters:
        if value is None or value is False:
            continue
        values = [value] if isinstance(value, str | int) else value
        pairs.extend((name, "1" if item is True else str(item)) for item in values)
    return urlencode(pairs)
