"""Actions in the page: the functions of their kinds (on elements, on the page as a whole, waits), and their running.

A page may be faster than the caller's next action, so that the request, response or navigation of a wait may have
happened already: it counts when it came after the beginning of the last action that was no wait.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeoutError
from w3lib.url import safe_url_string

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.extraction.actions.action import Action, Selector
from scrapy_ext.server.extraction.actions.context import ActionContext, ActionError


class ActionKind(msgspec.Struct, frozen=True):
    """A kind of action: the members it needs, those it takes besides, and its default timeout (seconds)."""

    name: str
    meaning: str
    run: Callable[[ActionContext, Action, float], Awaitable[object]]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    timeout: float = 5.0
    waits: bool = False
    #: Alternatives: at least one of these members is needed.
    some_of: tuple[str, ...] = ()


#: The kinds by name, in the order of this module.
ACTIONS: Final[dict[str, ActionKind]] = {}
_PRESSED: Final = ("timeout", "delay", "button")
_MATCHED: Final = ("urlMatchingOptions", "timeout")
_LOADED: Final = ("timeout", "waitUntil")
_SCROLLED: Final = ("timeout", "maxScrollCount", "maxScrollDelay", "maxPageHeight")

_Run = TypeVar("_Run", bound=Callable[[ActionContext, Action, float], Awaitable[object]])


def _action(name: str, **members: Any) -> Callable[[_Run], _Run]:
    """Make a function a kind of action; the first line of its docstring is the meaning in the reference."""

    def register(run: _Run) -> _Run:
        ACTIONS[name] = ActionKind(name, (run.__doc__ or "").partition("\n")[0], run, **members)
        return run

    return register


#: Comparisons of ``urlPattern`` with a URL, by their names in ``urlMatchingOptions``.
COMPARISONS: Final[dict[str, Callable[[str, str], bool]]] = {
    "contains": lambda url, pattern: pattern in url,
    "startsWith": lambda url, pattern: url.startswith(pattern),
    "endsWith": lambda url, pattern: url.endswith(pattern),
    "exact": lambda url, pattern: url == pattern,
}


_HIDE = "elements => { for (const e of elements) e.style.setProperty('display', 'none', 'important'); }"


@_action("click", needs=("selector",), takes=(*_PRESSED, "waitForNavigationTimeout"))
async def click(context: ActionContext, action: Action, seconds: float) -> None:
    """Click an element."""
    # It waits for the page that the click leads to where that is requested.
    button: Any = action.button
    await context.elements(action.selector).first.click(
        timeout=1000 * seconds, delay=1000 * action.delay, button=button
    )
    if action.wait_for_navigation_timeout:
        await wait_for_a_navigation(context, "load", action.wait_for_navigation_timeout)


@_action("doubleClick", needs=("selector",), takes=_PRESSED)
async def double_click(context: ActionContext, action: Action, seconds: float) -> None:
    """Click an element twice."""
    button: Any = action.button
    element = context.elements(action.selector).first
    await element.dblclick(timeout=1000 * seconds, delay=1000 * action.delay, button=button)


@_action("hover", needs=("selector",), takes=("timeout",))
async def hover(context: ActionContext, action: Action, seconds: float) -> None:
    """Move the pointer over an element."""
    await context.elements(action.selector).first.hover(timeout=1000 * seconds)


@_action("type", needs=("selector", "text"), takes=("timeout", "delay"))
async def type_text(context: ActionContext, action: Action, seconds: float) -> None:
    """Type a text into a field."""
    # Key by key, because pages listen to keys: fields that suggest, search or check during typing.
    field = context.elements(action.selector).first
    await field.press_sequentially(action.text, delay=1000 * action.delay, timeout=1000 * seconds)


@_action("keyPress", needs=("key",), takes=("selector", "timeout", "delay"))
async def key_press(context: ActionContext, action: Action, seconds: float) -> None:
    """Press a key, such as Enter, in an element or where the focus is."""
    if action.selector is None:
        await context.page.keyboard.press(action.key, delay=1000 * action.delay)
    else:
        await context.elements(action.selector).first.press(
            action.key, delay=1000 * action.delay, timeout=1000 * seconds
        )


@_action("select", needs=("selector", "values"), takes=("timeout",))
async def select(context: ActionContext, action: Action, seconds: float) -> None:
    """Choose options of a select element, by value or label."""
    await context.elements(action.selector).first.select_option(action.values, timeout=1000 * seconds)


@_action("hide", needs=("selector",), takes=("timeout",))
async def hide(context: ActionContext, action: Action, seconds: float) -> None:
    """Hide all elements that are found."""
    await context.elements(action.selector).first.wait_for(state="attached", timeout=1000 * seconds)
    await context.elements(action.selector).evaluate_all(_HIDE)


@_action("scrollTo", takes=("selector", "top", "left", "timeout"), some_of=("selector", "top", "left"))
async def scroll_to(context: ActionContext, action: Action, seconds: float) -> None:
    """Scroll to an element, or to a place in pixels."""
    if action.selector is not None:
        await context.elements(action.selector).first.scroll_into_view_if_needed(timeout=1000 * seconds)
    else:
        await context.page.evaluate("([left, top]) => window.scrollTo(left, top)", [action.left, action.top])


#: A page gets the scroll event when it is drawn next, which a busy machine may delay: by the second frame it has
#: requested what it loads then. For a page that draws nothing, the wait ends after ``most`` milliseconds.
_SCROLL: Final = """async most => {
    const e = document.scrollingElement || document.documentElement, height = e.scrollHeight;
    e.scrollTo(0, height);
    const drawn = new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    await Promise.race([drawn, new Promise(done => setTimeout(done, most))]);
    return height;
}"""


_HEIGHT: Final = "() => (document.scrollingElement || document.documentElement).scrollHeight"


@_action("scrollBottom", takes=_SCROLLED, timeout=15.0)
async def scroll_bottom(context: ActionContext, action: Action, seconds: float) -> None:
    """Scroll to the end, as often as the page grows."""
    # A bound that is reached is no failure.
    ends = time.monotonic() + seconds
    for _ in range(action.max_scroll_count or 1000):
        most = min(action.max_scroll_delay, max(ends - time.monotonic(), 0))
        context.traffic.stir()
        height: int = await context.page.evaluate(_SCROLL, 1000 * most)
        # An endless page loads its next part after a moment.
        await context.traffic.quiet(context.quiet, min(most, max(ends - time.monotonic(), 0)))
        grown: int = await context.page.evaluate(_HEIGHT)
        if grown <= height or grown >= (action.max_page_height or grown + 1) or time.monotonic() >= ends:
            return


@_action("waitForSelector", needs=("selector",), takes=("timeout",), waits=True)
async def wait_for_selector(context: ActionContext, action: Action, seconds: float) -> None:
    """Wait until an element is visible, or in the state of the selector."""
    state: Any = action.selector.state if action.selector else "visible"
    await context.elements(action.selector).first.wait_for(state=state, timeout=1000 * seconds)


@_action("waitForTimeout", needs=("timeout",), waits=True)
async def wait_for_timeout(_context: ActionContext, _action: Action, seconds: float) -> None:
    """Wait for a time."""
    await asyncio.sleep(seconds)


@_action("waitForRequest", needs=("urlPattern",), takes=_MATCHED, waits=True)
async def wait_for_request(context: ActionContext, action: Action, seconds: float) -> None:
    """Wait until the page has sent a request."""
    await _seen(context, action, seconds, answered=False)


@_action("waitForResponse", needs=("urlPattern",), takes=_MATCHED, waits=True)
async def wait_for_response(context: ActionContext, action: Action, seconds: float) -> None:
    """Wait until the page has got a response."""
    await _seen(context, action, seconds, answered=True)


async def _seen(context: ActionContext, action: Action, seconds: float, *, answered: bool) -> None:
    compare, pattern = COMPARISONS[action.url_matching_options], action.url_pattern
    try:
        async with timeout_after(seconds):
            await context.seen(lambda url: compare(url, pattern), answered=answered)
    except TIMEOUT_ERRORS:
        what = "response" if answered else "request"
        raise ActionError(
            f"no {what} with such a URL ({action.url_matching_options} {pattern[:100]!r}) in {seconds:g} seconds"
        ) from None


@_action("waitForNavigation", takes=_LOADED, timeout=15.0, waits=True)
async def wait_for_navigation(context: ActionContext, action: Action, seconds: float) -> None:
    """Wait until the page is another one."""
    if not await wait_for_a_navigation(context, action.wait_until, seconds):
        raise ActionError(f"the page did not move on in {seconds:g} seconds")


async def wait_for_a_navigation(context: ActionContext, until: str, seconds: float) -> bool:
    """Wait until the page has moved on and is loaded; return whether it was in time."""
    page = context.page
    state: Any = until
    try:
        async with timeout_after(seconds):
            if context.traffic.arrived is context.stood_at:
                await page.wait_for_event("framenavigated", lambda frame: frame == page.main_frame, timeout=0)
            await page.wait_for_load_state(state, timeout=0)
    except (*TIMEOUT_ERRORS, PlaywrightTimeoutError):
        return False
    return True


#: Longest result of ``evaluate`` as JSON, in characters.
MAX_RESULT: Final = 100_000


#: The result as text, cut to one character more than the limit.
_AS_JSON: Final = "function (most) { const text = JSON.stringify(this); return text && text.slice(0, most + 1); }"


@_action("evaluate", needs=("source",), takes=("timeout",))
async def evaluate(context: ActionContext, action: Action, seconds: float) -> object:
    """Run a script in the page."""
    # The result is the value of the last expression. Chromium itself ends a script that takes longer than ``seconds``,
    # so that the page can be read after an endless one.
    session = context.devtools
    answer = await session.send(
        "Runtime.evaluate",
        {"expression": action.source, "replMode": True, "awaitPromise": True, "timeout": 1000 * seconds},
    )
    _raise_what_was_thrown(answer)
    value = answer["result"]
    if "objectId" not in value:
        return _bounded(value.get("value"))
    call = {"functionDeclaration": _AS_JSON, "objectId": value["objectId"], "arguments": [{"value": MAX_RESULT}]}
    answer = await session.send("Runtime.callFunctionOn", {**call, "returnByValue": True})
    _raise_what_was_thrown(answer)
    text = answer["result"].get("value")
    if not isinstance(text, str):
        return None  # A function, or the output of a page's own JSON object.
    if len(text) > MAX_RESULT:
        return _bounded(text)
    try:
        return _bounded(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        raise ActionError("its result cannot be written as JSON") from None


def _bounded(value: object) -> object:
    try:
        size = len(msgspec.json.encode(value))
    except (ValueError, TypeError, RecursionError):  # half a character of text, among others
        raise ActionError("its result cannot be written as JSON") from None
    if size > MAX_RESULT:
        raise ActionError(f"its result is longer than {MAX_RESULT} characters of JSON")
    return value


def _raise_what_was_thrown(answer: dict[str, Any]) -> None:
    details = answer.get("exceptionDetails")
    if details is not None:
        thrown = details.get("exception", {})
        message = str(thrown.get("description") or thrown.get("value") or details.get("text") or "")
        raise ActionError(message.partition("\n")[0][:300] or "the script failed")


@_action("goto", needs=("url",), takes=_LOADED, timeout=15.0)
async def goto(context: ActionContext, action: Action, seconds: float) -> None:
    """Go to another URL."""
    # The URL was checked before the page was loaded, and the connection is checked once more.
    until: Any = action.wait_until
    await context.page.goto(safe_url_string(action.url), wait_until=until, timeout=1000 * seconds)


@_action("reload", takes=_LOADED, timeout=15.0)
async def reload(context: ActionContext, action: Action, seconds: float) -> None:
    """Load the page once more."""
    until: Any = action.wait_until
    await context.page.reload(wait_until=until, timeout=1000 * seconds)


# ── running of the actions of a request, one after the other ──


#: Time that an action may take over its own limit: the browser ends it itself, with a better message.
_GRACE: Final = 1.0
#: The browser's log of an element that it waits for.
_STATES: Final = re.compile(r"element is ((?:not |outside )[a-z ]+)")


async def run_actions(context: ActionContext, actions: list[Action], time_limit: float) -> list[dict[str, Any]]:
    """Run actions in order and return the answer's ``actions``. Raises only when the page or the browser is lost."""
    ends = time.monotonic() + time_limit
    results: list[dict[str, Any]] = []
    stopped = ""
    for number, action in enumerate(actions):
        left = ends - time.monotonic()
        if left <= 0 and not stopped:
            stopped = f"the time for all actions, {time_limit:g} s, is used up"
        if stopped:
            results.append({"action": action.action, "status": "skipped", "error": stopped})
            continue
        if number == 0:
            context.stood_at = context.traffic.arrived
        result = await _run(context, action, left)
        results.append(result)
        if result["status"] == "returned":
            stopped = f"an action before it, {action.action}, failed"
    return results


