"""The choice of a proxy: by tier, weight, success at the site, cool-down and session."""

from __future__ import annotations

from collections import Counter

import pytest

from scrapy_ext.server.net import pool as pool_module
from scrapy_ext.server.net.health import COMPARED, FIRST_COOL_DOWN, LONGEST_COOL_DOWN, NONE, SINGLE
from scrapy_ext.server.net.pool import DIRECT, MOST_SESSIONS, MOST_SITES, ProxyPool, Scope, site_of
from scrapy_ext.server.net.upstream import ProxyRuleError, Upstream

SITE = Scope("shop.example")
OTHER = Scope("other.example")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def made(clock: Clock, *rules: str) -> ProxyPool:
    return ProxyPool([f"{rule}=http://p:{port}" if "=" not in rule else rule for port, rule in enumerate(rules, 1)],
                     clock=clock)  # fmt: skip


def named(clock: Clock, names: str) -> ProxyPool:
    return made(clock, *(f"*:*=http://p:1?name={name}" for name in names))


def upstream(pool: ProxyPool, label: str) -> Upstream | None:
    return next(each for each, name in pool._labels.items() if name == label)


def chosen(pool: ProxyPool, site: Scope = SITE, session: str | None = None, **wishes: str | None) -> str | None:
    tiers, _ = pool.tiers(wishes.get("country"), wishes.get("ip_type"))
    found = pool.choose(site, tiers, session=session)
    return None if found is None else pool.label(found[0])


def counts(pool: ProxyPool, times: int = 2000) -> Counter[str | None]:
    return Counter(chosen(pool) for _ in range(times))


def test_weights_are_shares(clock: Clock) -> None:
    pool = made(clock, "*:*=http://p:1?name=a&weight=3", "*:*=http://p:2?name=b")
    found = counts(pool)
    assert 2 < found["a"] / found["b"] < 4.5


def test_success_at_a_site_counts_there_only(clock: Clock) -> None:
    pool = named(clock, "ab")
    pool.banned(SITE, upstream(pool, "a"), COMPARED)
    clock.now += FIRST_COOL_DOWN
    found = counts(pool)
    # It is tried again after its cool-down, but rarely until it passes.
    assert 0 < found["a"] < found["b"] / 4
    elsewhere = Counter(chosen(pool, OTHER) for _ in range(2000))
    assert 0.7 < elsewhere["a"] / elsewhere["b"] < 1.4
    for _ in range(10):
        pool.passed(SITE, upstream(pool, "a"))
    found = counts(pool)
    assert 0.6 < found["a"] / found["b"] < 1.6


def test_a_cool_down_doubles_with_each_further_ban_up_to_a_bound(clock: Clock) -> None:
    pool = named(clock, "a")
    tiers, _ = pool.tiers(None, None)
    waits = []
    for _ in range(10):
        pool.banned(SITE, upstream(pool, "a"), COMPARED)
        # Requests that were under way when it was banned change nothing.
        pool.banned(SITE, upstream(pool, "a"), COMPARED)
        pool.passed(SITE, upstream(pool, "a"))
        assert chosen(pool) is None
        waits.append(pool.next_free(SITE, tiers))
        clock.now += waits[-1]
        assert chosen(pool) == "a"
    assert waits[:3] == [FIRST_COOL_DOWN, 2 * FIRST_COOL_DOWN, 4 * FIRST_COOL_DOWN]
    assert max(waits) == LONGEST_COOL_DOWN
    pool.passed(SITE, upstream(pool, "a"))
    for _ in range(2):
        pool.banned(SITE, upstream(pool, "a"), COMPARED)
    assert pool.next_free(SITE, tiers) == FIRST_COOL_DOWN


def test_a_pass_of_a_probe_ends_a_cool_down(clock: Clock) -> None:
    pool = named(clock, "ab")
    tiers, _ = pool.tiers(None, None)
    pool.banned(SITE, upstream(pool, "a"), COMPARED)
    clock.now += 1
    pool.banned(SITE, upstream(pool, "b"), COMPARED)
    assert chosen(pool) is None
    # The one whose cool-down ends first is probed.
    assert pool.nearest(SITE, tiers) == (upstream(pool, "a"),)
    pool.passed(SITE, upstream(pool, "a"), recovered=True)
    assert chosen(pool) == "a"


def test_pages_that_ban_every_proxy_cool_one_down_only_in_a_row(clock: Clock) -> None:
    pool = named(clock, "a")
    for _ in range(20):
        pool.banned(SITE, upstream(pool, "a"), SINGLE)
        pool.banned(SITE, upstream(pool, "a"), SINGLE)
        assert chosen(pool) == "a"
        pool.passed(SITE, upstream(pool, "a"))
    for _ in range(20):
        pool.banned(SITE, upstream(pool, "a"), NONE)
    assert chosen(pool) == "a"
    bans = 0
    while chosen(pool) == "a":
        pool.banned(SITE, upstream(pool, "a"), SINGLE)
        bans += 1
    assert bans == 4
    fresh = named(clock, "a")
    for expected in ("a", "a", None):
        fresh.banned(SITE, upstream(fresh, "a"), SINGLE)
        assert chosen(fresh) == expected


