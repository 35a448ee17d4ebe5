"""Actions as callers write them, without the browser's driver, which their kinds (:mod:`.handlers`) need."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from scrapy_ext.api.violations import Violation

_TYPE_WORDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
}
_SELECTOR_FORM: Final = 'Write {"type": "css", "value": "#more"}.'
_TYPE_NAME: Final = re.compile(r"`(.*?)`")
_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$")


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first element that a CSS selector, an XPath or a visible text finds.

    ``state`` is the state that ``waitForSelector`` waits for.
    """

    value: str
    type: str = "css"
    state: str = "visible"


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One action. :data:`~.actions.handlers.ACTIONS` has the members that an action of its kind takes."""

    action: str
    selector: Selector | None = None
    text: str = ""
    key: str = ""
    values: list[str] = []
    button: str = "left"
    delay: float = 0.0
    timeout: float | None = None
    wait_for_navigation_timeout: float = 0.0
    wait_until: str = "load"
    url: str = ""
    url_pattern: str = ""
    url_matching_options: str = "contains"
    source: str = ""
    max_scroll_count: int | None = None
    max_scroll_delay: float = 3.0
    max_page_height: int | None = None
    top: int = 0
    left: int = 0
    on_error: str = "return"
    #: The reason why the service refuses it. Set by the service; requests cannot have it.
    refused: str = ""


def malformed(place: str, fault: str, remedy: str = "Correct this member.") -> Violation:
    """Return the violation of a value of the wrong type, by the name of its member; ``fault`` is msgspec's message."""
    found = _PLACE.search(fault)
    member = f".{found[1]}" if found and found[1] else ""
    rule = _PLACE.sub("", fault).replace("Expected", "must be").replace(" | null", "")
    rule = _TYPE_NAME.sub(lambda name: _TYPE_WORDS.get(name[1], name[1]), rule)
    remedy = _SELECTOR_FORM if member == ".selector" else remedy
    return Violation(f"{place}{member}", rule[0].lower() + rule[1:], remedy)
