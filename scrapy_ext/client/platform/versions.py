"""Deployed versions of projects. The hosted platform does not have these calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from scrapy_ext.api.platform.hosts import Host
from scrapy_ext.api.platform.versions import Version, Versions
from scrapy_ext.client.platform.calls import JSON, ClientCall, delete, get
from scrapy_ext.client.platform.transport import Transport
from scrapy_ext.client.platform.urls import path

_PIECE: Final = 256 * 1024


class DeployedVersions:
    """What was deployed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, project: int) -> list[Version]:
        """The versions of a project, the newest first, without their spiders."""
        call = get(Host.APP, _path(project), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(Versions).versions)

    async def get(self, project: int, version: str, deploy_id: int | None = None) -> Version:
        """One version, with its spiders once it is ready."""
        call = get(Host.APP, _path(project, version), ("deploy_id", deploy_id), accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(Version))

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
        """Upload an archive; the version is checked afterwards. ``on_sent`` is told how many bytes of how many were
        sent. Sent once: a second try could deploy it twice."""
        limit = os.urandom(16).hex()
        fields = {"version": version, "settings": settings, "requirements": requirements}
        head = "".join(
            f'--{limit}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
            if value
        )
        head += f'--{limit}\r\nContent-Disposition: form-data; name="archive"; filename="archive"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        before, behind = head.encode(), f"\r\n--{limit}--\r\n".encode()
        size = (await asyncio.to_thread(archive.stat)).st_size

        async def pieces() -> AsyncIterator[bytes]:
            yield before
            sent = 0
            with archive.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
                    sent += len(piece)
                    on_sent(sent, size)
            yield behind

        call = ClientCall(
            method="POST",
            host=Host.APP,
            path=_path(project),
            source=pieces,
            content_type=f"multipart/form-data; boundary={limit}",
            headers=(("Content-Length", str(len(before) + size + len(behind))),),
            accept=JSON,
            repeatable=False,
        )
        return await self._transport.read(call, lambda answer: answer.json(Version))

    async def make_current(self, project: int, version: str) -> Version:
        """Let new jobs run a version."""
        call = ClientCall(method="POST", host=Host.APP, path=_path(project, version, "current"), body=b"", accept=JSON)
        return await self._transport.read(call, lambda answer: answer.json(Version))

    async def delete(self, project: int, version: str) -> None:
        """Delete a version that nothing needs."""
        await self._transport.send(delete(Host.APP, _path(project, version)))


def _path(project: int, *more: str) -> str:
    return path("api", "projects", project, "versions", *more)
