"""``includeIframes``: the documents of a page's frames, written into its HTML as ``srcdoc`` attributes.

Each frame's element is marked in the page with an attribute of a random name and value, the HTML of every
frame is read, and the marks are replaced in the text, the innermost frames first. The page's own markup is
not parsed again, and so not changed.
"""

from __future__ import annotations

import asyncio
import html
import secrets

from playwright.async_api import Error, Frame, Page

from scrapy_ext.server.extraction.limits import Limits

_MARK = """(element, [name, value]) => { element.removeAttribute('srcdoc'); element.setAttribute(name, value); }"""


async def content_with_frames(page: Page, limits: Limits) -> str:
    """A page's HTML with its frames in it, at most ``Limits.frames`` of them."""
    name = f"data-frame-{secrets.token_hex(8)}"
    frames = [page.main_frame]
    for frame in frames:
        frames.extend(child for child in frame.child_frames[: limits.frames] if len(frames) < limits.frames)
    texts: dict[Frame, str] = {}
    marks: dict[Frame, str] = {}
    # Read before marking: taking `srcdoc` away makes a frame load anew.
    for frame in reversed(frames):
        text = await _content(frame, limits)
        if text is None:
            continue
        for child in frame.child_frames:
            if child in marks:
                text = text.replace(f'{name}="{marks[child]}"', f'srcdoc="{html.escape(texts[child])}"', 1)
        if len(text) > limits.html_bytes:
            continue
        texts[frame] = text
        if frame.parent_frame is not None and await _mark(frame, name, str(len(marks))):
            marks[frame] = str(len(marks))
    return texts.get(page.main_frame, "")


async def _content(frame: Frame, limits: Limits) -> str | None:
    """A frame's HTML; None when it is gone, or too busy to be read."""
    try:
        async with asyncio.timeout(limits.read_page if frame.parent_frame is None else limits.read_page / 4):
            return await frame.content()
    except Error:
        if frame.parent_frame is None:
            raise
    except TimeoutError:
        if frame.parent_frame is None:
            raise
    return None


async def _mark(frame: Frame, name: str, value: str) -> bool:
    try:
        async with asyncio.timeout(1):
            element = await frame.frame_element()
            await element.evaluate(_MARK, [name, value])
    except (Error, TimeoutError):
        return False
    return True
