"""HTML of a page as it is in the browser, with the documents of its frames or with computed styles in it.

Frames (``includeIframes``) are written as ``srcdoc`` attributes. Each frame's element is marked in the page with an
attribute of a random name and value, the HTML of every frame is read, and the marks are replaced in the text, the
innermost frames first. The page's own markup is not parsed again, and so not changed.

Computed styles are for automatic extraction. One script, in an isolated world that the page's scripts cannot change,
copies the page into a document that loads and runs nothing, and writes the computed styles of the original into the
copy (``auto/computed_styles.py``). The page itself is not changed, nor is the HTML that users get. Elements can
shadow properties of documents and forms by their names, so everything is read through prototypes. The work is bounded
in time and size; after any fault, extraction goes on without styles.
"""

from __future__ import annotations

import asyncio
import html
import json
import secrets
import time
from typing import Final

from playwright.async_api import CDPSession, Error, Frame, Page

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.auto.computed_styles import ATTRIBUTE, HIDDEN, STRUCK, STYLED

_MARK = """(element, [name, value]) => { element.removeAttribute('srcdoc'); element.setAttribute(name, value); }"""


async def content_with_frames(page: Page, limits: ServiceLimits) -> str:
    """Return a page's HTML with its frames in it, at most ``limits.frames`` of them.

    Slow frames are left out; a part of the time for reading is reserved for the page itself.
    """
    name = f"data-frame-{secrets.token_hex(8)}"
    ends = time.monotonic() + limits.read_page / 2
    texts: dict[Frame, str] = {}
    marks: dict[Frame, str] = {}
    for level in reversed(_levels(page, limits.frames)):
        top = level[0].parent_frame is None
        if not top and time.monotonic() > ends:
            continue
        # Read before marking: a frame loads again when its `srcdoc` is removed.
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


async def _content(frame: Frame, limits: ServiceLimits) -> str | None:
    try:
        async with timeout_after(limits.read_page if frame.parent_frame is None else limits.read_page / 4):
            return await frame.content()
    except Error:
        if frame.parent_frame is None:
            raise
    except TIMEOUT_ERRORS:
        if frame.parent_frame is None:
            raise
    return None


async def _mark(frame: Frame, name: str, value: str, limits: ServiceLimits) -> bool:
    try:
        async with timeout_after(limits.read_page / 8):
            element = await frame.frame_element()
            await element.evaluate(_MARK, [name, value])
    except (Error, *TIMEOUT_ERRORS):
        return False
    return True


#: Bounds: elements of a page, characters of a text that is measured, milliseconds of measuring and of it all.
MAX_ELEMENTS: Final = 30_000
MAX_TEXT: Final = 150
MEASURING: Final = 150
LONGEST: Final = 1_000

_SCRIPT: Final = """((attribute, maxElements, maxText, measuring, maxHtml, STRUCK, HIDDEN, styled) => {
  const call = (f, self, ...rest) => Reflect.apply(f, self, rest);
  const get = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
  const rootOf = get(Document.prototype, 'documentElement'), parentOf = get(Node.prototype, 'parentNode');
  const rect = Element.prototype.getBoundingClientRect, set = Element.prototype.setAttribute;
  const root = call(rootOf, document);
  if (call(get(HTMLCollection.prototype, 'length'),
      call(Document.prototype.getElementsByTagName, document, '*')) > maxElements) return null;
  const inert = call(DOMImplementation.prototype.createHTMLDocument,
    call(get(Document.prototype, 'implementation'), document), '');
  const copy = call(Document.prototype.importNode, inert, root, true);
  for (const node of call(Element.prototype.querySelectorAll, copy, '[' + attribute + ']'))
    call(Element.prototype.removeAttribute, node, attribute);
  const walk = (owner, top) => call(Document.prototype.createTreeWalker, owner, top, 5);
  const originals = walk(document, root), copies = walk(inert, copy);
  const struck = new Map(), seen = new Set(), left = scrollX, top = scrollY;
  const isStruck = (node, levels) => {
    if (!(node instanceof Element) || !levels) return false;
    if (!struck.has(node)) struck.set(node, getComputedStyle(node).textDecorationLine.includes('line-through')
      || isStruck(call(parentOf, node), levels - 1));
    return struck.get(node);
  };
  // Style sheets, where there are any, change the default margin or font.
  const body = call(Element.prototype.querySelector, root, 'body'), usual = body && getComputedStyle(body);
  if (usual && (usual.marginLeft != '8px' || !usual.fontFamily.includes('Times')))
    call(set, copy, attribute, styled);
  call(rect, root);  // lay out the rest
  const started = performance.now();
  for (let count = 0; ; count++) {
    const node = originals.nextNode(), twin = copies.nextNode();
    if (!node || !twin || (count % 64 == 0 && performance.now() - started > measuring)) break;
    let element = node, other = twin;
    if (node.nodeType == 3) {
      if (node.length > maxText || !/\\S/.test(node.data)) continue;
      element = call(parentOf, node);
      other = call(parentOf, twin);
    } else if (!(node instanceof HTMLImageElement)) continue;
    if (seen.has(element) || !(element instanceof HTMLElement)) continue;
    seen.add(element);
    const box = call(rect, element), style = getComputedStyle(element);
    const hidden = !box.width || !box.height || style.visibility != 'visible' || style.opacity == '0';
    const flags = (!hidden && isStruck(element, 4) ? STRUCK : 0) | (hidden ? HIDDEN : 0);
    const place = [box.x + left, box.y + top, box.width, box.height];
    const numbers = [...place, parseFloat(style.fontSize), +style.fontWeight, flags];
    call(set, other, attribute, numbers.map(n => Math.round(Math.max(-99999, Math.min(n || 0, 999999)))).join(' '));
  }
  const html = call(get(Element.prototype, 'outerHTML'), copy);
  return html.length > maxHtml ? null : '<!DOCTYPE html>' + html;
})"""


async def html_with_styles(session: CDPSession, limits: ServiceLimits) -> str | None:
    """Return the HTML of the session's page with computed styles; None when they are not available."""
    arguments = (ATTRIBUTE, MAX_ELEMENTS, MAX_TEXT, MEASURING, limits.html_bytes, STRUCK, HIDDEN, STYLED)
    try:
        async with timeout_after(min(2 * LONGEST / 1000, limits.read_page)):
            tree = await session.send("Page.getFrameTree")
            world = await session.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
            answer = await session.send(
                "Runtime.evaluate",
                {
                    "expression": f"{_SCRIPT}(...{json.dumps(arguments)})",
                    "contextId": world["executionContextId"],
                    "returnByValue": True,
                    "timeout": LONGEST,
                },
            )
    except (Error, *TIMEOUT_ERRORS):
        return None
    html = answer["result"].get("value")
    return html if isinstance(html, str) else None
