"""A server as its operator sees it: users of the pages and their roles, use of storage, success of proxies.

The hosted platform does not have these calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ext.api.extraction.records import Proxies
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.usage import Usage
from scrapy_ext.api.platform.users import ALL_PROJECTS, Role, User
from scrapy_ext.client.platform.calls import JSON, delete, get, path, send_json
from scrapy_ext.client.platform.resource import Resource

_Many = list[User]


class Users(Resource):
    """The people who have logged in by OpenID Connect, for the server's own key."""

    async def list(self, text: str = "", *, count: int = 1000, start: int = 0) -> _Many:
        """Return up to ``count`` users after the first ``start``, those with a text in their name or e-mail address."""
        parameters = (("q", text), ("count", count), ("start", start))
        return await self._json(get(Host.APP, path("api", "users"), *parameters, accept=JSON), _Many)

    async def get(self, id: int) -> User:
        """Return a user."""
        return await self._json(get(Host.APP, path("api", "users", id), accept=JSON), User)

    async def set_roles(self, id: int, roles: Mapping[int | None, Role | None]) -> User:
        """Give roles by project, None for all projects; the role None removes one. Others are unchanged."""
        named = {
            ALL_PROJECTS if project is None else str(project): role and role.value for project, role in roles.items()
        }
        return await self._json(send_json("PATCH", path("api", "users", id), {"roles": named}), User)

    async def disable(self, id: int, disabled: bool = True) -> User:
        """Disable a user, whose sessions end at once, or enable the user."""
        return await self._json(send_json("PATCH", path("api", "users", id), {"disabled": disabled}), User)

    async def remove(self, id: int) -> None:
        """Remove a user, who may log in again as a new one without roles."""
        await self._transport.send(delete(Host.APP, path("api", "users", id)))


class StorageUsage(Resource):
    """Bytes that projects use."""

    async def of_project(self, project: int) -> Usage:
        """Return the use by a project; ``counted`` is None while the sums still grow."""
        return await self._json(get(Host.APP, path("api", "projects", project, "usage"), accept=JSON), Usage)

    async def of_all(self) -> Usage:
        """Return the use by all projects, for a key of all projects."""
        return await self._json(get(Host.APP, path("api", "usage"), accept=JSON), Usage)


class ProxySuccess(Resource):
    """Requests by proxy and site."""

    async def list(self, *, site: str | None = None, count: int | None = None) -> Proxies:
        """Return the figures of the proxies, for a key of all projects; ``count``: pairs of a proxy and a site."""
        given = {"site": site, "count": count}
        query = [(name, str(value)) for name, value in given.items() if value is not None]
        return await self._json(get(Host.APP, path("api", "proxies"), *query, accept=JSON), Proxies)
