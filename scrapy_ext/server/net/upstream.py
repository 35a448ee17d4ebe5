"""Operator's proxies, which send requests from another country or another kind of address.

``--proxy COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT`` defines one. ``*`` as country or type means any. A request with
``geolocation`` or ``ipType`` needs a proxy that fits both; one with neither uses a proxy for ``*:*`` if there is one,
else none.

The guard applies nevertheless: the CONNECT request (also for http) names a checked address, never a host that the proxy
would resolve in its own network. The proxy's own address may be private, since the operator configured it. Errors name
the proxy's country and type; the log also has its address, and its credentials appear nowhere.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from scrapy_ext.api.extraction.fields import IP_TYPES
from scrapy_ext.api.extraction.problems import ExtractionError, temporary
from scrapy_ext.api.violations import Violation
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.net.guard import BUFFER, Endpoint

_log = logging.getLogger(__name__)

ANY: Final = "*"
_COUNTRY: Final = re.compile(r"[A-Z]{2}|\*")
_FORM: Final = "Write COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT, such as US:residential=http://proxy.example:3128."
#: Status line of a response to CONNECT: ``HTTP/1.1 200 Connection established``.
_ANSWER: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: |\r)")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ProxyRuleError(ConfigError):
    """A proxy option cannot be parsed; the message has the correction, without the address."""


class Upstream:
    """One proxy; :attr:`name` (``US:residential``) is its only public part."""

    def __init__(self, text: str) -> None:
        self.name, separator, address = text.strip().partition("=")
        country, _, ip_type = self.name.partition(":")
        self.country, self.ip_type = country, ip_type or ANY
        if not separator or "@" in self.name or "/" in self.name:
            raise ProxyRuleError(f"proxy must have a country and a type. {_FORM}")
        if not _COUNTRY.fullmatch(country) or self.ip_type not in (*IP_TYPES, ANY):
            rule = f"proxy {self.name[:40]!r} must be for a country in two upper-case letters, and for a type of"
            raise ProxyRuleError(f"{rule} {', '.join(IP_TYPES)}; * stands for any. {_FORM}")
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or not port or parts.scheme != "http" or parts.path not in ("", "/") or parts.query:
            raise ProxyRuleError(f"proxy {self.name} must have an http:// address with a port. {_FORM}")
        self._host, self._port = host, port
        self._credentials = b""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._credentials = b"Proxy-Authorization: Basic %b\r\n" % base64.b64encode(pair.encode())

    def __repr__(self) -> str:
        return f"Upstream({self.name!r})"

    async def connect(self, host: str, endpoints: Sequence[Endpoint], time_limit: float) -> Streams:
        """Connect through the proxy to one of a host's checked addresses; raises :class:`ExtractionError`."""
        status = 0
        # Fewer proxies reach IPv6, so IPv4 comes first.
        for endpoint in sorted(endpoints, key=lambda endpoint: ":" in endpoint.address):
            try:
                async with timeout_after(time_limit):
                    streams = await asyncio.open_connection(self._host, self._port, limit=BUFFER)
                    try:
                        status = await self._ask(streams, endpoint)
                    except BaseException:
                        streams[1].close()
                        raise
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
                raise self._failed("did not answer", type(error).__name__) from None
            if 200 <= status < 300:
                return streams
            streams[1].close()
            if status == 407:
                raise self._failed("refused this server's credentials", "status 407")
        raise temporary(
            f"The proxy for {self.name} did not reach {host}; its answer had the status {status or 'none'}."
        )

    async def _ask(self, streams: Streams, endpoint: Endpoint) -> int:
        reader, writer = streams
        address = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
        target = f"{address}:{endpoint.port}".encode()
        writer.write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (target, target, self._credentials))
        await writer.drain()
        answer = _ANSWER.match(await reader.readuntil(b"\r\n\r\n"))
        return int(answer[1]) if answer else 0

    def _failed(self, what: str, why: str) -> ExtractionError:
        _log.warning("The proxy for %s (%s:%d) %s: %s", self.name, self._host, self._port, what, why)
        return temporary(f"The proxy for {self.name} {what}.")


class Upstreams:
    """All proxies of a server. Raises :class:`ProxyRuleError` for an invalid one."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        self._all = [Upstream(rule) for rule in rules]

    def choose(self, country: str | None, ip_type: str | None) -> tuple[Upstream | None, list[Violation]]:
        """Return the best fitting proxy, at random among equals; None to send without one."""
        fits = [
            (place + kind, upstream)
            for upstream in self._all
            if (place := _fit(country, upstream.country)) and (kind := _fit(ip_type, upstream.ip_type))
        ]
        best = max((fit for fit, _ in fits), default=0)
        if country is None and ip_type is None:
            # A request without wishes only uses a proxy for any country and type.
            best = best if best == 2 * _EXACT else 0
        elif not fits:
            return None, [self._none(country, ip_type)]
        return (random.choice([upstream for fit, upstream in fits if fit == best]) if best else None), []

    def _none(self, country: str | None, ip_type: str | None) -> Violation:
        # If the country alone is available, the type is the missing part.
        by_type = country is None or any(_fit(country, upstream.country) for upstream in self._all)
        name, value = ("ipType", ip_type) if by_type else ("geolocation", country)
        if country is not None and by_type:
            value = f"{ip_type} in {country}"
        has = ", ".join(sorted({upstream.name for upstream in self._all}))
        rule = f"and this server has proxies for {has} only" if has else "and this server has no proxies to send from"
        remedy = "Leave it out to send from the server's own address." if not has else "Ask for one of these."
        return Violation(name, f"asks for an address of {value}, {rule}", remedy, 422)


_EXACT: Final = 2


def _fit(asked: str | None, has: str) -> int:
    """Return 0 for no fit, 1 for a fit, 2 for an exact fit (``*`` without a wish)."""
    if (asked or ANY) == has:
        return _EXACT
    return int(asked is None or has == ANY)
