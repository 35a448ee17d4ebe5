"""One proxy of the operator's, through which requests are sent: an HTTP, HTTPS or SOCKS5 proxy.

``--proxy COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT`` defines one; the scheme may also be ``https`` (TLS to the proxy)
or ``socks5``. ``*`` as country or type means any. :mod:`~scrapy_ext.server.net.pool` chooses among several.

The guard applies nevertheless: the proxy is given a checked address, also for http, never a host that it would resolve
in its own network. The proxy's own address may be private, since the operator configured it. Errors name the proxy
as figures do; the log also has its address, and its credentials appear nowhere.

Pages of the browser use these proxies, too, through the proxy of the page (:mod:`~scrapy_ext.server.net.proxy`). So
Chromium's own limits (no SOCKS5 with a password) do not matter.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import ssl
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapy_ext.api.extraction import Cause
from scrapy_ext.api.extraction.fields import IP_TYPES
from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.net.guard import BUFFER, Endpoint

_log = logging.getLogger(__name__)

ANY: Final = "*"
_COUNTRY: Final = re.compile(r"[A-Z]{2}|\*")
_FORM: Final = (
    "Write COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT, such as US:residential=http://proxy.example:3128. The scheme "
    "may also be https or socks5, and ?weight=2&name=fast may follow."
)
_SCHEMES: Final = ("http", "https", "socks5")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_MOST_WEIGHT: Final = 1000
#: Characters of a user name or password of SOCKS5 (RFC 1929).
_LONGEST_OF_SOCKS: Final = 255
#: Status line of a response to CONNECT: ``HTTP/1.1 200 Connection established``.
_ANSWER: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: |\r)")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ProxyRuleError(ConfigError):
    """A proxy option cannot be parsed; the message has the correction, without the address."""


class ProxyFailedError(ExtractionError):
    """A proxy failed, not the site (520). ``everywhere``: for all sites, as it seems, not only for this one.

    It failed before anything was sent to the site by this connection; ``is_unsent`` is false where an earlier hop of
    the request was sent.
    """

    def __init__(self, detail: str, *, everywhere: bool) -> None:
        super().__init__("/download/temporary-error", detail, Cause.PROXY)
        self.everywhere = everywhere
        self.is_unsent = True


class Upstream:
    """One proxy; :attr:`name` (``US:residential``), :attr:`given_name` and :attr:`label` are its only parts for
    callers."""

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
        if not host or not port or parts.scheme not in _SCHEMES or parts.path not in ("", "/") or parts.fragment:
            rule = f"proxy {self.name} must have an address with a scheme ({', '.join(_SCHEMES)}) and a port"
            raise ProxyRuleError(f"{rule}. {_FORM}")
        self._scheme, self._host, self._port = parts.scheme, host, port
        #: The name that the operator gave it, its share among equals, and whether its certificate is verified.
        self.given_name, self.weight, self._verify = "", 1, True
        self._read_options(parts.query)
        #: Its name in figures and errors, which the pool makes different for each.
        self.label = self.given_name or self.name
        self._user, self._password = None, None
        if parts.username is not None:
            self._user, self._password = unquote(parts.username), unquote(parts.password or "")
            self._check_credentials()
        self._tls: ssl.SSLContext | None = None

    def _read_options(self, query: str) -> None:
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name == "weight" and value.isascii() and value.isdigit() and 0 < int(value[:6]) <= _MOST_WEIGHT:
                self.weight = int(value)
            elif name == "name" and _NAME.fullmatch(value):
                self.given_name = value
            elif name == "verify" and value == "no" and self._scheme == "https":
                self._verify = False
            else:
                rule = f"proxy {self.name} may have weight (1 to {_MOST_WEIGHT}) and name (letters, digits, . _ -)"
                raise ProxyRuleError(f"{rule} after its port; with https, also verify=no. {_FORM}")

    def _check_credentials(self) -> None:
        pair = (self._user or "", self._password or "")
        if self._scheme == "socks5":
            if not all(part.isascii() and 0 < len(part) <= _LONGEST_OF_SOCKS for part in pair):
                rule = f"proxy {self.name} must have a user and a password of 1 to {_LONGEST_OF_SOCKS} ASCII characters"
                raise ProxyRuleError(f"{rule} for SOCKS5, or neither. Write USER:PASSWORD@ before the host.")
        elif ":" in pair[0]:
            raise ProxyRuleError(
                f"proxy {self.name} must have a user without a colon, as HTTP requires. Write another user before "
                "the host."
            )

    def __repr__(self) -> str:
        return f"Upstream({self.name!r})"

    @property
    def address(self) -> str:
        """Scheme, host and port, for the operator; without credentials."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{host}:{self._port}"

    async def connect(self, host: str, endpoints: Sequence[Endpoint], time_limit: float) -> Streams:
        """Connect through the proxy to one of a host's checked addresses; raises :class:`ExtractionError`."""
        reason = "none"
        # Fewer proxies reach IPv6, so IPv4 comes first.
        for endpoint in sorted(endpoints, key=lambda endpoint: ":" in endpoint.address):
            try:
                async with timeout_after(time_limit):
                    if self._scheme == "socks5":
                        found = await self._by_socks(endpoint)
                    else:
                        found = await self._by_http(endpoint)
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, *TIMEOUT_ERRORS) as error:
                # It may be slow for this site alone.
                raise self._failed("did not answer", type(error).__name__, everywhere=False) from None
            except OSError as error:
                raise self._failed("did not answer", type(error).__name__) from None
            if not isinstance(found, str):
                return found
            reason = found
        raise ProxyFailedError(
            f"The proxy {self.label} did not reach {host}: its answer had the status {reason}. Send the request "
            "again later.",
            everywhere=False,
        )

    # ── HTTP and HTTPS ──

    async def _by_http(self, endpoint: Endpoint) -> Streams | str:
        """Return a tunnel, or the status of the proxy's refusal."""
        streams = await asyncio.open_connection(self._host, self._port, limit=BUFFER, ssl=self._tls_context())
        try:
            status = await self._ask(streams, endpoint)
            if 200 <= status < 300:
                return streams
            if status == 407:
                raise self._failed("refused this server's credentials", "status 407")
        except BaseException:
            streams[1].close()
            raise
        streams[1].close()
        return str(status or "none")

    def _tls_context(self) -> ssl.SSLContext | None:
        if self._scheme != "https":
            return None
        if self._tls is None:
            self._tls = ssl.create_default_context()
            if not self._verify:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE
        return self._tls

    async def _ask(self, streams: Streams, endpoint: Endpoint) -> int:
        reader, writer = streams
        address = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
        target = f"{address}:{endpoint.port}".encode()
        credentials = b""
        if self._user is not None:
            pair = f"{self._user}:{self._password}".encode()
            credentials = b"Proxy-Authorization: Basic %b\r\n" % base64.b64encode(pair)
        writer.write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (target, target, credentials))
        await writer.drain()
        answer = _ANSWER.match(await reader.readuntil(b"\r\n\r\n"))
        return int(answer[1]) if answer else 0

    # ── SOCKS5 ──

    async def _by_socks(self, endpoint: Endpoint) -> Streams | str:
        """Return a tunnel, or the code of the proxy's refusal."""
        from python_socks import ProxyConnectionError, ProxyError, ProxyType  # with the first proxy that needs it
        from python_socks.async_.asyncio import Proxy

        proxy = Proxy(ProxyType.SOCKS5, self._host, self._port, self._user, self._password, rdns=False)
        try:
            # Its own time limit is not used: the caller's is shorter.
            connected = await proxy.connect(endpoint.address, endpoint.port)
        except ProxyConnectionError as error:
            raise self._failed("did not answer", type(error).__name__) from None
        except ProxyError as error:
            # The library's text of the error may name the address, and is not shown.
            if error.error_code is not None:
                return str(int(error.error_code))
            if "uthenticat" in str(error) or "No acceptable" in str(error):
                raise self._failed("refused this server's credentials", "SOCKS5 authentication") from None
            raise self._failed("did not answer", "not SOCKS5", everywhere=False) from None
        try:
            return await asyncio.open_connection(sock=connected, limit=BUFFER)
        except BaseException:
            connected.close()
            raise

    def _failed(self, what: str, why: str, *, everywhere: bool = True) -> ProxyFailedError:
        _log.warning(
            "The proxy %s (%s:%d) %s: %s. Check it, and its --proxy.", self.label, self._host, self._port, what, why
        )
        return ProxyFailedError(
            f"The proxy {self.label} {what}. Ask the operator of this server to check it.", everywhere=everywhere
        )
