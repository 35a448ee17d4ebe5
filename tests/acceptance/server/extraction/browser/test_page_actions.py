"""Actions on the page as a whole: elsewhere, anew, scripts, and waits for what the page loads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.server.extraction.browser.test_actions import act, css, statuses
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target


def only(result: dict[str, Any]) -> dict[str, Any]:
    """Result of the only action."""
    [entry] = result["actions"]
    return dict(entry)


# ── what the page loads ──

ASKS = "fetch('/api/items?page=2').then(r => r.text()).then(t => document.body.append(t))"


@pytest.mark.parametrize("kind", ["waitForRequest", "waitForResponse"])
def test_what_a_click_has_asked_for_counts_although_it_came_before_the_wait(
    service: Service, site: Target, kind: str
) -> None:
    site.page("/api/items", "more items")
    url = site.page("/asks", f'<body><button onclick="{ASKS}">more</button>')
    waits = [
        {"urlPattern": "/api/items"},
        {"urlPattern": "items?", "urlMatchingOptions": "contains"},
        {"urlPattern": "?page=2", "urlMatchingOptions": "endsWith"},
        {"urlPattern": site.url("/api/"), "urlMatchingOptions": "startsWith"},
        {"urlPattern": site.url("/api/items?page=2"), "urlMatchingOptions": "exact"},
    ]
    actions = [{"action": kind, "timeout": 30, **wait} for wait in waits]
    result = act(service, url, {"action": "click", "selector": css("button")}, *actions)
    assert statuses(result) == ["success"] * 6
    assert "more items" in result["browserHtml"]


def test_what_was_loaded_with_the_page_counts_for_the_first_action(service: Service, site: Target) -> None:
    site.page("/api/items", "more items")
    url = site.page("/asks-at-once", f"<body><script>{ASKS}</script>")
    result = act(service, url, {"action": "waitForResponse", "urlPattern": site.url("/api/items?page=2"),
                                "urlMatchingOptions": "exact"})  # fmt: skip
    assert statuses(result) == ["success"]


def test_what_came_before_the_last_click_does_not_count(service: Service, site: Target) -> None:
    site.page("/api/items", "more items")
    url = site.page("/asks-at-once", f"<body><script>{ASKS}</script><button>more</button>")
    result = act(
        service,
        url,
        {"action": "click", "selector": css("button")},
        {"action": "waitForResponse", "urlPattern": "/api/", "timeout": 0.3},
    )
    assert statuses(result) == ["success", "returned"]
    assert "'/api/'" in result["actions"][1]["error"]


# ── navigation ──


@pytest.mark.parametrize(
    "actions",
    [
        [{"action": "click", "selector": css("a")}, {"action": "waitForNavigation", "timeout": 30}],
        [{"action": "click", "selector": css("a"), "waitForNavigationTimeout": 30}],
        [{"action": "goto", "url": "{next}"}],
    ],
)
def test_ways_to_another_page(service: Service, site: Target, actions: list[dict[str, Any]]) -> None:
    following = site.page("/next", "<h1>next</h1>", 201)
    url = site.page("/link", "<a href=/next>go</a>")
    actions = [{**entry, **({"url": following} if "url" in entry else {})} for entry in actions]
    result = act(service, url, *actions, {"action": "waitForSelector", "selector": css("h1"), "timeout": 30})
    assert set(statuses(result)) == {"success"}
    assert (result["url"], result["statusCode"]) == (following, 201)


def test_waiting_for_a_navigation_that_does_not_come_fails(service: Service, site: Target) -> None:
    url = site.page("/stays", "<h1>stays</h1>")
    assert "did not move on" in only(act(service, url, {"action": "waitForNavigation", "timeout": 0.3}))["error"]


def test_a_page_is_loaded_once_more(service: Service, site: Target) -> None:
    url = site.page("/anew", "<h1>again</h1>")
    assert statuses(act(service, url, {"action": "reload"})) == ["success"]
    assert len(site.calls_of("/anew")) == 2


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/hostname",
        "view-source:http://shop.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "about:blank",
        "chrome://version",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://2130706433/",
        "/relative",
        "",
    ],
)
def test_goto_takes_what_a_request_takes_and_nothing_else(service: Service, site: Target, url: str) -> None:
    start = site.page("/not-loaded", "<h1>x</h1>")
    detail = service.problem(
        400, "/request/invalid", url=start, browserHtml=True, actions=[{"action": "goto", "url": url}]
    )
    assert "actions[0].url" in detail
    assert not site.calls_of("/not-loaded")


def test_goto_does_not_lead_to_what_may_not_be_fetched_nor_does_it_fail_the_page(
    service: Service, site: Target, forbidden: Target
) -> None:
    url = site.page("/start", "<h1>start</h1>")
    result = act(
        service,
        url,
        {"action": "goto", "url": forbidden.url(), "onError": "continue"},
        {"action": "goto", "url": "http://nowhere.invalid/"},
        {"action": "reload"},
    )
    assert statuses(result) == ["continued", "returned", "skipped"]
    assert "not public" in result["actions"][0]["error"]
    assert (result["url"], "start" in result["browserHtml"]) == (url, True)
    assert forbidden.connections == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("way", ["goto", "click", "replace"])
def test_a_page_that_is_led_astray_by_a_redirect_is_taken_back(
    service: Service, site: Target, forbidden: Target, way: str
) -> None:
    astray = site.page("/astray", "", 302, Location=forbidden.url())
    url = site.page("/before", "<h1>before</h1><a href=/astray>go</a>")
    action = {
        "goto": {"action": "goto", "url": astray},
        "click": {"action": "click", "selector": css("a")},
        # Leaves nothing to go back to.
        "replace": {"action": "evaluate", "source": "location.replace('/astray')"},
    }[way]
    result = act(service, url, action, {"action": "waitForTimeout", "timeout": 0.5})
    assert "returned" in statuses(result)
    assert (result["url"], "before" in result["browserHtml"], result["statusCode"]) == (url, True, 200)
    assert forbidden.connections == 0


# ── scripts ──


VALUES = {
    "document.title": "page",
    "document.querySelectorAll('li').length": 2,
    "({items: [...document.querySelectorAll('li')].map(e => e.textContent)})": {"items": ["a", "b"]},
    "const n = 20; n + 1": 21,
    "await new Promise(done => setTimeout(() => done('late'), 50))": "late",
    "window.own.value": 7,
    "[null, true, 1.5]": [None, True, 1.5],
}


def test_the_value_of_a_script_is_returned(service: Service, site: Target) -> None:
    url = site.page(
        "/values",
        "<title>page</title><ul><li>a<li>b</ul><script>window.own = {value: 7}</script>",
        Content_Security_Policy="script-src 'unsafe-inline'",
    )
    result = act(service, url, *({"action": "evaluate", "source": source} for source in VALUES))
    assert [entry["result"] for entry in result["actions"]] == list(VALUES.values())


def test_a_script_changes_the_page(service: Service, site: Target) -> None:
    url = site.page("/changed", "<p>old</p>")
    result = act(service, url, {"action": "evaluate", "source": "document.querySelector('p').textContent = 'new'"})
    assert "<p>new</p>" in result["browserHtml"]


FAILURES = {
    "throw new Error('own words')": "own words",
    "1 +": "SyntaxError",
    "missing.value": "not defined",
    "'x'.repeat(200000)": "longer than",
    "['x'.repeat(200000)]": "longer than",
    "const a = []; a.push(a); a": "circular",
    "'\\ud800'": "JSON",
    "['\\ud800']": "JSON",
    "await new Promise(() => {})": "out of time",
    "while (true) {}": "",
}


def test_scripts_that_fail_do_not_fail_the_page(service: Service, site: Target) -> None:
    url = site.page("/script", "<h1>still here</h1>")
    actions = [{"action": "evaluate", "source": source, "timeout": 0.3, "onError": "continue"} for source in FAILURES]
    result = act(service, url, *actions)
    assert statuses(result) == ["continued"] * len(FAILURES)
    for entry, failure in zip(result["actions"], FAILURES.values(), strict=True):
        assert failure in entry["error"]
        assert "result" not in entry
    assert "still here" in result["browserHtml"]


def test_a_page_with_a_json_of_its_own_gives_no_result(service: Service, site: Target) -> None:
    url = site.page("/own", "<h1>own</h1>")
    actions = [
        {"action": "evaluate", "source": source, "onError": "continue"}
        for own in ("{slice: () => ({})}", "7", "'not JSON'", "'x'.repeat(3e5)")
        for source in (f"JSON.stringify = () => ({own}); 0", "({a: 1})")
    ]
    result = act(service, url, *actions)
    assert not any("result" in entry for entry in result["actions"][1::2])
    assert "own</h1>" in result["browserHtml"]


def test_scripts_run_in_whatever_page_there_is(service: Service, site: Target) -> None:
    there = site.page("/there", "<title>there</title>").replace(site.host, "other.example")
    url = site.page("/here", "<title>here</title>")
    title = {"action": "evaluate", "source": "document.title"}
    result = act(service, url, title, {"action": "goto", "url": there}, title, {"action": "reload"}, title)
    assert [entry.get("result") for entry in result["actions"]] == ["here", None, "there", None, "there"]


def test_a_script_reaches_no_further_than_its_page(service: Service, site: Target, forbidden: Target) -> None:
    url = site.page("/reach", "<h1>x</h1>")
    sources = [
        f"await fetch('{forbidden.url()}', {{mode: 'no-cors'}}).then(r => r.text())",
        "await fetch('file:///etc/hostname').then(r => r.text())",
        "open('file:///etc/hostname')",
    ]
    result = act(service, url, *({"action": "evaluate", "source": text, "onError": "continue"} for text in sources))
    assert [entry.get("result") or "" for entry in result["actions"][:2]] == ["", ""]
    assert "result" not in result["actions"][2] or not result["actions"][2]["result"]
    assert result["url"] == url
    assert forbidden.connections == 0


# ── scrolling and hiding ──


def test_all_that_is_found_is_hidden(service: Service, site: Target) -> None:
    url = site.page("/banner", "<div class=ad style='display:block !important'>1</div><p class=ad>2</p><p>3</p>")
    count = "[...document.querySelectorAll('body > *')].filter(e => e.offsetHeight).map(e => e.textContent)"
    result = act(service, url, {"action": "hide", "selector": css(".ad")}, {"action": "evaluate", "source": count})
    assert result["actions"][1]["result"] == ["3"]


@pytest.mark.parametrize(("place", "top"), [({"top": 300}, 300), ({"selector": css("#low"), "timeout": 30}, None)])
def test_scrolling_to_a_place(service: Service, site: Target, place: dict[str, Any], top: int | None) -> None:
    url = site.page("/high", "<body style='margin:0'><div style='height:4000px'>a</div><p id=low>low</p>")
    result = act(service, url, {"action": "scrollTo", **place}, {"action": "evaluate", "source": "scrollY"})
    reached = result["actions"][1]["result"]
    assert reached == top if top else reached > 3000


GROWS = """<body style="margin:0"><div style="height:1500px"></div><script>
let left = PARTS;
addEventListener('scroll', async () => { if (left-- <= 0) return; await fetch('/grow');
document.body.insertAdjacentHTML('beforeend', '<div class=part style="height:1500px"></div>') })</script>"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("bound", "parts"), [({"maxScrollCount": 2}, 2), ({"maxPageHeight": 4000}, 2), ({"maxScrollDelay": 10}, 5)]
)
def test_scrolling_goes_on_as_the_page_loads_more_up_to_a_bound(
    service: Service, site: Target, bound: dict[str, Any], parts: int
) -> None:
    site.page("/grow", "x")
    url = site.page("/grows", GROWS.replace("PARTS", "5"))
    result = act(service, url, {"action": "scrollBottom", "timeout": 30, **bound})
    assert statuses(result) == ["success"]
    assert result["browserHtml"].count('class="part"') == parts


@pytest.mark.long
def test_scrolling_a_page_without_end_ends_with_its_time(service: Service, site: Target) -> None:
    site.page("/grow", "x")
    url = site.page("/endless", GROWS.replace("PARTS", "Infinity"))
    assert statuses(act(service, url, {"action": "scrollBottom", "timeout": 1})) == ["success"]


def test_a_double_click_and_another_button(service: Service, site: Target) -> None:
    url = site.page(
        "/buttons",
        "<p id=a ondblclick=\"this.textContent='twice'\">a</p><p id=b oncontextmenu=\"this.textContent='right'\">b</p>",
    )
    result = act(
        service,
        url,
        {"action": "doubleClick", "selector": css("#a")},
        {"action": "click", "selector": css("#b"), "button": "right"},
    )
    assert "twice" in result["browserHtml"]
    assert "right</p>" in result["browserHtml"]
