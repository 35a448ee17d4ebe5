from __future__ import annotations

from typing import Any

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

FORM = """<form onsubmit="event.preventDefault(); out.textContent = 'sent ' + q.value + ' ' + s.value">
<input id=q><select id=s><option>a<option>b</select><button id=go>Search now</button></form>
<p id=out>nothing</p><div id=menu onmouseover="out.textContent='hovered'" style="width:50px;height:20px">m</div>"""


def css(value: str, **more: str) -> dict[str, str]:
    return {"type": "css", "value": value, **more}


def act(service: Service, url: str, *actions: dict[str, Any]) -> dict[str, Any]:
    return service.result(url=url, browserHtml=True, actions=list(actions))


@pytest.fixture
def form(site: Target) -> str:
    return site.page("/form", FORM)


def statuses(result: dict[str, Any]) -> list[str]:
    return [entry["status"] for entry in result["actions"]]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "button", [css("#go"), {"type": "xpath", "value": "//button"}, {"type": "text", "value": "Search now"}]
)
def test_typing_and_clicking_by_every_kind_of_selector(service: Service, form: str, button: dict[str, str]) -> None:
    result = act(
        service,
        form,
        {"action": "type", "selector": css("#q"), "text": "shoes"},
        {"action": "select", "selector": css("#s"), "values": ["b"]},
        {"action": "click", "selector": button},
    )
    assert "sent shoes b" in result["browserHtml"]
    assert statuses(result) == ["success"] * 3
    assert [entry["action"] for entry in result["actions"]] == ["type", "select", "click"]
    assert all(entry["elapsedTime"] >= 0 for entry in result["actions"])


def test_keys_and_hovering(service: Service, form: str) -> None:
    result = act(
        service,
        form,
        {"action": "hover", "selector": css("#menu")},
        {"action": "waitForSelector", "selector": {"type": "text", "value": "hovered"}},
        {"action": "type", "selector": css("#q"), "text": "x"},
        {"action": "keyPress", "key": "Enter"},
    )
    assert statuses(result) == ["success"] * 4
    assert "sent x a" in result["browserHtml"]


def test_what_a_click_loads_is_waited_for(service: Service, site: Target) -> None:
    site.page("/more", "<li>second page")
    code = "fetch('/more').then(r => r.text()).then(t => document.querySelector('ul').innerHTML += t)"
    url = site.page("/list", f'<ul><li>first page</ul><button onclick="{code}">more</button>')
    result = act(service, url, {"action": "click", "selector": css("button")})
    assert "second page" in result["browserHtml"]


def test_a_click_that_leads_to_another_page_gives_that_page(service: Service, site: Target) -> None:
    site.page("/next", "<h1>next</h1>", 201)
    url = site.page("/link", "<a href=/next>go</a>")
    result = act(service, url, {"action": "click", "selector": css("a")})
    assert (result["url"], result["statusCode"]) == (site.url("/next"), 201)
    assert "next" in result["browserHtml"]


def test_waiting_for_an_element_that_comes_late(service: Service, site: Target) -> None:
    url = site.page(
        "/slow", "<script>setTimeout(() => document.body.innerHTML = '<b id=late>late</b>', 700)</script><body>"
    )
    result = act(service, url, {"action": "waitForSelector", "selector": css("#late"), "timeout": 30})
    assert statuses(result) == ["success"]
    assert "late</b>" in result["browserHtml"]


def test_scrolling_loads_an_endless_page_as_often_as_asked(service: Service, site: Target) -> None:
    script = """let n = 0; addEventListener('scroll', () => {
        n++; document.body.insertAdjacentHTML('beforeend', `<div style="height:3000px">part${n}</div>`); })"""
    url = site.page("/scroll", f"<body><div style='height:3000px'>start</div><script>{script}</script>")
    result = act(service, url, {"action": "scrollBottom", "maxScrollCount": 3})
    assert statuses(result) == ["success"]
    assert "part2" in result["browserHtml"]


def test_a_failing_action_does_not_fail_the_page_and_those_after_it_are_skipped(service: Service, form: str) -> None:
    result = act(
        service,
        form,
        {"action": "click", "selector": css("#absent"), "timeout": 0.3},
        {"action": "click", "selector": css("#go")},
    )
    assert statuses(result) == ["returned", "skipped"]
    assert result["actions"][0]["error"] == "no element with such a selector (css '#absent') in 0.3 seconds"
    assert "nothing" in result["browserHtml"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"action": "click", "selector": css("#hidden")}, ": it is not visible"),
        ({"action": "click", "selector": css("#off")}, ": it is not enabled"),
        ({"action": "waitForSelector", "selector": css("#hidden")}, ""),
        ({"action": "waitForSelector", "selector": css("#off", state="hidden")}, ""),
    ],
)
def test_an_element_that_is_not_ready_is_distinguished_from_one_that_is_not_there(
    service: Service, site: Target, action: dict[str, Any], why: str
) -> None:
    url = site.page("/not-ready", "<b id=hidden style='display:none'>x</b><input id=off disabled>")
    [entry] = act(service, url, {**action, "timeout": 1})["actions"]
    named = action["selector"]["value"]
    assert entry["error"] == f"the element was there, and not ready (css '{named}') in 1 seconds{why}"


def test_a_failing_action_may_be_passed_over(service: Service, form: str) -> None:
    result = act(
        service,
        form,
        {"action": "click", "selector": css("#absent"), "timeout": 0.3, "onError": "continue"},
        {"action": "click", "selector": css("#go")},
    )
    assert statuses(result) == ["continued", "success"]
    assert "sent" in result["browserHtml"]


def test_a_selector_that_is_not_one_fails_the_action_only(service: Service, form: str) -> None:
    result = act(service, form, {"action": "click", "selector": css("##"), "timeout": 0.3})
    assert statuses(result) == ["returned"]


@pytest.mark.parametrize(
    ("action", "named"),
    [
        ({"action": "explode"}, "click, doubleClick, hover, type"),
        ({"selector": css("a")}, "must name the action"),
        ({"action": "click"}, "actions[0].selector"),
        ({"action": "click", "selector": css("a"), "txt": "x"}, "actions[0].txt"),
        ({"action": "click", "selector": {"type": "id", "value": "a"}}, "css, xpath or text"),
        ({"action": "click", "selector": "a"}, "actions[0]"),
        ({"action": "waitForTimeout", "timeout": 9999}, "0 to 30 seconds"),
        ({"action": "click", "selector": css("a"), "onError": "explode"}, "return or continue"),
    ],
)
def test_an_action_that_cannot_be_done_is_400_before_anything_is_loaded(
    service: Service, site: Target, action: dict[str, Any], named: str
) -> None:
    url = site.page("/untouched", "<h1>x</h1>")
    assert named in service.problem(400, "/request/invalid", url=url, browserHtml=True, actions=[action])
    assert not site.calls_of("/untouched")
