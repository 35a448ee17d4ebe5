"""A site that bans by address, fetched through pools of real proxies, each of which has an address of its own."""

from __future__ import annotations

import base64
import logging
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scrapy_ext.server.net.health import COMPARED
from scrapy_ext.server.net.pool import Scope
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target, self_signed
from tests.support.refusing_site import CAPTCHA, RefusingSite
from tests.support.upstream_proxy import Upstream

BODY = {"httpResponseBody": True}
#: Addresses of this machine from which the proxies connect.
SOURCES = ("127.0.0.11", "127.0.0.12", "127.0.0.13")


@pytest.fixture
def proxies() -> Iterator[list[Upstream]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Upstream(source=source)) for source in SOURCES]


def rules(proxies: list[Upstream], kind: str = "*:*") -> tuple[str, ...]:
    return tuple(f"{kind}={proxy.address}?name=p{number}" for number, proxy in enumerate(proxies))


def figures(service: Service) -> dict[str, tuple[int, int, int]]:
    """Passed, banned and failed requests of each proxy at the site, by HTTP."""
    rows = [each for each in service.service.pool.by_site() if each.by == "http"]
    return {each.proxy: (each.passed, each.banned, each.failed) for each in rows}


def test_every_page_arrives_through_the_proxy_that_is_left_and_the_banned_ones_are_left_alone(
    proxies: list[Upstream],
) -> None:
    with (
        RefusingSite(banned=SOURCES[:2]) as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies)) as service,
    ):
        for number in range(site.pages):
            result = service.result(url=f"{site.url}/page/{number}", **BODY)
            assert (result["statusCode"], site.sent[f"/page/{number}"]) == (200, 1)
            assert f"Page /page/{number}".encode() in base64.b64decode(result["httpResponseBody"])
        # Each banned proxy was used once at most, then left alone for its cool-down.
        assert all(site.calls[source] <= 1 for source in SOURCES[:2])
        assert site.calls["127.0.0.1"] == 0
        assert figures(service)["p2"] == (site.pages, 0, 0)


#: As a site shows it in any language, with status 200.
FOREIGN_CAPTCHA = '<p>Bitte bestätigen Sie, dass Sie kein Roboter sind.<div class="g-recaptcha"></div>'


@pytest.mark.parametrize(
    ("ban", "banned"), [((403, "no"), 2), ((429, ""), 1), ((200, FOREIGN_CAPTCHA), 2)], ids=["403", "429", "captcha"]
)
def test_a_plain_refusal_is_a_ban_where_another_proxy_gets_the_page(
    proxies: list[Upstream], ban: tuple[int, str], banned: int
) -> None:
    """After a 429 there is one further try."""
    with (
        RefusingSite(banned=SOURCES[:banned]) as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies)) as service,
    ):
        site.ban = ban
        for number in range(5):
            assert service.result(url=f"{site.url}/page/{number}", **BODY)["statusCode"] == 200
        assert all(site.calls[source] <= 1 for source in SOURCES[:banned])


@pytest.mark.parametrize(("status", "tries"), [(403, 3), (429, 2), (999, 3)])
def test_a_refusal_that_every_proxy_gets_is_the_result_and_not_asked_for_again_by_each(
    proxies: list[Upstream], status: int, tries: int
) -> None:
    with (
        RefusingSite(banned=SOURCES) as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies)) as service,
    ):
        site.ban = (status, "<h1>For members only</h1>")
        for expected in (tries, tries + 1, tries + 2):
            result = service.result(url=f"{site.url}/page/1", **BODY)
            assert (result["statusCode"], b"members" in base64.b64decode(result["httpResponseBody"])) == (status, True)
            assert site.calls.total() == expected
        assert {(banned, failed) for _, banned, failed in figures(service).values()} == {(0, 0)}


def test_when_a_url_is_banned_by_all_the_answer_is_520_and_it_gets_one_try_afterwards(proxies: list[Upstream]) -> None:
    with (
        RefusingSite(banned=SOURCES) as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies)) as service,
    ):
        fields = {"url": f"{site.url}/page/1", "httpRequestMethod": "POST", **BODY}
        for calls in (3, 4):
            answer = service.extract(**fields)
            assert (answer.status, answer.json["title"]) == (520, "Website Ban")
            assert "perimeterx" in answer.json["detail"]
            assert answer.headers["extract-cause"] == "ban"
            assert answer.headers["retry-after"] == "30"
            assert site.calls.total() == calls


