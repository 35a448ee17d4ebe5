"""``includeIframes``: the documents of a page's frames, written into its HTML as ``srcdoc`` attributes.

Each frame's element is marked in the page with an attribute of a random name and value, the HTML of every
frame is read, and the marks are replaced in the text, the innermost frames first. The page's own markup is
not parsed again, and so not changed.
"""

from __future__ import annotations

import asyncio
import html
import secrets
import time

from playwright.async_api import Error, Frame, Page

from scrapy_ext.server.config.extraction_limits import Limits

_MARK = """(element, [name, value]) => { element.removeAttribute('srcdoc'); element.setAttribute(name, value); }"""


async def content_with_frames(page: Page, limits: Limits) -> str:
    """A page's HTML with its frames in it, at most ``Limits.frames`` of them.

    Frames that are slow cost their content, never that of the page: a part of the time for reading is kept for it.
    """
    name = f"data-frame-{secrets.token_hex(8)}"
    ends = time.monotonic() + limits.read_page / 2
    texts: dict[Frame, str] = {}
    marks: dict[Frame, str] = {}
    for level in reversed(_levels(page, limits.frames)):
        top = level[0].parent_frame is None
        if not top and time.monotonic() > ends:
            continue
        # Read before marking: taking `srcdoc` away makes a frame load anew.
        read = await asyncio.gather(*(_content(frame, limits) for frame in level))
        for frame, text in zip(level, read, strict=True):
            if text is not None:
                whole = _with_children(text, frame, name, texts, marks)
                if len(whole) <= limits.html_bytes:
                    texts[frame] = whole
        if not top:
            marking = {frame: str(len(marks) + number) for number, frame in enumerate(level) if frame in texts}
            done = await asyncio.gather(*(_mark(frame, name, mark, limits) for frame, mark in marking.items()))
            marks |= {frame: mark for (frame, mark), well in zip(marking.items(), done, strict=True) if well}
    return texts.get(page.main_frame, "")


def _levels(page: Page, most: int) -> list[list[Frame]]:
    """The first frames of a page by how deep they are nested, the page itself first."""
    levels = [[page.main_frame]]
    left = most - 1
    while left > 0:
        children = [child for frame in levels[-1] for child in frame.child_frames][:left]
        if not children:
            break
        levels.append(children)
        left -= len(children)
    return levels


def _with_children(text: str, frame: Frame, name: str, texts: dict[Frame, str], marks: dict[Frame, str]) -> str:
    for child in frame.child_frames:
        if child in marks:
            text = text.replace(f'{name}="{marks[child]}"', f'srcdoc="{html.escape(texts[child])}"', 1)
    return text


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


async def _mark(frame: Frame, name: str, value: str, limits: Limits) -> bool:
    try:
        async with asyncio.timeout(limits.read_page / 8):
            element = await frame.frame_element()
            await element.evaluate(_MARK, [name, value])
    except (Error, TimeoutError):
        return False
    return True
