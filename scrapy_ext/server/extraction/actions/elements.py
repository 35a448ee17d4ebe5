"""Actions on elements."""

from __future__ import annotations

from typing import Any

from scrapy_ext.server.extraction.actions.records import Action
from scrapy_ext.server.extraction.actions.stage import Stage
from scrapy_ext.server.extraction.actions.waits import wait_for_a_navigation

_HIDE = "elements => { for (const e of elements) e.style.setProperty('display', 'none', 'important'); }"


async def click(stage: Stage, action: Action, seconds: float) -> None:
    """Click, and wait for the page that it leads to where that is asked for."""
    button: Any = action.button
    await stage.elements(action.selector).first.click(timeout=1000 * seconds, delay=1000 * action.delay, button=button)
    if action.wait_for_navigation_timeout:
        await wait_for_a_navigation(stage, "load", action.wait_for_navigation_timeout)


async def double_click(stage: Stage, action: Action, seconds: float) -> None:
    """Click twice."""
    button: Any = action.button
    element = stage.elements(action.selector).first
    await element.dblclick(timeout=1000 * seconds, delay=1000 * action.delay, button=button)


async def hover(stage: Stage, action: Action, seconds: float) -> None:
    """Move the pointer."""
    await stage.elements(action.selector).first.hover(timeout=1000 * seconds)


async def type_text(stage: Stage, action: Action, seconds: float) -> None:
    """Type key by key, because pages listen to keys: fields that suggest, search or check as one types."""
    field = stage.elements(action.selector).first
    await field.press_sequentially(action.text, delay=1000 * action.delay, timeout=1000 * seconds)


async def key_press(stage: Stage, action: Action, seconds: float) -> None:
    """Press a key, in an element or where the focus is."""
    if action.selector is None:
        await stage.page.keyboard.press(action.key, delay=1000 * action.delay)
    else:
        await stage.elements(action.selector).first.press(action.key, delay=1000 * action.delay, timeout=1000 * seconds)


async def select(stage: Stage, action: Action, seconds: float) -> None:
    """Choose options by value or by label."""
    await stage.elements(action.selector).first.select_option(action.values, timeout=1000 * seconds)


async def hide(stage: Stage, action: Action, seconds: float) -> None:
    """Hide all elements that the selector finds, when there is one."""
    await stage.elements(action.selector).first.wait_for(state="attached", timeout=1000 * seconds)
    await stage.elements(action.selector).evaluate_all(_HIDE)


async def scroll_to(stage: Stage, action: Action, seconds: float) -> None:
    """Scroll to an element, or to a place in pixels."""
    if action.selector is not None:
        await stage.elements(action.selector).first.scroll_into_view_if_needed(timeout=1000 * seconds)
    else:
        await stage.page.evaluate("([left, top]) => window.scrollTo(left, top)", [action.left, action.top])