def test_a_proxy_that_fails_is_replaced_and_avoided(proxies: list[Upstream]) -> None:
    dead = "http://user-7:secret@127.0.0.1:1"
    with (
        RefusingSite() as site,
        Service(
            allow_hosts=(site.host,), proxies=(f"*:*={dead}?name=dead&weight=1000", *rules(proxies[:1]))
        ) as service,
    ):
        for number in range(5):
            assert service.result(url=f"{site.url}/page/{number}", **BODY)["statusCode"] == 200
        assert figures(service) == {"dead": (0, 0, 1), "p0": (5, 0, 0)}


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_post_goes_by_another_proxy_where_one_failed_before_it_was_sent(proxies: list[Upstream], scheme: str) -> None:
    status = 502 if scheme == "http" else 5
    with (
        RefusingSite() as site,
        Upstream(status=status, scheme=scheme) as broken,
        Service(
            allow_hosts=(site.host,), proxies=(f"*:*={broken.address}?weight=1000", *rules(proxies[:1]))
        ) as service,
    ):
        for number in range(3):
            fields = {"httpRequestMethod": "POST", "httpRequestText": "order"}
            assert service.result(url=f"{site.url}/page/{number}", **fields, **BODY)["statusCode"] == 200
        assert broken.asked
        assert site.calls.total() == 3


def test_a_post_is_not_sent_again_once_it_was_sent(target: Target, proxies: list[Upstream]) -> None:
    # No proxy reaches the second hop, after the first one had the order.
    url = target.page("/order", "", 307, Location="http://shop.example:81/")
    for proxy in proxies:
        proxy.unreached = {"127.0.0.1:81"}
    connect = ("shop.example:81=127.0.0.1:81",)
    with Service(allow_hosts=(target.host,), connect_to=connect, proxies=rules(proxies)) as service:
        answer = service.extract(url=url, httpRequestMethod="POST", httpRequestText="one", **BODY)
        assert (answer.status, answer.headers["extract-cause"]) == (520, "proxy")
        assert len(target.calls_of("/order")) == 1
        service.extract(url=url, **BODY)
        assert len(target.calls_of("/order")) == 1 + len(proxies)


def test_a_post_that_was_redirected_to_a_ban_is_not_sent_again(target: Target, proxies: list[Upstream]) -> None:
    target.page("/captcha", CAPTCHA, 403)
    url = target.page("/order", "", 302, Location="/captcha")
    with Service(allow_hosts=(target.host,), proxies=rules(proxies)) as service:
        answer = service.extract(url=url, httpRequestMethod="POST", httpRequestText="one", **BODY)
        assert (answer.status, answer.headers["extract-cause"]) == (520, "ban")
        assert len(target.calls_of("/order")) == 1
        service.extract(url=url, **BODY)
        assert len(target.calls_of("/order")) >= 2


def test_a_site_that_no_proxy_reaches_is_the_fault_of_none(target: Target, proxies: list[Upstream]) -> None:
    dead, connect = "http://dead.example:81", ("dead.example:81=127.0.0.1:81",)
    for proxy in proxies:
        proxy.unreached = {"127.0.0.1:81"}
    first, *others = rules(proxies)
    with Service(allow_hosts=(target.host,), connect_to=connect, proxies=(f"{first}&weight=1000", *others)) as service:
        for number in range(5):
            answer = service.extract(url=f"{dead}/{number}", **BODY)
            assert (answer.status, answer.headers["extract-cause"]) == (520, "proxy")
        assert service.service.pool.cooling() == 0
        # One that fails where others get the page is avoided.
        proxies[0].unreached = {f"127.0.0.1:{target.port}"}
        for number in range(100):
            service.result(url=target.page(f"/{number}", "ok"), **BODY)
        assert [each.proxy for each in service.service.pool.totals() if each.cooling] == ["p0"]


def test_a_session_keeps_its_proxy_after_a_page_that_is_refused_to_all(proxies: list[Upstream]) -> None:
    with (
        RefusingSite() as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies)) as service,
    ):
        session = {"id": str(uuid.uuid4())}
        service.result(url=f"{site.url}/page/1", session=session, **BODY)
        (own,) = site.calls
        site.banned, site.ban = set(SOURCES), (403, "<h1>For members only</h1>")
        for number in range(3):
            assert service.result(url=f"{site.url}/members/{number}", session=session, **BODY)["statusCode"] == 403
        site.banned = set()
        site.calls.clear()
        service.result(url=f"{site.url}/page/2", session=session, **BODY)
        assert list(site.calls) == [own]
        # It moves with a page that another one gets.
        site.banned = {own}
        service.result(url=f"{site.url}/page/3", session=session, **BODY)
        (other,) = set(site.calls) - {own}
        site.calls.clear()
        for number in range(4, 8):
            service.result(url=f"{site.url}/page/{number}", session=session, **BODY)
        assert list(site.calls) == [other]


