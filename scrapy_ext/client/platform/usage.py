"""Use of storage. The hosted platform does not have these calls."""

from __future__ import annotations

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.usage import Usage
from scrapy_ext.client.platform.calls import JSON, get, path
from scrapy_ext.client.platform.resource import Resource


class StorageUsage(Resource):
    """Bytes that projects use."""

    async def of_project(self, project: int) -> Usage:
        """Return the use by a project; ``counted`` is None while the sums still grow."""
        return await self._json(get(Host.APP, path("api", "projects", project, "usage"), accept=JSON), Usage)

    async def of_all(self) -> Usage:
        """Return the use by all projects, for a key of all projects."""
        return await self._json(get(Host.APP, path("api", "usage"), accept=JSON), Usage)