async def _run(context: ActionContext, action: Action, left: float) -> dict[str, Any]:
    started = time.monotonic()
    navigation = context.traffic.navigation
    result: dict[str, Any] = {"action": action.action, "status": "success"}
    try:
        value = await _do(context, action, left)
        if value is not None:
            result["result"] = value
        error = ""
    except TIMEOUT_ERRORS:
        error = "out of time"
    except ActionError as failure:
        error = str(failure)
    except Error as failure:
        if context.page.is_closed():
            raise
        error = _message(failure)
    if context.traffic.navigation is not navigation:
        error = await context.back_from_nowhere() or error
    result["elapsedTime"] = round(time.monotonic() - started, 3)
    if error:
        result["status"] = "continued" if action.on_error == "continue" else "returned"
        result["error"] = error
    return result


async def _do(context: ActionContext, action: Action, left: float) -> object:
    if action.refused:
        raise ActionError(action.refused)
    kind = ACTIONS[action.action]
    if not kind.waits:
        context.mark()
    timeout = kind.timeout if action.timeout is None else action.timeout
    # Typing with a delay takes longer, and so does waiting for the page that a click leads to.
    own = timeout + action.delay * max(len(action.text), 1) + action.wait_for_navigation_timeout + _GRACE
    seconds = min(timeout, left)
    async with timeout_after(min(left, own)):
        try:
            return await kind.run(context, action, seconds)
        except PlaywrightTimeoutError as failure:
            if action.selector is None:
                raise
            raise ActionError(_not_found(action.selector, failure.message, seconds)) from None


def _not_found(selector: Selector, log: str, seconds: float) -> str:
    """Return why an action had no element in time: there is none, or it is not in the needed state."""
    named = f"({selector.type} {selector.value[:100]!r}) in {seconds:.3g} seconds"
    if "resolved to" not in log:
        return f"no element with such a selector {named}"
    states = _STATES.findall(log)
    return f"the element was there, and not ready {named}{f': it is {states[-1]}' if states else ''}"


def _message(failure: Error) -> str:
    """Return the first line of the browser's error, without the name of the call."""
    line = failure.message.partition("\n")[0]
    return (line.partition(": ")[2] or line)[:300]
