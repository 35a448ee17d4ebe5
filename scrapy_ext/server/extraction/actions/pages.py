"""Actions on the page as a whole: elsewhere, anew, to its end, and what a caller has evaluated in it."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec
from w3lib.url import safe_url_string

from scrapy_ext.server.extraction.actions.records import Action, ActionError
from scrapy_ext.server.extraction.actions.stage import Stage

#: What a result of ``evaluate`` may be as JSON, in characters.
MAX_RESULT: Final = 100_000

#: A page hears of being scrolled when it is drawn next, which a busy machine may put off: by the second frame it has
#: asked for what it loads then. A page that draws nothing is waited for no longer than ``most`` milliseconds.
_SCROLL: Final = """async most => {
    const e = document.scrollingElement || document.documentElement, height = e.scrollHeight;
    e.scrollTo(0, height);
    const drawn = new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    await Promise.race([drawn, new Promise(done => setTimeout(done, most))]);
    return height;
}"""
_HEIGHT: Final = "() => (document.scrollingElement || document.documentElement).scrollHeight"
#: The result as text, cut where it is longer than it may be, so that no more than that leaves the page.
_AS_JSON: Final = "function (most) { const text = JSON.stringify(this); return text && text.slice(0, most + 1); }"


async def goto(stage: Stage, action: Action, seconds: float) -> None:
    """Go to another URL; it was checked before the page was loaded, and the connection is checked once more."""
    until: Any = action.wait_until
    await stage.page.goto(safe_url_string(action.url), wait_until=until, timeout=1000 * seconds)


async def reload(stage: Stage, action: Action, seconds: float) -> None:
    """Load the page once more."""
    until: Any = action.wait_until
    await stage.page.reload(wait_until=until, timeout=1000 * seconds)


async def scroll_bottom(stage: Stage, action: Action, seconds: float) -> None:
    """Scroll down until the page grows no more, or one of the bounds is reached, which is no failure."""
    ends = time.monotonic() + seconds
    for _ in range(action.max_scroll_count or 1000):
        most = min(action.max_scroll_delay, max(ends - time.monotonic(), 0))
        stage.traffic.stir()
        height: int = await stage.page.evaluate(_SCROLL, 1000 * most)
        # What an endless page loads next comes after a moment.
        await stage.traffic.quiet(stage.quiet, min(most, max(ends - time.monotonic(), 0)))
        grown: int = await stage.page.evaluate(_HEIGHT)
        if grown <= height or grown >= (action.max_page_height or grown + 1) or time.monotonic() >= ends:
            return


async def evaluate(stage: Stage, action: Action, seconds: float) -> Any:
    """Run a script in the page, as one of its own; the value of its last expression, where JSON can say it.

    Chromium itself ends a script that takes longer than ``seconds``, so that the page can be read after an endless one.
    """
    session = stage.devtools
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
        return None  # A function, or what a page with a JSON of its own makes of it.
    if len(text) > MAX_RESULT:
        return _bounded(text)
    try:
        return _bounded(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        raise ActionError("its result is not one that JSON can say") from None


def _bounded(value: Any) -> Any:
    try:
        size = len(msgspec.json.encode(value))
    except (ValueError, TypeError, RecursionError):  # half a character of text, among others
        raise ActionError("its result is not one that JSON can say") from None
    if size > MAX_RESULT:
        raise ActionError(f"its result is longer than {MAX_RESULT} characters of JSON")
    return value


def _raise_what_was_thrown(answer: dict[str, Any]) -> None:
    details = answer.get("exceptionDetails")
    if details is not None:
        thrown = details.get("exception", {})
        told = str(thrown.get("description") or thrown.get("value") or details.get("text") or "")
        raise ActionError(told.partition("\n")[0][:300] or "the script failed")
