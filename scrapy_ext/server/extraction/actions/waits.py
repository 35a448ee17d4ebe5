"""Actions that wait.

A page may be faster than the caller's next action. So what a wait for a request, a response or a navigation is for may
have come already: it counts when it came after the last action that was no wait had begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from scrapy_ext.server.extraction.actions.records import Action, ActionError
from scrapy_ext.server.extraction.actions.stage import Stage

#: How ``urlPattern`` is compared with a URL, by the name that ``urlMatchingOptions`` gives it.
COMPARISONS: Final[dict[str, Callable[[str, str], bool]]] = {
    "contains": lambda url, pattern: pattern in url,
    "startsWith": lambda url, pattern: url.startswith(pattern),
    "endsWith": lambda url, pattern: url.endswith(pattern),
    "exact": lambda url, pattern: url == pattern,
}


async def wait_for_timeout(_stage: Stage, _action: Action, seconds: float) -> None:
    """Wait for a time."""
    await asyncio.sleep(seconds)


async def wait_for_selector(stage: Stage, action: Action, seconds: float) -> None:
    """Wait until an element is in the state of the selector."""
    state: Any = action.selector.state if action.selector else "visible"
    await stage.elements(action.selector).first.wait_for(state=state, timeout=1000 * seconds)


async def wait_for_request(stage: Stage, action: Action, seconds: float) -> None:
    """Wait until the page has sent a request."""
    await _seen(stage, action, seconds, answered=False)


async def wait_for_response(stage: Stage, action: Action, seconds: float) -> None:
    """Wait until the page has got a response."""
    await _seen(stage, action, seconds, answered=True)


async def wait_for_navigation(stage: Stage, action: Action, seconds: float) -> None:
    """Wait until the page is another one, and loaded."""
    if not await wait_for_a_navigation(stage, action.wait_until, seconds):
        raise ActionError(f"the page did not move on in {seconds:g} seconds")


async def wait_for_a_navigation(stage: Stage, until: str, seconds: float) -> bool:
    """Wait until the page has moved on from where it stood, and until it is loaded; whether it was in time."""
    page = stage.page
    state: Any = until
    try:
        async with asyncio.timeout(seconds):
            if stage.traffic.arrived is stage.stood_at:
                await page.wait_for_event("framenavigated", lambda frame: frame == page.main_frame, timeout=0)
            await page.wait_for_load_state(state, timeout=0)
    except (TimeoutError, PlaywrightTimeoutError):
        return False
    return True


async def _seen(stage: Stage, action: Action, seconds: float, *, answered: bool) -> None:
    compare, pattern = COMPARISONS[action.url_matching_options], action.url_pattern
    try:
        async with asyncio.timeout(seconds):
            await stage.seen(lambda url: compare(url, pattern), answered=answered)
    except TimeoutError:
        what = "response" if answered else "request"
        raise ActionError(
            f"no {what} with such a URL ({action.url_matching_options} {pattern[:100]!r}) in {seconds:g} seconds"
        ) from None
