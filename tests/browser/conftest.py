from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from scrapy_ext.server.extraction.limits import Limits
from tests.server.extraction.services import Service
from tests.server.extraction.targets import Target

#: Short waits, so that hostile pages cost the tests little; page_bytes is for the endless ones.
LIMITS = Limits(
    frames=5,
    navigate=6,
    load=2,
    quiet=0.2,
    settle=2,
    read_page=5,
    actions=4,
    respond=8,
    close=5,
    page_bytes=8 * 1024 * 1024,
    page_heap_mib=128,
    page_memory_mib=250,
    look=0.1,
)


@pytest.fixture(scope="session")
def site() -> Iterator[Target]:
    """A site that the service may fetch."""
    target = Target().start()
    yield target
    target.stop()


@pytest.fixture(scope="session")
def forbidden() -> Iterator[Target]:
    """A site on loopback, on a port open for public hosts, that nobody allowed: it must never be called."""
    target = Target().start_on_a_web_port()
    target.page("/", "<h1>inside</h1>")
    yield target
    target.stop()


@pytest.fixture(scope="session")
def service(site: Target) -> Iterator[Service]:
    """One service with one real Chromium for all tests here."""
    rules = tuple(f"{name}.example:80=127.0.0.1:{site.port}" for name in ("shop", "frame", "other"))
    with Service(allow_hosts=(site.host,), connect_to=rules, limits=LIMITS) as running:
        yield running


@pytest.fixture(autouse=True)
def _every_context_is_closed(service: Service) -> Iterator[None]:
    """Holds for every test: a page that was opened is closed, whatever became of it."""
    yield
    browser = service.service.browser

    async def all_closed() -> None:
        while browser.contexts_opened != browser.contexts_closed:
            await asyncio.sleep(0.02)

    service.run(asyncio.wait_for(all_closed(), 20))
