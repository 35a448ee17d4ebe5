"""``geolocation`` and ``ipType``: through which of the operator's proxies a request leaves, and what else it gets."""

from __future__ import annotations

import base64
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.outgoing import language_of
from scrapy_ext.server.net.pool import ProxyPool, Scope
from scrapy_ext.server.net.upstream import ProxyRuleError
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target, self_signed
from tests.support.upstream_proxy import Upstream

BODY = {"httpResponseBody": True}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture(scope="module")
def dead_port() -> Iterator[int]:
    """A port that nobody else takes, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(scope="module")
def service(target: Target, upstream: Upstream, dead_port: int) -> Iterator[Service]:
    proxies = (
        f"DE:residential={upstream.address}",
        f"US:*={upstream.address}",
        f"FR:datacenter=http://user-7:wrong@127.0.0.1:{upstream.port}",
        f"IT=http://user-7:secret@127.0.0.1:{dead_port}",
    )
    rules = (f"shop.example:80=127.0.0.1:{target.port}",)
    with Service(allow_hosts=(target.host,), connect_to=rules, proxies=proxies) as running:
        yield running


def test_a_request_for_a_country_leaves_through_its_proxy_with_its_language(
    service: Service, target: Target, upstream: Upstream
) -> None:
    target.page("/from", "hello", Set_Cookie="a=1")
    before = len(upstream.asked)
    result = service.result(url="http://shop.example/from", geolocation="DE", httpResponseHeaders=True, **BODY)
    assert base64.b64decode(result["httpResponseBody"]) == b"hello"
    assert "connection" not in [header["name"].lower() for header in result["httpResponseHeaders"]]
    # An address that was checked, and no name to look up anew.
    assert upstream.asked[before:] == [f"127.0.0.1:{target.port}"]
    call = target.calls_of("/from")[-1]
    assert call.header("accept-language") == "de-DE,de;q=0.9"
    assert call.header("proxy-authorization") is None


def test_a_request_that_names_neither_goes_out_by_itself(service: Service, target: Target, upstream: Upstream) -> None:
    before = len(upstream.asked)
    service.result(url=target.page("/direct", "ok"), **BODY)
    assert upstream.asked[before:] == []
    assert target.calls_of("/direct")[-1].header("accept-language") == "en-US,en;q=0.9"


def test_redirects_and_posts_go_through_the_proxy_too(service: Service, target: Target, upstream: Upstream) -> None:
    end = target.page("/end", "there")
    url = target.page("/start", "", 307, Location=end)
    before = len(upstream.asked)
    service.result(url=url, ipType="residential", httpRequestMethod="POST", httpRequestText="data", **BODY)
    assert len(upstream.asked) == before + 2
    assert target.calls_of("/end")[-1].body == b"data"


def test_https_goes_through_the_proxy(tmp_path: Path, upstream: Upstream) -> None:
    site = Target(ssl=self_signed(tmp_path)).start()
    url = site.page("/", "safe")
    with Service(allow_hosts=(site.host,), proxies=(f"*:*={upstream.address}",), verify_tls=False) as running:
        before = len(upstream.asked)
        # A proxy for everything takes what names nothing, too.
        assert base64.b64decode(running.result(url=url, **BODY)["httpResponseBody"]) == b"safe"
        assert len(upstream.asked) == before + 1
    site.stop()


def test_the_guard_has_its_say_before_the_proxy(service: Service, forbidden: Target, upstream: Upstream) -> None:
    before = len(upstream.asked)
    detail = service.problem(421, "/website/domain-unreachable", url=forbidden.url(), geolocation="US", **BODY)
    assert "not public" in detail
    assert upstream.asked[before:] == []
    assert forbidden.connections == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"geolocation": "JP"}, "geolocation: asks for an address of JP"),
        ({"geolocation": "FR", "ipType": "residential"}, "ipType: asks for an address of residential in FR"),
        ({"geolocation": "JP", "ipType": "residential"}, "geolocation: asks for an address of JP"),
    ],
)
def test_what_no_proxy_is_for_is_422_naming_the_field_and_what_there_is(
    service: Service, fields: dict[str, str], message: str
) -> None:
    detail = service.problem(422, "/request/unprocessable", url="https://example.com/", **fields, **BODY)
    assert message in detail
    assert "DE:residential, FR:datacenter, IT, US:*" in detail


@pytest.mark.parametrize(
    ("country", "message"), [("IT", "did not answer"), ("FR", "refused this server's credentials")]
)
def test_a_proxy_that_fails_is_520_without_its_address_and_credentials(
    service: Service, target: Target, caplog: pytest.LogCaptureFixture, country: str, message: str
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = service.extract(url=target.url(), geolocation=country, **BODY)
    assert (answer.status, answer.json["type"]) == (520, "/download/temporary-error")
    assert int(answer.headers["retry-after"]) >= 0
    assert message in answer.json["detail"]
    assert "127.0.0.1" not in answer.json["detail"]
    for secret in ("user-7", "secret", "wrong", base64.b64encode(b"user-7:secret").decode()):
        assert secret not in answer.json["detail"]
        assert secret not in caplog.text


def test_a_proxy_that_does_not_reach_the_site_is_520(target: Target) -> None:
    with (
        Upstream(status=502) as refusing,
        Service(allow_hosts=(target.host,), proxies=(f"*={refusing.address}",)) as running,
    ):
        detail = running.problem(520, "/download/temporary-error", url=target.url(), geolocation="DE", **BODY)
    assert detail == "The proxy * did not reach localhost: its answer had the status 502. Send the request again later."


OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"
#: What a proxy answers to CONNECT, what follows without end, and the status and reason of the request.
LIES = {
    "garbage": (b"\x00\xff\x00 hello\r\n\r\n", b"", 520, "status none"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"", 520, "status none"),
    "headers without end": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 520, "did not answer"),
    "a line without end": (b"HTTP/1.1 200 ", b"a", 520, "did not answer"),
    "nothing": (b"", b"", 520, "did not answer"),
    "a wish for other credentials": (
        b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\n\r\n",
        b"",
        520,
        "refused this server's credentials",
    ),
    "a redirect": (b"HTTP/1.1 302 Found\r\nLocation: {forbidden}\r\n\r\n", b"", 520, "status 302"),
    "a redirect in the site's name": (
        OPEN + b"HTTP/1.1 302 Found\r\nLocation: {forbidden}\r\nContent-Length: 0\r\n\r\n",
        b"",
        421,
        "not public",
    ),
    "a page without end": (OPEN + b"HTTP/1.1 200 OK\r\n\r\n", b"x", 521, "more than"),
    "a page's headers without end": (OPEN + b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", None, ""),
    "no page": (OPEN + b"\x15\x03\x01\x00", b"", None, ""),
    "a page that is cut short": (OPEN + b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx", b"", 520, "did not answer"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.long(keep=3)
def test_a_proxy_that_lies_fails_the_request_alone_and_leads_nowhere(
    target: Target, forbidden: Target, lie: str
) -> None:
    answer, endless, status, message = LIES[lie]
    answer = answer.replace(b"{forbidden}", forbidden.url().encode())
    limits = ServiceLimits(connect=2, fetch=4, body_bytes=1_000_000)
    with (
        Upstream(lie=answer, endless=endless) as liar,
        Service(allow_hosts=(target.host,), proxies=(f"DE={liar.address}",), limits=limits) as running,
    ):
        failed = running.extract(url=target.url(), geolocation="DE", **BODY)
        assert failed.status in ([status] if status else [520, 521]), failed.body
        assert message in failed.json["detail"]
        assert "user-7" not in failed.json["detail"]
        assert liar.asked == [f"127.0.0.1:{target.port}"]
        assert running.result(url=target.page("/still", "there"), **BODY)["statusCode"] == 200
    assert forbidden.connections == 0


def test_a_proxy_that_answers_in_a_sites_name_cannot_do_so_over_tls(tmp_path: Path) -> None:
    site = Target(ssl=self_signed(tmp_path)).start()
    page = OPEN + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"
    with Upstream(lie=page) as liar, Service(allow_hosts=(site.host,), proxies=(f"DE={liar.address}",)) as running:
        assert running.extract(url=site.url(), geolocation="DE", **BODY).status in (520, 521)
    site.stop()


# ── rules ──


def chosen(rules: str, country: str | None, ip_type: str | None) -> str | None:
    pool = ProxyPool(f"{rule}=http://p:1" for rule in rules.split())
    tiers, violations = pool.tiers(country, ip_type)
    if violations:
        return "422"
    found = pool.choose(Scope("shop.example"), tiers)
    assert found is not None
    return found[0] and found[0].name


@pytest.mark.parametrize(
    ("rules", "country", "ip_type", "name"),
    [
        ("US:residential US:* *:residential *:*", "US", "residential", "US:residential"),
        ("US:datacenter *:*", "US", "residential", "*:*"),
        ("US:datacenter US:*", "US", None, "US:*"),
        ("US:residential *:residential", None, "residential", "*:residential"),
        ("US:residential", None, "residential", "US:residential"),
        ("US:residential", "US", None, "US:residential"),
        ("US:residential", "US", "datacenter", "422"),
        ("US:residential *:datacenter", None, None, None),
        ("US:* *:*", None, None, "*:*"),
        ("", None, None, None),
    ],
)
def test_the_proxy_that_says_most_of_what_was_asked_is_taken(
    rules: str, country: str | None, ip_type: str | None, name: str | None
) -> None:
    assert chosen(rules, country, ip_type) == name


@pytest.mark.parametrize(
    "rule",
    ["http://me:hidden@p:1", "US", "us=http://me:hidden@p:1", "US:mobile=http://me:hidden@p:1", "US=me:hidden@p:1",
     "US=http://me:hidden@p", "US=socks4://me:hidden@p:1", "US=http://me:hidden@p:x", "US=http://me:hidden@p:1/path"],
)  # fmt: skip
def test_a_rule_that_cannot_be_read_says_how_to_write_it_and_hides_credentials(rule: str) -> None:
    with pytest.raises(ProxyRuleError, match=r"Write COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT") as caught:
        ProxyPool([rule])
    assert "hidden" not in str(caught.value)


def test_languages_follow_countries() -> None:
    assert [language_of(country) for country in ("DE", "AT", "BR", "JP", "GB")] == [
        "de-DE", "de-AT", "pt-BR", "ja-JP", "en-GB",
    ]  # fmt: skip
    assert language_of("ZZ") == language_of(None) == "en-US"