def test_cool_downs_are_apart_by_organisation_by_port_and_for_the_browser(clock: Clock) -> None:
    pool = named(clock, "a")
    pool.banned(SITE, upstream(pool, "a"), COMPARED)
    assert chosen(pool) is None
    for other in (
        Scope(SITE.site, "browser"),
        Scope(SITE.site, organisation="another"),
        Scope(site_of("http://shop.example:8080/")),
    ):
        assert chosen(pool, other) == "a"
    pool.passed(Scope(SITE.site, organisation="another"), upstream(pool, "a"))
    assert chosen(pool) is None
    (row,) = pool.by_site()
    assert (row.site, row.by, row.passed, row.banned, row.cooling) == ("shop.example", "http", 1, 1, FIRST_COOL_DOWN)


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://Shop.example/a", "shop.example"),
        ("http://shop.example.:80/", "shop.example"),
        ("http://shop.example:443/", "shop.example:443"),
        ("https://[::1]:8080/", "[::1]:8080"),
    ],
)
def test_a_site_is_a_host_with_its_port(url: str, site: str) -> None:
    assert site_of(url) == site


@pytest.mark.parametrize("seconds", [20, 2 * LONGEST_COOL_DOWN, 7 * 86_400])
def test_a_proxy_of_which_a_site_demands_a_pause_is_used_before_its_end_only_when_it_is_the_last(
    clock: Clock, seconds: float
) -> None:
    pool = named(clock, "ab")
    pool.pause(SITE, upstream(pool, "a"), seconds)
    clock.now += seconds - 1
    assert {chosen(pool) for _ in range(100)} == {"b"}
    assert {chosen(pool, OTHER) for _ in range(100)} == {"a", "b"}
    pool.pause(SITE, upstream(pool, "b"), seconds)
    assert chosen(pool) is not None
    clock.now += seconds
    assert {chosen(pool) for _ in range(100)} == {"a", "b"}


def test_a_proxy_that_fails_is_avoided_at_all_sites_but_used_when_it_is_the_last(clock: Clock) -> None:
    pool = named(clock, "ab")
    pool.failed(SITE, upstream(pool, "a"), everywhere=True)
    assert {chosen(pool, OTHER) for _ in range(200)} == {"b"}
    pool.failed(SITE, upstream(pool, "b"), everywhere=True)
    assert chosen(pool) in ("a", "b")
    pool.passed(SITE, upstream(pool, "a"))
    assert {chosen(pool, OTHER) for _ in range(200)} == {"a"}


def test_failures_where_other_proxies_get_answers_are_those_of_the_proxy(clock: Clock) -> None:
    pool = named(clock, "ab")
    for number in range(10):
        pool.failed(Scope(f"{number}.example"), upstream(pool, "a"), everywhere=False)
    for _ in range(4):
        assert "a" in {chosen(pool, Scope("new.example")) for _ in range(200)}
        pool.outdone(upstream(pool, "a"))
    assert {chosen(pool, Scope("new.example")) for _ in range(200)} == {"b"}
    # For 10 seconds at first, then for 20.
    clock.now += pool_module.FAILURE_COOL_DOWN
    assert "a" in {chosen(pool, Scope("new.example")) for _ in range(200)}
    pool.outdone(upstream(pool, "a"))
    clock.now += 2 * pool_module.FAILURE_COOL_DOWN - 1
    assert {chosen(pool, Scope("new.example")) for _ in range(200)} == {"b"}


def test_the_next_tier_follows_when_the_better_one_cools_down(clock: Clock) -> None:
    pool = made(clock, "US:residential", "US:*", "*:*")
    wishes = {"country": "US", "ip_type": "residential"}
    for expected in ("US:residential", "US:*", "*:*", None):
        assert chosen(pool, **wishes) == expected
        if expected is not None:
            pool.banned(SITE, upstream(pool, expected), COMPARED)
    assert chosen(pool, OTHER, **wishes) == "US:residential"


def test_the_servers_own_address_cools_down_where_others_follow_it(clock: Clock) -> None:
    pool = made(clock, "*:residential", "US:residential")
    tiers, _ = pool.tiers(None, None)
    assert chosen(pool) == DIRECT
    pool.banned(SITE, None, COMPARED)
    assert chosen(pool) == "*:residential"
    # A country that was not requested is not used.
    assert pool.choose(SITE, tiers, tried=[upstream(pool, "*:residential")]) is None
    assert chosen(pool, OTHER) == DIRECT
    clock.now += FIRST_COOL_DOWN
    assert chosen(pool) == DIRECT


