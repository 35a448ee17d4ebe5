"""The guard of outgoing connections, which every connection of the service passes.

Invariants and their purpose:

* A name is resolved once per connection, which uses the checked addresses only. A name that changes its answer between
  check and use (DNS rebinding) gains nothing.
* Every address of a name must be public, and so must every IPv4 address embedded in an IPv6 one, because translators
  on the way would connect to it.
* Each connection is checked anew: each hop of a redirect, each sub-resource, frame, worker and WebSocket of a page.
* A name whose servers are silent occupies one lookup of many, shared by all callers.
* Ports are an allow-list (:data:`PORTS`): those of web sites, not those of mail, databases or remote shells, which an
  HTTP request could harm.

Operators make exceptions by name and port, never for all private addresses: ``allow_hosts`` permits a ``host:port``
whatever it resolves to, ``connect_to`` replaces the lookup of one (or of ``*``). Neither overrides the block list.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from scrapy_ext.api.extraction import Cause, problems
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.net.blocked_domains import BlockList

if TYPE_CHECKING:
    from yarl import URL

# ── targets of redirects, parsed as browsers do, and URLs without credentials ──


def address_of(url: str) -> URL:
    """Return the URL of a request; raises :class:`ExtractionError` (421) where no host can have that name.

    Names such as ``。１%`` stand for other characters once they are normalized, which yarl refuses.
    """
    from yarl import URL  # with the first page, as the HTTP client

    try:
        return URL(url, encoded=True)
    except ValueError:
        host = urlsplit(url).hostname or ""
        raise problems.unreachable(f"{host[:255]} is not an address that can be requested.") from None


def target_of(before: URL, location: str) -> URL:
    """Return the URL that a redirect leads to; raises :class:`ExtractionError` (521) for anything but a web page."""
    from w3lib.url import safe_url_string  # as above
    from yarl import URL

    try:
        after = URL(safe_url_string(urljoin(str(before), _slashes(location))), encoded=True)
        port = after.port
    except ValueError:
        raise problems.permanent(f"{before.raw_host} redirected to something that is not a URL.") from None
    if after.scheme not in ("http", "https") or not after.raw_host or port is None:
        raise problems.permanent(f"{before.raw_host} redirected to something that is not an http or https URL.")
    return after


def without_credentials(url: str) -> str:
    """Return a URL without ``user:password@``, for results, errors and logs."""
    parts = urlsplit(url)
    return url if "@" not in parts.netloc else urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _slashes(location: str) -> str:
    """Replace backslashes by slashes up to the query, as browsers do."""
    end = min((at for mark in "?#" if (at := location.find(mark)) >= 0), default=len(location))
    return location[:end].replace("\\", "/") + location[end:]


#: Ports of web sites on public addresses: the standard ones, those of content delivery networks, and the customary ones
#: of application servers.
PORTS: Final = frozenset(
    {80, 81, 443, 2052, 2053, 2082, 2083, 2086, 2087, 2095, 2096, 3000, 4443, 5000, 9443, *range(8000, 9000)}
)

_IPv4 = ipaddress.IPv4Address
_IPv6 = ipaddress.IPv6Address

# Not public in IANA's registries, though ``is_global`` of some supported Python versions is true; 168.63.129.16 is the
# metadata address of a large cloud in public space.
_REFUSED: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20", "fec0::/10", "5f00::/16")
)
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
#: Buffer size for the head of a response, which is read as one piece.
BUFFER: Final = 256 * 1024
#: Most interim responses (1xx) of a site before the final one.
MOST_INTERIM: Final = 100
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


class Endpoint(NamedTuple):
    """A permitted address and port."""

    address: str
    port: int


class GuardRuleError(ConfigError):
    """An operator's exception cannot be parsed; the message has the correction."""


Resolve = Callable[[str, int], Awaitable[list[str]]]


#: Concurrent lookups. The event loop's default executor has few threads, and a name whose servers do not answer
#: occupies one for half a minute.
LOOKUPS: Final = 64
_threads: Final = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")


