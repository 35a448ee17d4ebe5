"""A site with pages that are banned and pages that are not, and the limits that further tries keep to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from email.utils import formatdate

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target
from tests.support.refusing_site import CAPTCHA, CHALLENGE, RefusingSite
from tests.support.upstream_proxy import Upstream

BODY = {"httpResponseBody": True}
POST = {"httpRequestMethod": "POST", **BODY}
SOURCES = ("127.0.0.51", "127.0.0.52", "127.0.0.53")


@pytest.fixture(scope="module")
def proxies() -> Iterator[tuple[str, ...]]:
    """Rules of three proxies."""
    with ExitStack() as stack:
        running = [stack.enter_context(Upstream(source=source)) for source in SOURCES]
        yield tuple(f"*:*={proxy.address}?name=p{number}" for number, proxy in enumerate(running))


@pytest.fixture
def service(target: Target, proxies: tuple[str, ...]) -> Iterator[Service]:
    with Service(allow_hosts=(target.host,), proxies=proxies) as running:
        yield running


# Requests by POST are never sent by the browser, which these tests do without.


def status(service: Service, url: str, key: str | None = None) -> int:
    return service.extract(url=url, **POST, **({"key": key} if key else {})).status


def test_a_page_that_is_banned_for_all_does_not_stop_the_pages_around_it(target: Target, service: Service) -> None:
    banned = target.page("/banned", CAPTCHA, 403)
    for number in range(12):
        assert status(service, banned) == 520
        assert status(service, target.page(f"/open/{number}", "a page")) == 200


def test_one_page_that_is_requested_again_and_again_does_not_stop_a_site(target: Target, service: Service) -> None:
    banned = target.page("/banned", CAPTCHA, 403)
    for _ in range(10):
        assert status(service, banned) == 520
    # By all three, then by one at a time.
    assert len(target.calls_of("/banned")) == 3 + 9
    assert not list(service.service.pool._rests.cooling())


def test_a_probe_gets_an_open_page_while_all_proxies_cool_down(target: Target, service: Service) -> None:
    for number in range(6):
        assert status(service, target.page(f"/banned/{number}", CAPTCHA, 403)) == 520
    assert service.service.pool.cooling() == 3
    # After three pages all cool down, and each further page is requested once.
    assert [len(target.calls_of(f"/banned/{number}")) for number in range(6)] == [3, 3, 3, 1, 1, 1]
    again = service.extract(url=target.url("/banned/0"), **POST)
    assert (again.status, len(target.calls_of("/banned/0"))) == (520, 3)
    assert 0 < int(again.headers["retry-after"]) <= 60
    urls = [target.page(f"/open/{number}", "a page") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda url: status(service, url), urls)) == [200] * 8
    assert service.service.pool.cooling() < 3


def test_an_organisation_does_not_stop_a_site_for_another(target: Target, service: Service) -> None:
    banned = [target.page(f"/banned/{number}", CAPTCHA, 403) for number in range(5)]
    for url in banned[:4]:
        status(service, url)
    assert len(target.calls_of("/banned/3")) == 1
    status(service, banned[4], key="stranger")
    assert len(target.calls_of("/banned/4")) == 3


def test_a_challenge_of_a_post_does_not_stop_a_site(target: Target, service: Service) -> None:
    for number in range(6):
        assert status(service, target.page(f"/challenge/{number}", CHALLENGE, 403)) == 520
    assert service.service.pool.cooling() == 0


@pytest.mark.parametrize("code", [202, 401, 405, 406, 418, 428, 429, 503, 599, 999])
def test_a_status_alone_is_a_result(target: Target, service: Service, code: int) -> None:
    for number in range(2):
        url = target.page(f"/status/{code}/{number}", "<h1>A page</h1>", code)
        assert service.result(url=url, **BODY)["statusCode"] == code
    assert service.service.pool.cooling() == 0


# ── limits ──


def test_further_tries_wait_for_the_next_start_of_their_domain(proxies: tuple[str, ...]) -> None:
    delay = 1.0
    times: list[float] = []
    with RefusingSite(banned=SOURCES) as site:
        site.ban = (403, "no")
        answer = site._answer
        site._answer = lambda *given: (times.append(time.monotonic()), answer(*given))[1]  # type: ignore[method-assign]
        with Service(allow_hosts=(site.host,), proxies=proxies, domain_delay=delay) as service:
            assert service.result(url=f"{site.url}/page/1", **BODY)["statusCode"] == 403
    assert len(times) == 3
    assert times[2] - times[0] > delay


def test_further_tries_count_for_rates_and_end_where_these_do(proxies: tuple[str, ...]) -> None:
    with RefusingSite(banned=SOURCES) as site:
        site.ban = (403, "no")
        # A burst of two: the third try is one too many, however long the others take.
        with Service(allow_hosts=(site.host,), proxies=proxies, domain_rate=0.501) as service:
            rates = service.service._rates._by_domain
            assert rates is not None
            rates._clock = lambda: 0.0
            assert service.result(url=f"{site.url}/page/1", **BODY)["statusCode"] == 403
            assert site.calls.total() == 2
            assert service.extract(url=f"{site.url}/page/2", **BODY).status == 429


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_after_a_429_one_other_address_is_tried_and_the_pause_of_the_site_is_kept(
    target: Target, proxies: tuple[str, ...], form: str
) -> None:
    wait = "900" if form == "seconds" else formatdate(time.time() + 900, usegmt=True)
    limited = target.page("/limited", "slow down", 429, Retry_After=wait)
    with Service(allow_hosts=(target.host,), proxies=proxies) as service:
        assert service.result(url=limited, **BODY)["statusCode"] == 429
        assert len(target.calls_of("/limited")) == 2
        paused = {upstream for _, upstream in service.service.pool._pauses}
        assert len(paused) == 2
        # The other pages go through the proxy that is left.
        for number in range(8):
            assert status(service, target.page(f"/open/{number}", "a page")) == 200
        passed = {row.proxy: row.passed for row in service.service.pool.totals()}
        assert sorted(passed.values())[-1] == 8
