"""Browser actions: what a caller may have done in a page before it is read (extraction-api.md, ``actions``).

An action is an object whose ``action`` names its kind; :data:`ACTIONS` is the table of kinds and of the members
that each takes. The document shows ``click`` and ``type``; the others are those that its users know from
services of the kind. Times are in seconds.

All actions are checked before anything is loaded. One that fails in the page (no such element, out of time)
does not fail the page: the actions after it are not run, unless ``"onError": "continue"`` says so, and the
answer's ``actions`` tell of each what became of it: ``action``, ``status`` (``success``, ``failed``, ``skipped``),
``elapsedTime`` and ``error``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec
from playwright.async_api import Error, Locator, Page

from scrapy_ext.api.violations import Violation

MAX_ACTIONS: Final = 100
_MAX_WAIT: Final = 30.0
_DEFAULT_WAIT: Final = 5.0
_TEXT_LIMIT: Final = 10_000


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An element: the first that a CSS selector, an XPath or a visible text finds.

    ``state`` is what ``waitForSelector`` waits for.
    """

    value: str
    type: str = "css"
    state: str = "visible"


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One action. Which members an action of its kind takes is in :data:`ACTIONS`."""

    action: str
    selector: Selector | None = None
    text: str | None = None
    key: str | None = None
    values: list[str] | None = None
    delay: float = 0.0
    timeout: float | None = None
    max_scroll_count: int | None = None
    on_error: str = "return"


class Kind(msgspec.Struct, frozen=True):
    """A kind of action: what it does, the members it needs and those it takes besides, and how it is done."""

    name: str
    meaning: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]
    run: Callable[[Page, Action], Awaitable[None]]


def _locator(page: Page, action: Action) -> Locator:
    selector = action.selector
    assert selector is not None  # noqa: S101  (the table's `needs` were checked)
    if selector.type == "text":
        return page.get_by_text(selector.value).first
    return page.locator(f"{selector.type}={selector.value}").first


def _milliseconds(action: Action) -> float:
    return 1000 * (_DEFAULT_WAIT if action.timeout is None else action.timeout)


async def _click(page: Page, action: Action) -> None:
    await _locator(page, action).click(timeout=_milliseconds(action), delay=1000 * action.delay)


async def _hover(page: Page, action: Action) -> None:
    await _locator(page, action).hover(timeout=_milliseconds(action))


async def _type(page: Page, action: Action) -> None:
    # Key by key, because pages listen to keys: fields that suggest, search or check as one types.
    locator = _locator(page, action)
    await locator.press_sequentially(action.text or "", delay=1000 * action.delay, timeout=_milliseconds(action))


async def _key_press(page: Page, action: Action) -> None:
    if action.selector is None:
        await page.keyboard.press(action.key or "", delay=1000 * action.delay)
    else:
        await _locator(page, action).press(action.key or "", delay=1000 * action.delay, timeout=_milliseconds(action))


async def _select(page: Page, action: Action) -> None:
    await _locator(page, action).select_option(action.values or [], timeout=_milliseconds(action))


async def _wait_for_selector(page: Page, action: Action) -> None:
    state: Any = action.selector.state if action.selector else "visible"
    await _locator(page, action).wait_for(state=state, timeout=_milliseconds(action))


async def _wait_for_timeout(_page: Page, action: Action) -> None:
    await asyncio.sleep(action.timeout or 0)


async def _scroll_bottom(page: Page, action: Action) -> None:
    """Scroll down until the page grows no more, a count of times, or out of time, which is no failure here."""
    ends = time.monotonic() + _milliseconds(action) / 1000
    height = -1
    for _ in range(action.max_scroll_count or 1000):
        now = await page.evaluate(
            "() => { const e = document.scrollingElement || document.documentElement;"
            " e.scrollTo(0, e.scrollHeight); return e.scrollHeight; }"
        )
        if now == height or time.monotonic() > ends:
            return
        height = now
        # What an endless page loads next comes after a moment.
        await asyncio.sleep(0.5)


ACTIONS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("click", "Click an element.", ("selector",), ("timeout", "delay"), _click),
        Kind("hover", "Move the pointer over an element.", ("selector",), ("timeout",), _hover),
        Kind("type", "Type a text into a field.", ("selector", "text"), ("timeout", "delay"), _type),
        Kind("keyPress", "Press a key, such as Enter.", ("key",), ("selector", "timeout", "delay"), _key_press),
        Kind("select", "Choose options of a select element.", ("selector", "values"), ("timeout",), _select),
        Kind("waitForSelector", "Wait until an element is there.", ("selector",), ("timeout",), _wait_for_selector),
        Kind("waitForTimeout", "Wait for a time.", ("timeout",), (), _wait_for_timeout),
        Kind("scrollBottom", "Scroll to the end of the page.", (), ("timeout", "maxScrollCount"), _scroll_bottom),
    )
}


# ── reading ──


def read_actions(entries: list[dict[str, Any]]) -> tuple[list[Action], list[Violation]]:
    """The actions of a request, and every rule that they break."""
    if len(entries) > MAX_ACTIONS:
        return [], [Violation("actions", f"must be at most {MAX_ACTIONS}, got {len(entries)}", "Send fewer actions.")]
    read, violations = [], []
    for index, entry in enumerate(entries):
        place = f"actions[{index}]"
        faults = list(_kind_faults(entry, place))
        if not faults:
            try:
                action = msgspec.convert(entry, Action)
            except msgspec.ValidationError as error:
                faults = [Violation(place, f"is not well formed: {error}", "Correct this member.")]
            else:
                faults = list(_value_faults(action, place))
                read.append(action)
        violations.extend(faults)
    return read, violations


def _kind_faults(entry: dict[str, Any], place: str) -> Iterator[Violation]:
    name = entry.get("action")
    kind = ACTIONS.get(name) if isinstance(name, str) else None
    if kind is None:
        told = f"{str(name)[:60]!r} is not an action" if name is not None else "must say which action it is"
        yield Violation(f"{place}.action", told, f"Use one of {', '.join(ACTIONS)}.")
        return
    for member in kind.needs:
        if member not in entry:
            yield Violation(f"{place}.{member}", f"is required by {kind.name}", "Add it.")
    for member in entry:
        if member not in ("action", "onError", *kind.needs, *kind.takes):
            known = ", ".join(("action", "onError", *kind.needs, *kind.takes))
            yield Violation(f"{place}.{member[:60]}", f"is not a member of {kind.name}", f"Its members are {known}.")


def _value_faults(action: Action, place: str) -> Iterator[Violation]:
    selector = action.selector
    if selector is not None:
        if selector.type not in ("css", "xpath", "text"):
            yield Violation(f"{place}.selector.type", "must be css, xpath or text", "Use one of these values.")
        if not selector.value or len(selector.value) > _TEXT_LIMIT:
            yield Violation(f"{place}.selector.value", "must not be empty, nor that long", "Give a selector.")
        if selector.state not in ("attached", "detached", "visible", "hidden"):
            yield Violation(
                f"{place}.selector.state", "must be attached, detached, visible or hidden", "Use one of these values."
            )
    for name, value in (("timeout", action.timeout), ("delay", action.delay)):
        if value is not None and not 0 <= value <= _MAX_WAIT:
            yield Violation(f"{place}.{name}", f"must be 0 to {_MAX_WAIT:g} seconds", "Use a value in this range.")
    if action.max_scroll_count is not None and not 0 < action.max_scroll_count <= 1000:
        yield Violation(f"{place}.maxScrollCount", "must be 1 to 1000", "Use a value in this range.")
    if action.text is not None and len(action.text) > _TEXT_LIMIT:
        yield Violation(f"{place}.text", f"must be at most {_TEXT_LIMIT} characters", "Type less.")
    if action.on_error not in ("return", "continue"):
        yield Violation(f"{place}.onError", "must be return or continue", "Use one of these values.")


# ── running ──


async def run_actions(page: Page, actions: list[Action], time_limit: float) -> list[dict[str, Any]]:
    """Run actions in order; the answer's ``actions``. Raises only when the page or the browser is gone."""
    ends = time.monotonic() + time_limit
    results: list[dict[str, Any]] = []
    stopped = ""
    for action in actions:
        left = ends - time.monotonic()
        if left <= 0 and not stopped:
            stopped = f"the time for all actions, {time_limit:g} s, is used up"
        if stopped:
            results.append({"action": action.action, "status": "skipped", "error": stopped})
            continue
        result = await _run(page, action, left)
        results.append(result)
        if "error" in result and action.on_error == "return":
            stopped = f"an action before it, {action.action}, failed"
    return results


async def _run(page: Page, action: Action, left: float) -> dict[str, Any]:
    started = time.monotonic()
    error = ""
    try:
        async with asyncio.timeout(left):
            await ACTIONS[action.action].run(page, action)
    except TimeoutError:
        error = "out of time"
    except Error as failure:
        if page.is_closed():
            raise
        error = _told(failure)
    result: dict[str, Any] = {
        "action": action.action,
        "status": "failed" if error else "success",
        "elapsedTime": round(time.monotonic() - started, 3),
    }
    return {**result, "error": error} if error else result


def _told(failure: Error) -> str:
    """The first line of the browser's complaint, without the call that it came from."""
    line = failure.message.partition("\n")[0]
    return (line.partition(": ")[2] or line)[:300]
