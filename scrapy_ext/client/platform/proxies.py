"""Success of a server's proxies. The hosted platform does not have this call."""

from __future__ import annotations

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.proxies import Proxies
from scrapy_ext.client.platform.calls import JSON, get, path
from scrapy_ext.client.platform.resource import Resource


class ProxySuccess(Resource):
    """Requests by proxy and site."""

    async def list(self, *, site: str | None = None, count: int | None = None) -> Proxies:
        """Return the figures of the proxies, for a key of all projects; ``count``: pairs of a proxy and a site."""
        given = {"site": site, "count": count}
        query = [(name, str(value)) for name, value in given.items() if value is not None]
        return await self._json(get(Host.APP, path("api", "proxies"), *query, accept=JSON), Proxies)
