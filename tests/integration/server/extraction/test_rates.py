"""Rate limits: 429 in its three scopes, and requests that do not count."""

from __future__ import annotations

from scrapy_ext.server.auth.rates import RateLimits
from tests.support.extraction_service import Answer, Service
from tests.support.handwritten_site import Target

#: So low that no machine is slow enough to get a second token: one request is let through at once.
NEVER = 0.0001
BODY = {"httpResponseBody": True}


def refused(answer: Answer, type: str) -> str:
    assert (answer.status, answer.json["type"]) == (429, type), answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    assert 0 < int(answer.headers["retry-after"]) <= 1 / NEVER
    return str(answer.json["detail"])


def rules(target: Target) -> tuple[str, ...]:
    target.page("/", "ok")
    return tuple(f"{name}.example:80=127.0.0.1:{target.port}" for name in ("one", "two"))


def test_a_key_over_its_rate_is_429_whatever_it_asks_for(target: Target) -> None:
    with Service(connect_to=rules(target), extract_rate=NEVER) as running:
        running.result(url="http://one.example/", **BODY)
        detail = refused(running.extract(url="http://two.example/", **BODY), "/limits/over-user-limit")
    assert "k" * 32 not in detail


def test_a_domain_over_its_rate_is_429_and_others_are_not(target: Target) -> None:
    with Service(connect_to=rules(target), domain_rate=NEVER) as running:
        running.result(url="http://one.example/", **BODY)
        # The same host, however it is written.
        detail = refused(running.extract(url="http://ONE.example./x", **BODY), "/limits/over-domain-limit")
        assert "one.example" in detail
        running.result(url="http://two.example/", **BODY)


def test_a_key_over_its_rate_for_a_domain_is_429_and_uses_up_nothing_else(target: Target) -> None:
    with Service(connect_to=rules(target), key_domain_rate=NEVER, extract_rate=1) as running:
        running.result(url="http://one.example/", **BODY)
        for _ in range(5):
            refused(running.extract(url="http://one.example/", **BODY), "/limits/over-org-domain-limit")
        # Two at once: the second one is still there.
        running.result(url="http://two.example/", **BODY)


def test_keys_of_one_organisation_share_its_rate_for_a_domain_and_each_has_its_own_for_all(target: Target) -> None:
    with Service(connect_to=rules(target), key_domain_rate=NEVER, extract_rate=NEVER) as running:
        running.result(url="http://one.example/", **BODY)
        refused(running.extract(key="second", url="http://one.example/", **BODY), "/limits/over-org-domain-limit")
        assert running.extract(key="second", url="http://two.example/", **BODY).status == 200
        refused(running.extract(key="second", url="http://two.example/", **BODY), "/limits/over-user-limit")
        assert running.extract(key="stranger", url="http://one.example/", **BODY).status == 200


def test_a_request_that_is_wrong_does_not_count(target: Target) -> None:
    with Service(connect_to=rules(target), extract_rate=NEVER) as running:
        running.problem(400, "/request/invalid", url="http://one.example/", bad=1, **BODY)
        running.problem(422, "/request/unprocessable", url="http://one.example/", geolocation="DE", **BODY)
        running.result(url="http://one.example/", **BODY)


def test_asking_how_long_to_wait_uses_up_nothing() -> None:
    now = 0.0
    limits = RateLimits(0.5, 1, lambda: now)
    assert [limits.wait("a") for _ in range(3)] == [0, 0, 0]
    assert len(limits) == 0
    assert [limits.take("a"), limits.wait("a"), limits.take("a")] == [0, 2, 2]
    now = 2.0
    assert limits.wait("a") == 0
