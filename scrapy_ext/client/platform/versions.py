"""Deployed versions of projects. The hosted platform does not have these calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Final

from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.versions import Version, Versions
from scrapy_ext.client.platform.calls import JSON, delete, get, path, post
from scrapy_ext.client.platform.resource import Resource

_PIECE: Final = 256 * 1024


class DeployedVersions(Resource):
    """Versions of projects that were deployed."""

    async def list(self, project: int) -> list[Version]:
        """Return the versions of a project, the newest first, without their spiders."""
        return (await self._json(get(Host.APP, _path(project), accept=JSON), Versions)).versions

    async def get(self, project: int, version: str, deploy_id: int | None = None) -> Version:
        """Return one version, with its spiders once it is ready."""
        return await self._json(get(Host.APP, _path(project, version), ("deploy_id", deploy_id), accept=JSON), Version)

    async def deploy(
        self,
        project: int,
        version: str,
        archive: Path,
        *,
        settings: str = "",
        requirements: str = "",
        on_sent: Callable[[int, int], None] = lambda _sent, _total: None,
    ) -> Version:
        """Upload an archive; the platform checks the version afterwards. ``on_sent`` is called with the number of bytes
        that were sent and the number of all. Sent once: a second attempt could deploy it twice."""
        boundary = os.urandom(16).hex()
        fields = {"version": version, "settings": settings, "requirements": requirements}
        head = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
            if value
        )
        head += f'--{boundary}\r\nContent-Disposition: form-data; name="archive"; filename="archive"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        before, after = head.encode(), f"\r\n--{boundary}--\r\n".encode()
        size = (await asyncio.to_thread(archive.stat)).st_size

        async def pieces() -> AsyncGenerator[bytes]:
            yield before
            sent = 0
            with archive.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
                    sent += len(piece)
                    on_sent(sent, size)
            yield after

        call = post(
            Host.APP,
            _path(project),
            None,
            source=pieces,
            content_type=f"multipart/form-data; boundary={boundary}",
            headers=(("Content-Length", str(len(before) + size + len(after))),),
            accept=JSON,
            repeatable=False,
        )
        return await self._json(call, Version)

    async def make_current(self, project: int, version: str) -> Version:
        """Make a version the one that new jobs run."""
        return await self._json(post(Host.APP, _path(project, version, "current"), b"", accept=JSON), Version)

    async def delete(self, project: int, version: str) -> None:
        """Delete a version that nothing needs."""
        await self._transport.send(delete(Host.APP, _path(project, version)))


def _path(project: int, *more: str) -> str:
    return path("api", "projects", project, "versions", *more)
