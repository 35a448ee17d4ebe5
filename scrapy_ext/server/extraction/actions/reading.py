"""Reading the actions of a request: everything that is wrong with them is told before anything is loaded."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction.forms import check_url
from scrapy_ext.api.violations import Violation
from scrapy_ext.server.extraction.actions.records import Action
from scrapy_ext.server.extraction.actions.table import ACTIONS
from scrapy_ext.server.extraction.actions.waits import COMPARISONS

MAX_ACTIONS: Final = 200

_EVERY: Final = ("action", "onError")
_SECONDS: Final = (0, 30, "seconds")
_PIXELS: Final = (0, 10_000_000, "pixels")

#: The least and the most of a number, and its unit.
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
#: The most characters of a text, and whether it may be empty.
_TEXTS: Final[dict[str, tuple[int, bool]]] = {
    "text": (10_000, True),
    "key": (100, False),
    "urlPattern": (8192, False),
    "source": (100_000, False),
    "selector.value": (10_000, False),
}
_MAX_VALUES: Final = 1000
_TYPES: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
}
_SELECTOR: Final = 'Write {"type": "css", "value": "#more"}.'
_TYPE: Final = re.compile(r"`(.*?)`")
_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$")


def read_actions(entries: list[dict[str, Any]]) -> tuple[list[Action], list[Violation]]:
    """The actions of a request, and every rule that they break."""
    if len(entries) > MAX_ACTIONS:
        return [], [Violation("actions", f"must be at most {MAX_ACTIONS}, got {len(entries)}", "Send fewer actions.")]
    read: list[Action] = []
    violations: list[Violation] = []
    for index, entry in enumerate(entries):
        place = f"actions[{index}]"
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
        told = f"{str(name)[:60]!r} is not an action" if name is not None else "must say which action it is"
        yield Violation(f"{place}.action", told, f"{_close(str(name), ACTIONS)}Use one of {', '.join(ACTIONS)}.")
        return
    for member in kind.needs:
        if member not in entry:
            yield Violation(f"{place}.{member}", f"is required by {kind.name}", "Add it.")
    if kind.some_of and not any(member in entry for member in kind.some_of):
        yield Violation(place, f"must have one of {', '.join(kind.some_of)}", "Say where to.")
    known = (*_EVERY, *kind.needs, *kind.takes)
    for member in entry:
        if member not in known:
            remedy = f"{_close(member, known)}Its members are {', '.join(known)}."
            yield Violation(f"{place}.{member[:60]}", f"is not a member of {kind.name}", remedy)


def _faults_of_values(entry: dict[str, Any], place: str) -> Iterator[Violation]:
    """What is wrong with values of the right type; the others are told by the record."""
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
                yield Violation(where, "must not be empty", "Write what it is to be.")
            elif len(value) > most:
                yield Violation(where, f"must be at most {most} characters, got {len(value)}", "Write less.")
        elif name == "url" and isinstance(value, str):
            yield from check_url(value, where)
        elif name == "values" and isinstance(value, list) and len(value) > _MAX_VALUES:
            yield Violation(where, f"must be at most {_MAX_VALUES} values, got {len(value)}", "Send fewer values.")


def malformed(place: str, fault: str, remedy: str = "Correct this member.") -> Violation:
    """A value of the wrong type, by the name of the member that has it; ``fault`` is what msgspec says of it."""
    found = _PLACE.search(fault)
    member = f".{found[1]}" if found and found[1] else ""
    told = _PLACE.sub("", fault).replace("Expected", "must be").replace(" | null", "")
    told = _TYPE.sub(lambda name: _TYPES.get(name[1], name[1]), told)
    remedy = _SELECTOR if member == ".selector" else remedy
    return Violation(f"{place}{member}", told[0].lower() + told[1:], remedy)


def _close(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}? " if close else ""


def _either(choices: Collection[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}"
