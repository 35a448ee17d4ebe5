"""Pages that are opened ahead of their requests, beside the pages before them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tests.acceptance.server.extraction.browser.conftest import LIMITS, serving
from tests.support.eventually import eventually
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

_STATE = """<body><script>
document.body.append(`seen:${localStorage.length},${document.cookie}.`);
localStorage.x = 1; document.cookie = 'x=1'; window.name = 'x';
</script>"""


@pytest.fixture(scope="module")
def own(site: Target) -> Iterator[Service]:
    """A service of which no other test takes pages."""
    with serving(site, msgspec.structs.replace(LIMITS, spare_pages=2, spare_idle=30)) as running:
        yield running


def with_spares(service: Service, url: str) -> None:
    """Load pages of one kind until there are spare ones."""
    for _ in range(2):
        service.result(url=url, browserHtml=True)
    assert service.service.browser.spare_pages


def test_a_spare_page_is_of_one_request_alone(own: Service, site: Target) -> None:
    url = site.page("/spare", _STATE)
    with_spares(own, url)
    for _ in range(4):
        assert "seen:0,." in own.result(url=url, browserHtml=True)["browserHtml"]
        assert site.calls_of("/spare")[-1].header("cookie") is None
    browser = own.service.browser
    eventually(lambda: browser.contexts_opened == browser.contexts_closed)
    assert browser.spare_pages


def test_spare_pages_are_bounded(own: Service, site: Target) -> None:
    url = site.page("/many", "many")
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda _: own.result(url=url, browserHtml=True), range(12)))
    assert 1 <= own.service.browser.spare_pages <= 2


def test_a_page_of_another_kind_is_no_spare_one(own: Service, site: Target) -> None:
    url = site.page(
        "/kind", "<body><script>document.body.append(screen.width, ' ', /Mobile/.test(navigator.userAgent))</script>"
    )
    with_spares(own, url)
    result = own.result(url=url, browserHtml=True, viewport={"width": 700, "height": 500}, device="mobile")
    assert "700 true" in result["browserHtml"]
    assert own.service.browser.spare_pages == 0
    assert "1280 false" in own.result(url=url, browserHtml=True)["browserHtml"]


def test_there_are_no_spare_pages_without_requests(site: Target) -> None:
    with serving(site, msgspec.structs.replace(LIMITS, spare_idle=1)) as running:
        url = site.page("/idle", "idle")
        for _ in range(2):
            running.result(url=url, browserHtml=True)
        browser = running.service.browser
        eventually(lambda: browser.spare_pages == 0)
        assert running.result(url=url, browserHtml=True)["statusCode"] == 200
