"""Memory of sites: cookies of passed challenges, sites that need the browser, URLs that are refused."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from scrapy_ext.api.extraction import Header
from scrapy_ext.server.extraction.bans import learned as learned_module
from scrapy_ext.server.extraction.bans.learned import Learned
from scrapy_ext.server.extraction.outgoing import Cookie
from scrapy_ext.server.extraction.plan import HttpPlan
from scrapy_ext.server.extraction.session_state import SessionState
from scrapy_ext.server.net.pool import Scope
from scrapy_ext.server.net.upstream import Upstream

SITE = Scope("shop.example", organisation="one")
TODO = HttpPlan(url="https://shop.example/a")
PROXY = Upstream("*:*=http://p:1")


def cookie(name: str = "clearance", domain: str = "shop.example", **members: Any) -> dict[str, Any]:
    return {"name": name, "value": "1", "domain": domain, "path": "/", "httpOnly": True, "secure": False, **members}


def sent(learned: Learned, scope: Scope = SITE, todo: HttpPlan = TODO, upstream: Upstream | None = None) -> list[str]:
    return [each.name for each in learned.with_clearance(scope, todo, upstream).cookies]


def test_cookies_of_a_challenge_are_for_its_proxy_site_and_organisation() -> None:
    learned = Learned()
    cookies = [cookie(), cookie("wide", ".shop.example"), cookie("other", "other.example"), cookie("old", expires=1)]
    learned.keep_clearance(SITE, TODO, None, cookies)
    assert sent(learned) == ["clearance", "wide"]
    assert [each.domain for each in learned.with_clearance(SITE, TODO, None).cookies] == [None, ".shop.example"]
    assert learned.has_clearance(SITE)
    assert not sent(learned, SITE._replace(organisation="two"))
    assert not sent(learned, SITE._replace(site="shop.example:8443"))
    assert not sent(learned, upstream=PROXY)
    assert not sent(learned, todo=replace(TODO, device="mobile"))
    learned.drop_clearance(SITE, TODO, None)
    assert not sent(learned)
    assert not learned.has_clearance(SITE)


def test_cookies_are_neither_kept_of_nor_added_to_requests_with_their_own() -> None:
    for own in (
        replace(TODO, cookies=[Cookie("id", "1")]),
        replace(TODO, state=SessionState()),
        replace(TODO, headers=[Header("User-Agent", "mine")]),
        replace(TODO, headers=[Header("Cookie", "id=1")]),
        replace(TODO, headers=[Header("Authorization", "Basic eDp5")]),
    ):
        learned = Learned()
        learned.keep_clearance(SITE, own, None, [cookie()])
        assert not learned.has_clearance(SITE)
        learned.keep_clearance(SITE, TODO, None, [cookie()])
        assert learned.with_clearance(SITE, own, None) is own


def test_cookies_are_bounded() -> None:
    learned = Learned()
    learned.keep_clearance(SITE, TODO, None, [cookie(str(number)) for number in range(1000)])
    learned.keep_clearance(SITE, TODO, None, [{**cookie(), "value": "x" * 100_000}])
    assert not learned.has_clearance(SITE)
    for number in range(learned_module._MOST_CLEARANCES + 10):
        learned.keep_clearance(SITE._replace(organisation=str(number)), TODO, None, [cookie()])
    assert len(learned._cleared) == learned_module._MOST_CLEARANCES
    for number in range(1000):
        site = SITE._replace(site=f"{number}.example")
        learned.keep_clearance(site, TODO, None, [cookie()])
        learned.drop_clearance(site, TODO, None)
    assert len(learned._cleared) < learned_module._MOST_CLEARANCES


def test_a_site_needs_the_browser_after_several_pages_in_a_row() -> None:
    learned = Learned()
    for _ in range(5):
        learned.passed_by_browser(SITE, "one")
    assert not learned.is_challenged(SITE)
    learned.passed_by_http(SITE)
    for name in ("two", "three", "four"):
        assert not learned.is_challenged(SITE)
        learned.passed_by_browser(SITE, name)
    assert learned.is_challenged(SITE)
    learned.passed_by_http(SITE)
    assert not learned.is_challenged(SITE)


def test_a_refusal_is_remembered_until_an_answer() -> None:
    learned = Learned()
    learned.refused("one")
    learned.refused("two", certain=True)
    assert [learned.is_refused(name) for name in ("one", "two", "three")] == [True, True, False]
    assert [learned.is_banned(name) for name in ("one", "two", "three")] == [False, True, False]
    learned.answered("two")
    assert not learned.is_refused("two")
    assert not learned.is_banned("two")
