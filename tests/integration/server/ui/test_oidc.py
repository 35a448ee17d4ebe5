"""Login of people by OpenID Connect: who gets in, with which rights, and what a faulty provider achieves."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import lxml.html
import pytest

from tests.support.oidc_provider import SECRET, OidcProvider
from tests.support.servers import RunningServer

HTML = {"Accept": "text/html,*/*;q=0.8"}
PUBLIC = "http://127.0.0.1:8700"


class Person:
    """A browser, as far as it keeps cookies and follows redirects between the server and the provider."""

    def __init__(self, server: RunningServer) -> None:
        self.url = server.url
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), headers=HTML)

    async def get(self, path: str) -> tuple[int, str, str]:
        """Return status, location and text of a page; the server's public address leads to the server."""
        url = (path if path.startswith("http") else self.url + path).replace(PUBLIC, self.url)
        async with self.session.get(url, allow_redirects=False) as answer:
            return answer.status, answer.headers.get("Location", ""), await answer.text()

    async def log_in(self, onward: str = "/") -> tuple[int, str]:
        """Return status and text of the answer at the end of a login."""
        _, url, _ = await self.get(f"/login/oidc?next={onward}&moved=1")
        _, back, _ = await self.get(url)
        status, _, text = await self.get(back)
        return status, text

    async def post(self, path: str, fields: dict[str, str]) -> tuple[int, str]:
        document = lxml.html.document_fromstring((await self.get("/ui/none"))[2])
        token = document.xpath("//input[@name='token']/@value")[0]
        headers = {"Origin": self.url}
        async with self.session.post(
            self.url + path, data={"token": token, **fields}, headers=headers, allow_redirects=False
        ) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with OidcProvider() as provider:
        yield provider


def running(provider: OidcProvider, data: Path, *options: str, **more: Any) -> RunningServer:
    environment = {"SERVER_OIDC_CLIENT_SECRET": SECRET}
    return RunningServer(data, options=(*provider.options(PUBLIC), *options), environment=environment, **more)


@pytest.fixture
async def server(provider: OidcProvider, tmp_path: Path) -> AsyncIterator[RunningServer]:
    with running(provider, tmp_path) as server:
        yield server


@pytest.fixture
async def person(server: RunningServer) -> AsyncIterator[Person]:
    person = Person(server)
    yield person
    await person.session.close()


async def test_a_person_logs_in_and_sees_nothing_before_an_operator_gives_a_role(
    server: RunningServer, person: Person, provider: OidcProvider
) -> None:
    status, text = await person.log_in("/ui/7/jobs?state=running")
    assert status == 200
    assert re.search(r'content="0; url=/ui/7/jobs\?state=running"', text)
    status, _, text = await person.get("/ui/7/jobs")
    assert status == 403
    assert "you have no role in any project yet" in text
    assert "ada@example.com" in text
