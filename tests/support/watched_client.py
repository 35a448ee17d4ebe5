"""The client of a real platform, whose calls a test sees, holds up, or breaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import Unreachable

#: Called with a call's name, such as ``frontier.add``, and its arguments.
Hook = Callable[[str, tuple[Any, ...]], Awaitable[None]]


async def nothing(name: str, arguments: tuple[Any, ...]) -> None:
    """Default of a hook that is not set."""


class WatchedClient:
    """A :class:`PlatformClient` with a hook before each call and one after it, before its result is given.

    What a hook raises is what the caller gets: before the call it is a lost request, after it a lost reply.
    """

    def __init__(self, client: PlatformClient) -> None:
        self.before: Hook = nothing
        self.after: Hook = nothing
        self.frontier: Any = _Resource(self, "frontier", client.frontier)
        self.collections: Any = _Resource(self, "collections", client.collections)
        self.items: Any = _Resource(self, "items", client.items)


class _Resource:
    def __init__(self, watched: WatchedClient, name: str, resource: object) -> None:
        self._watched, self._name, self._resource = watched, name, resource

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        name, call = f"{self._name}.{method}", getattr(self._resource, method)

        async def watched(*arguments: Any, **options: Any) -> Any:
            await self._watched.before(name, arguments)
            result = await call(*arguments, **options)
            await self._watched.after(name, arguments)
            return result

        return watched


def fails(*names: str, times: int = 1, slot: str | None = None) -> Hook:
    """A hook under which so many of these calls break."""
    left = times

    async def hook(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if left and name in names and slot in (None, *arguments):
            left -= 1
            raise Unreachable("the connection broke", path="/played")

    return hook
