"""Limit of the wrong keys that one address may present, over all services of a server.

A right key is never refused because of others, since many people share an address behind a NAT. An IPv6 network of
64 bits counts as one address, since its owner has all of them. The table is bounded (``rates``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.types import Scope

from scrapy_ext.server.auth.rates import RateLimits

#: Wrong keys per second and at once. Programs that wait for a new key to take effect try about ten times a second for
#: :data:`~scrapy_ext.server.auth.keyring.REFRESH_SECONDS`.
RATE: Final = 10.0
BURST: Final = 100
#: The key of the table in a request's scope.
SCOPE_KEY: Final = "scrapy_ext.wrong_keys"

_NETWORK: Final = 64


class WrongKeys:
    """Table of wrong keys by address, shared by all services of a server."""

    def __init__(self, rate: float = RATE, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = RateLimits(rate, burst, clock)

    def note(self, scope: Scope) -> int:
        """Count a wrong key; return 0, or the seconds until the address of this request may present another."""
        return self._rates.take(address_of(scope))

    def __len__(self) -> int:
        return len(self._rates)


def note_wrong_key(scope: Scope) -> int:
    """Count a wrong key in the request's table (:meth:`WrongKeys.note`); 0 without the request middleware."""
    table: WrongKeys | None = scope.get(SCOPE_KEY)
    return table.note(scope) if table is not None else 0


def too_many(wait: int) -> str:
    """Return the message about too many wrong keys."""
    return f"Too many wrong keys from this address. Try again in {wait} s with the right key."


def address_of(scope: Scope) -> str:
    """Return the address that a request counts for: that of the client, or its network for IPv6."""
    text = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _NETWORK << _NETWORK)}/{_NETWORK}"
