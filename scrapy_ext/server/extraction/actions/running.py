"""Running of the actions of a request, one after the other."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.extraction.actions.action import Action, Selector
from scrapy_ext.server.extraction.actions.context import ActionContext, ActionError
from scrapy_ext.server.extraction.actions.handlers import ACTIONS

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


async def _do(context: ActionContext, action: Action, left: float) -> Any:
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
