"""Kinds of action with their members, and the reader of the actions of a request.

Every fault is reported before anything is loaded.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction.forms import check_url
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.extraction.actions.action import Action, malformed
from scrapy_ext.server.extraction.actions.handlers import ACTIONS, COMPARISONS

#: The meaning of each member. Times are in seconds.
MEMBERS: Final[dict[str, str]] = {
    "selector": "The element: an object of value, type (css, the default; xpath; text) and, for waitForSelector, state "
    "(visible, the default; hidden; attached; detached). The first element that is found counts.",
    "text": "The text, typed key by key.",
    "key": "The key: a character, or a name such as Enter, Tab, ArrowDown, Control+A.",
    "values": "Values or labels of the options.",
    "button": "The button of the mouse: left (the default), right or middle.",
    "delay": "Time from pressing to releasing; of type, the time between keys.",
    "timeout": "The time that the action may take, 0 to 30; by default 5, and 15 for those that load or scroll. "
    "Of waitForTimeout, the time that it waits.",
    "waitForNavigationTimeout": "Wait at most this long for the page that the click leads to. None is no failure.",
    "waitUntil": "How far the page must be loaded: load (the default), domcontentloaded or networkidle.",
    "url": "An absolute URL, to which the rules of the field url apply.",
    "urlPattern": "The text to compare with the URL of the request.",
    "urlMatchingOptions": "The comparison: contains (the default), startsWith, endsWith or exact.",
    "source": "JavaScript. The value of its last expression is the result, when JSON can say it. Write await before a "
    "promise.",
    "maxScrollCount": "Scroll at most this often.",
    "maxScrollDelay": "Wait at most this long, 3 by default, for what each scroll makes the page load.",
    "maxPageHeight": "Scroll no further once the page is this high, in pixels.",
    "top": "Pixels from the top of the page.",
    "left": "Pixels from its left side.",
    "onError": "After a failure: return (the default), no further action is run; or continue.",
}

MAX_ACTIONS: Final = 200

_EVERY: Final = ("action", "onError")
_SECONDS: Final = (0, 30, "seconds")
_PIXELS: Final = (0, 10_000_000, "pixels")

#: Smallest and largest value of a number, and its unit.
_BOUNDS: Final[dict[str, tuple[int, int, str]]] = {
    "timeout": _SECONDS,
    "delay": _SECONDS,
    "waitForNavigationTimeout": _SECONDS,
    "maxScrollDelay": _SECONDS,
    "maxScrollCount": (1, 1000, "times"),
    "maxPageHeight": (1, 10_000_000, "pixels"),
    "top": _PIXELS,
    "left": _PIXELS,
}
_CHOICES: Final[dict[str, Collection[str]]] = {
    "onError": ("return", "continue"),
    "button": ("left", "right", "middle"),
    "waitUntil": ("load", "domcontentloaded", "networkidle"),
    "urlMatchingOptions": COMPARISONS,
    "selector.type": ("css", "xpath", "text"),
    "selector.state": ("attached", "detached", "visible", "hidden"),
}
#: Longest text, in characters, and whether it may be empty.
_TEXTS: Final[dict[str, tuple[int, bool]]] = {
    "text": (10_000, True),
    "key": (100, False),
    "urlPattern": (8192, False),
    "source": (100_000, False),
    "selector.value": (10_000, False),
}
_MAX_VALUES: Final = 1000


def read_actions(entries: list[dict[str, Any]], field: str = "actions") -> tuple[list[Action], list[Violation]]:
    """Return the actions in a ``field`` of a request, and every violation."""
    if len(entries) > MAX_ACTIONS:
        return [], [Violation(field, f"must be at most {MAX_ACTIONS}, got {len(entries)}", "Send fewer actions.")]
    read: list[Action] = []
    violations: list[Violation] = []
    for index, entry in enumerate(entries):
        place = f"{field}[{index}]"
        faults = list(_faults_of_members(entry, place)) or list(_faults_of_values(entry, place))
        if not faults:
            try:
                read.append(msgspec.convert(entry, Action))
            except msgspec.ValidationError as error:
                faults = [malformed(place, str(error))]
        violations.extend(faults)
    return read, violations


def _faults_of_members(entry: dict[str, Any], place: str) -> Iterator[Violation]:
    name = entry.get("action")
    kind = ACTIONS.get(name) if isinstance(name, str) else None
    if kind is None:
        rule = f"{str(name)[:60]!r} is not an action" if name is not None else "must name the action"
        yield Violation(f"{place}.action", rule, f"{_close(str(name), ACTIONS)}Use one of {', '.join(ACTIONS)}.")
        return
    for member in kind.needs:
        if member not in entry:
            yield Violation(f"{place}.{member}", f"is required by {kind.name}", "Add it.")
    if kind.some_of and not any(member in entry for member in kind.some_of):
        yield Violation(place, f"must have one of {', '.join(kind.some_of)}", "Add one of them.")
    known = (*_EVERY, *kind.needs, *kind.takes)
    for member in entry:
        if member not in known:
            remedy = f"{_close(member, known)}Its members are {', '.join(known)}."
            yield Violation(f"{place}.{member[:60]}", f"is not a member of {kind.name}", remedy)


def _faults_of_values(entry: dict[str, Any], place: str) -> Iterator[Violation]:
    """Yield violations of values of the right type; wrong types are found by msgspec."""
    selector = entry.get("selector")
    members = dict(entry)
    if isinstance(selector, dict):
        members.update((f"selector.{name}", value) for name, value in selector.items())
    for name, value in members.items():
        where = f"{place}.{name}"
        if name in _BOUNDS and isinstance(value, int | float) and not isinstance(value, bool):
            least, most, unit = _BOUNDS[name]
            if not least <= value <= most:
                yield Violation(where, f"must be {least} to {most} {unit}", "Use a value in this range.")
        elif name in _CHOICES and isinstance(value, str) and value not in _CHOICES[name]:
            rule = f"must be {_either(_CHOICES[name])}, got {value[:60]!r}"
            yield Violation(where, rule, "Use one of these values.")
        elif name in _TEXTS and isinstance(value, str):
            most, may_be_empty = _TEXTS[name]
            if not may_be_empty and not value:
                yield Violation(where, "must not be empty", "Write a value.")
            elif len(value) > most:
                yield Violation(where, f"must be at most {most} characters, got {len(value)}", "Write less.")
        elif name == "url" and isinstance(value, str):
            yield from check_url(value, where)
        elif name == "values" and isinstance(value, list) and len(value) > _MAX_VALUES:
            yield Violation(where, f"must be at most {_MAX_VALUES} values, got {len(value)}", "Send fewer values.")


def _close(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}? " if close else ""


def _either(choices: Collection[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}"