def test_a_request_that_the_browser_does_not_send_counts_once(proxies: list[Upstream]) -> None:
    with (
        RefusingSite() as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies), domain_rate=0.0001) as service,
    ):
        scope, pool = Scope(site.host, "http", "tests"), service.service.pool
        for name in ("one", "two", "three"):
            service.service._bans.learned.passed_by_browser(scope, name)
        for proxy in pool.tiers(None, None)[0][0]:
            pool.banned(scope._replace(by="browser"), proxy, COMPARED)
        assert service.result(url=f"{site.url}/page/1", **BODY)["statusCode"] == 200
        assert service.extract(url=f"{site.url}/page/1", **BODY).status == 429


def test_after_a_ban_of_the_servers_own_address_proxies_of_any_type_are_tried(proxies: list[Upstream]) -> None:
    with (
        RefusingSite(banned=("127.0.0.1",)) as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies[:1], "*:residential")) as service,
    ):
        assert service.result(url=f"{site.url}/page/1", **BODY)["statusCode"] == 200
        assert dict(site.calls) == {"127.0.0.1": 1, SOURCES[0]: 1}
        # It cools down as a proxy does.
        for number in range(2, 6):
            assert service.result(url=f"{site.url}/page/{number}", **BODY)["statusCode"] == 200
        assert dict(site.calls) == {"127.0.0.1": 1, SOURCES[0]: 5}


def test_without_detection_a_ban_page_is_a_result(proxies: list[Upstream]) -> None:
    with (
        RefusingSite(banned=SOURCES) as site,
        Service(allow_hosts=(site.host,), proxies=rules(proxies), ban_detection=False) as service,
    ):
        assert service.result(url=f"{site.url}/page/1", **BODY)["statusCode"] == 403
        assert site.calls.total() == 1


# ── kinds of proxies ──


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "password"])
@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
@pytest.mark.parametrize("secure", [False, True], ids=["http-site", "https-site"])
def test_every_kind_of_proxy_leads_to_sites_by_their_checked_address(
    tmp_path: Path, scheme: str, is_open: bool, secure: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    certificate = self_signed(tmp_path) if scheme == "https" or secure else None
    site = Target(ssl=certificate if secure else None).start()
    url = site.page("/", "hello")
    options = "?verify=no" if scheme == "https" else ""
    with Upstream(scheme=scheme, tls=certificate if scheme == "https" else None, is_open=is_open) as proxy:
        rule = f"*:*={proxy.address}{options}"
        with Service(allow_hosts=(site.host,), proxies=(rule,), verify_tls=False) as service:
            assert base64.b64decode(service.result(url=url, **BODY)["httpResponseBody"]) == b"hello"
        assert proxy.asked == [f"127.0.0.1:{site.port}"]
    site.stop()
    assert "pass" not in caplog.text


def test_the_certificate_of_an_https_proxy_is_verified(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with (
        RefusingSite() as site,
        Upstream(scheme="https", tls=certificate) as proxy,
        Service(allow_hosts=(site.host,), proxies=(f"*:*={proxy.address}?name=secure",)) as service,
    ):
        detail = service.problem(520, "/download/temporary-error", url=f"{site.url}/page/1", **BODY)
        assert detail == "The proxy secure did not answer. Ask the operator of this server to check it."
        assert proxy.asked == []


@pytest.mark.parametrize(
    ("address", "lie", "message"),
    [
        ("socks5://user-7:wrong-secret@127.0.0.1:{port}", None, "refused this server's credentials"),
        ("socks5://127.0.0.1:{port}", None, "refused this server's credentials"),
        ("{address}", b"\x05\x05\x00\x01\0\0\0\0\0\0", "did not reach localhost: its answer had the status 5"),
        ("{address}", b"HTTP/1.1 400 Bad Request\r\n\r\n", "did not answer"),
        ("{address}", b"\x05\x00\x00\x09\0\0\0", "did not answer"),
    ],
    ids=["wrong-password", "no-password", "refused", "http", "malformed"],
)
def test_a_socks_proxy_that_fails_is_520_without_its_address_and_credentials(
    caplog: pytest.LogCaptureFixture, address: str, lie: bytes | None, message: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with RefusingSite() as site, Upstream(scheme="socks5", lie=lie) as proxy:
        rule = "*:*=" + address.format(port=proxy.port, address=proxy.address)
        with Service(allow_hosts=(site.host,), proxies=(rule,)) as service:
            detail = service.problem(520, "/download/temporary-error", url=f"{site.url}/page/1", **BODY)
            assert message in detail
            assert "127.0.0.1" not in detail
        assert site.calls.total() == 0
    for secret in ("wrong-secret", "user-7", "pass@word"):
        assert secret not in caplog.text


def test_the_guard_checks_addresses_before_a_socks_proxy(forbidden: Target) -> None:
    with Upstream(scheme="socks5") as proxy, Service(proxies=(f"*:*={proxy.address}",)) as service:
        assert "not public" in service.problem(421, "/website/domain-unreachable", url=forbidden.url(), **BODY)
        assert proxy.asked == []
    assert forbidden.connections == 0