async def system_resolve(host: str, port: int) -> list[str]:
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_threads, ask)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class Guard:
    """Checker and opener of outgoing connections.

    Tests replace ``resolve``. Raises :class:`GuardRuleError` for invalid ``allow_hosts`` and ``connect_to`` (their
    form: ``ServerConfig``).
    """

    def __init__(
        self,
        allow_hosts: Iterable[str] = (),
        connect_to: Iterable[str] = (),
        *,
        resolve: Resolve = system_resolve,
        timeout: float = 10.0,
        connect_timeout: float = 10.0,
        cache_time: float = 30.0,
        block_list: BlockList | None = None,
    ) -> None:
        self._block_list = block_list or BlockList()
        self._allowed = frozenset(_host_and_port(pair, "--allow-host") for pair in allow_hosts)
        self._rules = dict(_rule(text) for text in connect_to)
        self._resolve = resolve
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._cache = _Cache(cache_time)
        #: Lookups under way, by host, shared by all callers.
        self._lookups: dict[str, asyncio.Task[list[str]]] = {}

    async def endpoints(self, host: str, port: int) -> list[Endpoint]:
        """Return at least one endpoint of a host; raises :class:`ExtractionError` (421, 451, 520)."""
        host = _normal(host)
        await self.check_domain(host)
        rule = self._rules.get((host, port)) or self._rules.get(("*", port))
        if rule is not None:
            return [rule]
        allowed = (host, port) in self._allowed
        if not allowed and port not in PORTS:
            raise problems.unreachable(
                f"Port {port} of {host} is not one that this server fetches.",
                Cause.HOST_NOT_ALLOWED,
                remedy=f"Its operator can allow it with {_how_to_allow(host, port)}.",
            )
        addresses = await self._addresses(host, port)
        if not allowed and not all(is_public(address) for address in addresses):
            raise problems.unreachable(
                f"{host} has an address that is not public, and this server does not fetch such.",
                Cause.HOST_NOT_ALLOWED,
                remedy=f"Its operator can allow it with {_how_to_allow(host, port)}.",
            )
        return [Endpoint(address, port) for address in addresses]

    async def check_domain(self, host: str) -> None:
        """Raise :class:`ExtractionError` (451) for a host that the operator has blocked."""
        domain = await self._block_list.blocked(_normal(host))
        if domain is not None:
            raise problems.forbidden(host, domain)

    async def connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first of a host's checked addresses that accepts."""
        endpoints = await self.endpoints(host, port)
        failure: OSError = TimeoutError()
        # A dead first address must leave time for the next.
        share = self._connect_timeout / len(endpoints)
        try:
            async with timeout_after(self._connect_timeout):
                for endpoint in endpoints:
                    try:
                        async with timeout_after(share):
                            return await asyncio.open_connection(endpoint.address, endpoint.port, limit=BUFFER)
                    except OSError as error:
                        failure = error
        except TimeoutError as error:
            failure = error
        raise problems.connection_failed(host, port, failure)

    async def _addresses(self, host: str, port: int) -> list[str]:
        literal = _literal(host)
        if literal is not None:
            return [literal]
        known = self._cache.get(host)
        if known is not None:
            return known
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = self._lookups[host] = asyncio.ensure_future(self._look_up(host, port))
            lookup.add_done_callback(partial(self._looked_up, host))
        # A cancelled caller does not end the lookup of the others.
        return await asyncio.shield(lookup)

    def _looked_up(self, host: str, lookup: asyncio.Task[list[str]]) -> None:
        del self._lookups[host]
        if not lookup.cancelled():
            lookup.exception()  # Without callers left, asyncio would log it.

    async def _look_up(self, host: str, port: int) -> list[str]:
        try:
            async with timeout_after(self._timeout):
                addresses = await self._resolve(host, port)
        except TIMEOUT_ERRORS:
            raise problems.temporary(f"Looking up {host} took too long.", Cause.TIMEOUT) from None
        except (OSError, UnicodeError) as error:
            raise _not_found(host, error) from None
        if not addresses:
            raise problems.unreachable(f"{host} does not resolve to an address.", Cause.HOST_NOT_FOUND)
        self._cache.put(host, addresses)
        return addresses


def is_public(address: str) -> bool:
    """Return true when an address and every IPv4 address embedded in it are public."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, _IPv4):
        return _is_public(parsed)
    embedded = list(_embedded(parsed))
    outer = parsed in _NAT64 or (parsed in _GLOBAL_UNICAST and _is_public(parsed))
    return outer and all(_is_public(inner) for inner in embedded)


def _is_public(address: _IPv4 | _IPv6) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _REFUSED)
    )


def _embedded(address: _IPv6) -> Iterator[_IPv4]:
    """Yield the IPv4 addresses that a packet for this address may reach."""
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    value = int(address)
    if address in _NAT64 or value >> 32 == 0 or (value >> 32) & 0xFFFFFFFF in _ISATAP:
        yield _IPv4(value & 0xFFFFFFFF)


def _how_to_allow(host: str, port: int) -> str:
    return f"--allow-host {host}:{port} (of the embedded server: SERVER_ALLOW_HOSTS = [{host + ':' + str(port)!r}])"


def _literal(host: str) -> str | None:
    """Return the address that a host spells out; the resolver handles names such as ``127.1``."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def _normal(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _not_found(host: str, error: OSError | UnicodeError) -> problems.ExtractionError:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return problems.temporary(f"Looking up {host} failed for now.", Cause.HOST_NOT_FOUND)
    return problems.unreachable(f"{host} does not resolve to an address.", Cause.HOST_NOT_FOUND)


def _host_and_port(text: str, option: str) -> tuple[str, int]:
    host, separator, port = text.strip().rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise GuardRuleError(f"{option} {text!r} must be HOST:PORT. Write one such as localhost:8080.")
    return _normal(host), int(port)


def _rule(text: str) -> tuple[tuple[str, int], Endpoint]:
    name, separator, target = text.partition("=")
    if not separator:
        raise GuardRuleError(
            f"--connect-to {text!r} must be HOST:PORT=ADDRESS:PORT. Write one such as shop.example:443=127.0.0.1:8443."
        )
    address, port = _host_and_port(target, "--connect-to")
    return _host_and_port(name, "--connect-to"), Endpoint(address, port)


class _Cache:
    """Bounded cache of resolver answers with an expiry."""

    SIZE: Final = 4096

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._answers: dict[str, tuple[float, list[str]]] = {}

    def get(self, host: str) -> list[str] | None:
        until, addresses = self._answers.get(host, (0.0, []))
        return addresses if asyncio.get_running_loop().time() < until else None

    def put(self, host: str, addresses: list[str]) -> None:
        if self._keep <= 0:
            return
        if len(self._answers) >= self.SIZE:
            # Insertion order is age: the oldest quarter is dropped.
            for old in list(self._answers)[: self.SIZE // 4]:
                del self._answers[old]
        self._answers.pop(host, None)
        self._answers[host] = (asyncio.get_running_loop().time() + self._keep, addresses)
