"""Success of a server's proxies, as the API reports it. Numbers are those of one server process since its start."""

from __future__ import annotations

import msgspec


class ProxyFigures(msgspec.Struct, frozen=True):
    """Requests by one proxy, to a site or (``site`` null) to all. ``proxy`` is ``direct`` for no proxy.

    ``site`` is a host, with its port unless that is the usual one; ``by`` is ``http`` or ``browser``, null as ``site``.
    """

    proxy: str
    #: Scheme, host and port, without credentials; empty for no proxy.
    address: str
    site: str | None
    by: str | None
    #: Requests by result: the page, a ban, a failure of the proxy.
    passed: int
    banned: int
    failed: int
    #: Recent success, from 0 to 1.
    success: float
    #: Seconds that its cool-down still takes; 0: none.
    cooling: int


class Proxies(msgspec.Struct, frozen=True):
    """The proxies of a server, and each of them at the sites that were requested last."""

    proxies: list[ProxyFigures]
    sites: list[ProxyFigures]
