"""Actions are validated before anything is loaded, and each fault names its place."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ext.server.extraction.actions.handlers import ACTIONS
from scrapy_ext.server.extraction.actions.reading import MAX_ACTIONS, read_actions
from scrapy_ext.server.extraction.actions.reading import MEMBERS as MEANINGS

GO = {"type": "css", "value": "#go"}
CLICK = {"action": "click", "selector": GO}

#: A right value for every member.
MEMBERS: dict[str, Any] = {
    "selector": GO,
    "text": "shoes",
    "key": "Enter",
    "values": ["b"],
    "button": "right",
    "delay": 0.1,
    "timeout": 2,
    "waitForNavigationTimeout": 5,
    "waitUntil": "networkidle",
    "url": "https://shop.example/",
    "urlPattern": "/api/",
    "urlMatchingOptions": "startsWith",
    "source": "1 + 1",
    "maxScrollCount": 3,
    "maxScrollDelay": 1.5,
    "maxPageHeight": 9000,
    "top": 10,
    "left": 10,
    "onError": "continue",
}


def faults(*actions: dict[str, Any]) -> list[str]:
    return [f"{fault.field} {fault.rule} {fault.remedy}" for fault in read_actions(list(actions))[1]]


@pytest.mark.parametrize("kind", ACTIONS.values(), ids=list(ACTIONS))
def test_every_action_takes_all_of_its_members_and_needs_those_that_it_needs(kind: Any) -> None:
    action = {"action": kind.name, "onError": "continue"}
    action |= {name: MEMBERS[name] for name in (*kind.needs, *kind.takes)}
    read, wrong = read_actions([action])
    assert (len(read), wrong) == (1, [])
    for name in kind.needs:
        [message] = faults({member: value for member, value in action.items() if member != name})
        assert message.startswith(f"actions[0].{name} is required by {kind.name}")
    other = next(name for name in MEMBERS if name not in action)
    [message] = faults({**action, other: MEMBERS[other]})
    assert message.startswith(f"actions[0].{other} is not a member of {kind.name}")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"selector": {"type": "id", "value": "a"}}, "actions[0].selector.type must be css, xpath or text, got 'id'"),
        ({"selector": {"value": ""}}, "actions[0].selector.value must not be empty"),
        ({"selector": {"value": 5}}, "actions[0].selector.value must be a string, got an integer"),
        ({"selector": {"type": "css"}}, "actions[0].selector object missing required field value"),
        ({"selector": {**GO, "nth": 2}}, "actions[0].selector object contains unknown field nth"),
        ({"selector": {**GO, "state": "there"}}, "actions[0].selector.state must be attached, detached, visible"),
        ({"selector": "#go"}, 'must be an object, got a string Write {"type": "css", "value": "#more"}.'),
        ({"timeout": 31}, "actions[0].timeout must be 0 to 30 seconds"),
        ({"timeout": -1}, "actions[0].timeout must be 0 to 30 seconds"),
        ({"timeout": True}, "actions[0].timeout must be a number, got a boolean"),
        ({"delay": "1"}, "actions[0].delay must be a number, got a string"),
        ({"button": "top"}, "actions[0].button must be left, right or middle"),
        ({"onError": "throw"}, "actions[0].onError must be return or continue"),
        ({"onErorr": "return"}, "Did you mean onError?"),
        ({"refused": "x"}, "actions[0].refused is not a member of click"),
    ],
)
def test_a_wrong_member_is_named(members: dict[str, Any], message: str) -> None:
    [fault] = faults({**CLICK, **members})
    assert message in fault


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"selector": GO}, "actions[0].action must name the action"),
        ({"action": 5}, "actions[0].action '5' is not an action"),
        ({"action": "waitForSelektor", "selector": GO}, "Did you mean waitForSelector?"),
        ({"action": "scrollTo"}, "actions[0] must have one of selector, top, left"),
        ({"action": "select", "selector": GO, "values": "b"}, "actions[0].values must be an array, got a string"),
        ({"action": "select", "selector": GO, "values": [1]}, "actions[0].values[0] must be a string, got an integer"),
        ({"action": "evaluate", "source": ""}, "actions[0].source must not be empty"),
        ({"action": "evaluate", "source": "x" * 100_001}, "actions[0].source must be at most 100000 characters"),
        ({"action": "goto", "url": "file:///etc/passwd"}, "actions[0].url must be an absolute http or https URL"),
        ({"action": "goto", "url": "http://10.0.0.1/"}, "actions[0].url must name a domain, not an IP address"),
        ({"action": "scrollBottom", "maxScrollCount": 0}, "actions[0].maxScrollCount must be 1 to 1000 times"),
        (
            {"action": "scrollBottom", "maxScrollCount": 1.5},
            "actions[0].maxScrollCount must be an integer, got a number",
        ),
        ({"action": "waitForResponse", "urlPattern": "/", "urlMatchingOptions": "regex"}, "or exact, got 'regex'"),
    ],
)
def test_a_wrong_action_is_named(action: dict[str, Any], message: str) -> None:
    [fault] = faults(action)
    assert message in fault


def test_every_wrong_action_is_reported_by_its_index() -> None:
    messages = faults(CLICK, {"action": "click"}, CLICK, {"action": "hop"})
    assert [line.split()[0] for line in messages] == ["actions[1].selector", "actions[3].action"]


def test_every_member_is_described_and_every_description_is_of_a_member() -> None:
    assert MEANINGS.keys() == {name for kind in ACTIONS.values() for name in (*kind.needs, *kind.takes)} | {"onError"}
    assert MEANINGS.keys() == MEMBERS.keys()


def test_more_actions_than_a_request_may_have_are_refused() -> None:
    assert faults(*[CLICK] * MAX_ACTIONS) == []
    assert f"at most {MAX_ACTIONS}" in faults(*[CLICK] * (MAX_ACTIONS + 1))[0]
