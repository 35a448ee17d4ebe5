from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.eventually import eventually_async
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

#: Times as in production, but for a shorter quiet: what runs out of them hangs. page_bytes is for endless pages.
LIMITS = ServiceLimits(
    frames=5,
    quiet=0.2,
    page_bytes=8 * 1024 * 1024,
    page_heap_mib=128,
    page_memory_mib=250,
    look=0.1,
)
#: Short waits for the site and its pages, so that those that run out of them cost the tests little.
SHORT_LIMITS = msgspec.structs.replace(LIMITS, navigate=8, load=2, settle=2, read_page=8, actions=5)


@pytest.fixture(scope="session")
def site() -> Iterator[Target]:
    """A site that the service may fetch."""
    target = Target().start()
    yield target
    target.stop()


@pytest.fixture(autouse=True)
def _no_call_is_of_another_test(site: Target) -> None:
    site.calls.clear()


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
    with serving(site, LIMITS) as running:
        yield running


def serving(site: Target, limits: ServiceLimits) -> Service:
    """A service that may fetch the site, which has several names."""
    rules = tuple(f"{name}.example:80=127.0.0.1:{site.port}" for name in ("shop", "frame", "other"))
    return Service(allow_hosts=(site.host,), connect_to=rules, limits=limits)


@pytest.fixture(autouse=True)
def _every_context_is_closed(service: Service) -> Iterator[None]:
    """Holds for every test: a page that was opened is closed, whatever became of it."""
    yield
    browser = service.service.browser

    async def all_closed() -> None:
        await eventually_async(lambda: browser.contexts_opened == browser.contexts_closed)

    service.run(asyncio.wait_for(all_closed(), 120))
