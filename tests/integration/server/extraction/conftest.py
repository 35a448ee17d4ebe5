from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_ext.server.config.extraction_limits import Limits
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

#: Times as in production: what runs out of them hangs. Tests of a time that is over have a service of their own.
LIMITS = Limits(body_bytes=1024 * 1024, redirects=5)


@pytest.fixture(scope="session")
def target() -> Iterator[Target]:
    """A site that the service may fetch."""
    site = Target().start()
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def _no_call_is_of_another_test(target: Target) -> None:
    target.calls.clear()


@pytest.fixture(scope="session")
def forbidden() -> Iterator[Target]:
    """A site on loopback that nobody allowed: it must never be called."""
    site = Target().start_on_a_web_port()
    site.page("/", "<h1>inside</h1>")
    yield site
    site.stop()


@pytest.fixture(scope="session")
def service(target: Target) -> Iterator[Service]:
    rules = (f"shop.example:80=127.0.0.1:{target.port}", f"other.example:80=127.0.0.1:{target.port}")
    with Service(allow_hosts=(target.host,), connect_to=rules, limits=LIMITS) as running:
        yield running
