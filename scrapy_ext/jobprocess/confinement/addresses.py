"""Addresses that a confined process may reach, and the TCP ports of this machine that are closed to it.

A server uses ports internally, such as those of the browser's proxies. They change while jobs run, so the supervisors
share the server's memory of them: a bit per port, in an anonymous file whose descriptor they inherit.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME_SERVERS: Final = "/etc/resolv.conf"
_DNS: Final = 53
_LOOPBACK: Final = {4: ipaddress.ip_address("127.0.0.1"), 6: ipaddress.ip_address("::1")}
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_PORTS: Final = 65536


class Denied(NamedTuple):
    """Addresses that may not be reached, at one port (0: at every port)."""

    network: Network
    port: int


class Rules:
    """Addresses that may be reached: all except ``denied`` ones, as ``NETWORK`` or ``NETWORK PORT``, and except
    ``ports`` and internal ports of the server (``own``: their descriptor) on this machine. The system's name servers
    may always be reached, at their port."""

    def __init__(self, denied: Iterable[str], ports: Iterable[int], own: int | None = None) -> None:
        self._own = own
        self._denied = [_denied(text) for text in denied]
        self._ports = frozenset(ports)
        self._name_servers = frozenset(_name_servers())

    def allow(self, host: str, port: int) -> bool:
        """Return whether this address may be reached."""
        address = _meant(ipaddress.ip_address(host))
        if port == _DNS and str(address) in self._name_servers:
            return True
        if any(rule.port in (0, port) and address in rule.network for rule in self._denied):
            return False
        is_closed = port in self._ports or (self._own is not None and _has(self._own, port))
        return not is_closed or not is_own(address)


def _denied(text: str) -> Denied:
    network, _, port = text.partition(" ")
    return Denied(ipaddress.ip_network(network), int(port or 0))


def _meant(address: Address) -> Address:
    """Return the address that this one reaches: the IPv4 address in an IPv6 one, loopback for the unspecified one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return _meant(address.ipv4_mapped)
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return _LOOPBACK[address.version] if address.is_unspecified else address


def is_own(address: Address) -> bool:
    """Return whether an address is this machine's, so that a socket can be bound to it."""
    if address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((str(address), 0))
        except OSError:
            return False
    return True


def _name_servers() -> list[str]:
    with contextlib.suppress(OSError), open(_NAME_SERVERS, encoding="utf-8", errors="replace") as file:
        words = [line.split() for line in file]
        return [str(_parsed(line[1])) for line in words if len(line) > 1 and line[0] == "nameserver"]
    return []


def _parsed(text: str) -> Address | str:
    with contextlib.suppress(ValueError):
        return _meant(ipaddress.ip_address(text.partition("%")[0]))
    return text


# ── internal ports of this server ──


def close_port(port: int) -> None:
    """Refuse connections of confined processes to this port from now on."""
    _set(port, 1 << port % 8)


def open_port(port: int) -> None:
    """Undo :func:`close_port`."""
    _set(port, 0)


@cache
def closed_ports() -> int | None:
    """Return the descriptor of the closed ports of this process; None on a system without anonymous files."""
    if not hasattr(os, "memfd_create"):
        return None
    made = os.memfd_create("ports")
    os.ftruncate(made, _PORTS // 8)
    return made


def _has(descriptor: int, port: int) -> bool:
    return bool(os.pread(descriptor, 1, port // 8)[0] & 1 << port % 8)


def _set(port: int, bit: int) -> None:
    made = closed_ports()
    if made is None:
        return
    others = os.pread(made, 1, port // 8)[0] & ~(1 << port % 8)
    os.pwrite(made, bytes([others | bit]), port // 8)
