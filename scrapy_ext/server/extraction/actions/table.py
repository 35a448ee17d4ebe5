"""The kinds of action: what each is called, what it does, which members it has, and who does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from scrapy_ext.server.extraction.actions import elements, pages, waits
from scrapy_ext.server.extraction.actions.records import Action
from scrapy_ext.server.extraction.actions.stage import Stage


class Kind(msgspec.Struct, frozen=True):
    """A kind of action: the members it needs, those it takes besides, and its time when it is given none (seconds)."""

    name: str
    meaning: str
    run: Callable[[Stage, Action, float], Awaitable[Any]]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    timeout: float = 5.0
    waits: bool = False
    #: Of these it needs at least one.
    some_of: tuple[str, ...] = ()


#: What each member means, wherever it is taken. Times are in seconds.
MEMBERS: Final[dict[str, str]] = {
    "selector": "The element: an object of value, type (css, the default; xpath; text) and, for waitForSelector, state "
    "(visible, the default; hidden; attached; detached). The first element that is found counts.",
    "text": "What is typed, key by key.",
    "key": "The key: a character, or a name such as Enter, Tab, ArrowDown, Control+A.",
    "values": "Values or labels of the options.",
    "button": "The button of the mouse: left (the default), right or middle.",
    "delay": "Time from pressing to releasing; of type, the time between keys.",
    "timeout": "The time that the action may take, 0 to 30; by default 5, and 15 for those that load or scroll. "
    "Of waitForTimeout, the time that it waits.",
    "waitForNavigationTimeout": "Wait at most this long for the page that the click leads to. None is no failure.",
    "waitUntil": "How far the page must be loaded: load (the default), domcontentloaded or networkidle.",
    "url": "An absolute URL, to which the rules of the field url apply.",
    "urlPattern": "What the URL of the request is compared with.",
    "urlMatchingOptions": "How it is compared: contains (the default), startsWith, endsWith or exact.",
    "source": "JavaScript. The value of its last expression is the result, when JSON can say it. Write await before a "
    "promise.",
    "maxScrollCount": "Scroll at most this often.",
    "maxScrollDelay": "Wait at most this long, 3 by default, for what each scroll makes the page load.",
    "maxPageHeight": "Scroll no further once the page is this high, in pixels.",
    "top": "Pixels from the top of the page.",
    "left": "Pixels from its left side.",
    "onError": "What follows when the action fails: return (the default), no further action; or continue.",
}

_PRESSED: Final = ("timeout", "delay", "button")
_MATCHED: Final = ("urlMatchingOptions", "timeout")
_LOADED: Final = ("timeout", "waitUntil")
_SCROLLED: Final = ("timeout", "maxScrollCount", "maxScrollDelay", "maxPageHeight")

ACTIONS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("click", "Click an element.", elements.click, ("selector",), (*_PRESSED, "waitForNavigationTimeout")),
        Kind("doubleClick", "Click an element twice.", elements.double_click, ("selector",), _PRESSED),
        Kind("hover", "Move the pointer over an element.", elements.hover, ("selector",), ("timeout",)),
        Kind("type", "Type a text into a field.", elements.type_text, ("selector", "text"), ("timeout", "delay")),
        Kind(
            "keyPress",
            "Press a key, such as Enter, in an element or where the focus is.",
            elements.key_press,
            ("key",),
            ("selector", "timeout", "delay"),
        ),
        Kind(
            "select",
            "Choose options of a select element, by value or label.",
            elements.select,
            ("selector", "values"),
            ("timeout",),
        ),
        Kind("hide", "Hide all elements that are found.", elements.hide, ("selector",), ("timeout",)),
        Kind(
            "scrollTo",
            "Scroll to an element, or to a place in pixels.",
            elements.scroll_to,
            takes=("selector", "top", "left", "timeout"),
            some_of=("selector", "top", "left"),
        ),
        Kind(
            "scrollBottom",
            "Scroll to the end, as often as the page grows.",
            pages.scroll_bottom,
            takes=_SCROLLED,
            timeout=15.0,
        ),
        Kind(
            "waitForSelector",
            "Wait until an element is visible, or in the state of the selector.",
            waits.wait_for_selector,
            ("selector",),
            ("timeout",),
            waits=True,
        ),
        Kind("waitForTimeout", "Wait for a time.", waits.wait_for_timeout, ("timeout",), waits=True),
        Kind(
            "waitForRequest",
            "Wait until the page has sent a request.",
            waits.wait_for_request,
            ("urlPattern",),
            _MATCHED,
            waits=True,
        ),
        Kind(
            "waitForResponse",
            "Wait until the page has got a response.",
            waits.wait_for_response,
            ("urlPattern",),
            _MATCHED,
            waits=True,
        ),
        Kind(
            "waitForNavigation",
            "Wait until the page is another one.",
            waits.wait_for_navigation,
            (),
            _LOADED,
            timeout=15.0,
            waits=True,
        ),
        Kind("evaluate", "Run a script in the page.", pages.evaluate, ("source",), ("timeout",)),
        Kind("goto", "Go to another URL.", pages.goto, ("url",), _LOADED, timeout=15.0),
        Kind("reload", "Load the page once more.", pages.reload, (), _LOADED, timeout=15.0),
    )
}