def test_the_servers_own_address_is_used_always_where_it_is_the_only_way(clock: Clock) -> None:
    pool = made(clock, "US:residential")
    tiers, _ = pool.tiers(None, None)
    assert not pool.has_choice(tiers)
    pool.banned(SITE, None, COMPARED)
    assert chosen(pool) == DIRECT
    assert pool.next_free(SITE, tiers) == 0


def test_a_session_keeps_its_proxy_until_that_is_banned_or_the_session_expires(clock: Clock) -> None:
    pool = named(clock, "abc")
    first = chosen(pool, session="1")
    assert {chosen(pool, session="1") for _ in range(100)} == {first}
    assert len({chosen(pool, session=str(number)) for number in range(100)}) == 3
    pool.banned(SITE, upstream(pool, first or ""), COMPARED)
    second = chosen(pool, session="1")
    assert second != first
    clock.now += FIRST_COOL_DOWN + 1
    assert {chosen(pool, session="1") for _ in range(100)} == {second}
    pool.end_session("1")
    assert len(pool._sessions) == 100 - 1
    clock.now += pool_module.SESSION_EXPIRY
    assert len({chosen(pool, session="2") for _ in range(100)}) == 1


def test_a_further_try_moves_a_session_only_when_it_passes(clock: Clock) -> None:
    pool = named(clock, "ab")
    tiers, _ = pool.tiers(None, None)
    first = pool.choose(SITE, tiers, session="1")
    assert first is not None
    second = pool.choose(SITE, tiers, tried=first, session="1")
    assert second not in (first, None)
    assert pool.choose(SITE, tiers, session="1") == first
    pool.keep_session("1", second[0] if second else None)
    assert pool.choose(SITE, tiers, session="1") == second


def test_the_next_proxy_is_free_after_its_pause(clock: Clock) -> None:
    pool = named(clock, "ab")
    tiers, _ = pool.tiers(None, None)
    pool.pause(SITE, upstream(pool, "a"), 300)
    assert pool.next_free(SITE, tiers) == 0
    pool.pause(SITE, upstream(pool, "b"), 200)
    assert pool.next_free(SITE, tiers) == 200
    alone = ProxyPool(clock=clock)
    alone.pause(SITE, None, 100)
    assert alone.next_free(SITE, alone.tiers(None, None)[0]) == 100


def test_what_is_remembered_is_bounded(clock: Clock) -> None:
    pool = named(clock, "ab")
    for number in range(MOST_SITES + 10):
        pool.passed(Scope(f"{number}.example"), upstream(pool, "a"))
    for number in range(MOST_SESSIONS + 10):
        chosen(pool, session=str(number))
    assert len(list(pool.by_site())) == MOST_SITES
    assert next(pool.by_site()).site == f"{MOST_SITES + 9}.example"
    assert len(pool._sessions) == MOST_SESSIONS


def test_every_proxy_has_a_name_of_its_own_in_figures_without_credentials(clock: Clock) -> None:
    pool = made(
        clock,
        *(
            "*:*=http://me:hidden@p:1",
            "*:*=https://me:hidden@[::1]:2",
            "*:*=socks5://me:hidden@p:3?name=three&weight=2",
        ),
        "US:*",
    )
    rows = list(pool.totals())
    assert [row.proxy for row in rows] == [DIRECT, "*:*", "*:* #2", "three", "US:*"]
    assert [row.address for row in rows] == ["", "http://p:1", "https://[::1]:2", "socks5://p:3", "http://p:4"]
    assert "hidden" not in repr(rows)


@pytest.mark.parametrize(
    "options",
    ["weight=0", "weight=1001", "weight=x", "weight=", "name=", "name=a b", "name=" + "a" * 41, "verify=no", "other=1"],
)
def test_an_option_that_a_proxy_cannot_have_is_refused(options: str) -> None:
    with pytest.raises(ProxyRuleError, match=r"may have weight \(1 to 1000\) and name") as caught:
        ProxyPool([f"*:*=http://me:hidden@p:1?{options}"])
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["*:*=http://p:1?name=a", "*:*=http://p:2?name=a"], "the name 'a' of another one"),
        (["*:*=http://p:1?name=direct"], "the name 'direct' of another one"),
        (["*:*=socks5://hidden@p:1"], "a user and a password of 1 to 255 ASCII characters for SOCKS5, or neither"),
        (["*:*=socks5://me:hidden%C3%A4@p:1"], "ASCII"),
        (["*:*=http://me%3Ahidden:hidden@p:1"], "a user without a colon"),
    ],
)
def test_a_rule_that_contradicts_is_refused(rules: list[str], message: str) -> None:
    with pytest.raises(ProxyRuleError, match="proxy") as caught:
        ProxyPool(rules)
    assert message in str(caught.value)
    assert "hidden" not in str(caught.value)
