"""HTML of a page as it is in the browser, with the documents of its frames and its shadow roots in it; and as automatic
extraction reads it, with what its styles say.

Frames (``includeIframes``) are written as ``srcdoc`` attributes. Each frame's element is marked in the page with an
attribute of a random name and value, the HTML of every frame is read, and the marks are replaced in the text, the
innermost frames first. The page's own markup is not parsed again, and so not changed.

Shadow roots (``includeShadowRoots``), the open ones, are written as browsers declare them: ``<template
shadowrootmode="open">``.
"""

from __future__ import annotations

import asyncio
import html
import json
import secrets
import time
from typing import Any, Final

from playwright.async_api import CDPSession, Error, Frame, Page

from scrapy_ext.compatibility.python import TIMEOUT_ERRORS, timeout_after
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.auto.page import styles

_MARK = """(element, [name, value]) => { element.removeAttribute('srcdoc'); element.setAttribute(name, value); }"""


#: A document that is no HTML, as of XML, is left to the browser's own serialisation.
_WITH_ROOTS: Final = """() => {
  const root = document.documentElement, roots = [];
  if (!(root instanceof HTMLElement)) return null;
  for (const waiting = [document]; waiting.length;)
    for (const node of waiting.pop().querySelectorAll('*'))
      if (node.shadowRoot) { roots.push(node.shadowRoot); waiting.push(node.shadowRoot); }
  if (!roots.length) return null;
  const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '';
  const [begin] = root.cloneNode(false).outerHTML.split('</html>');
  return doctype + begin + root.getHTML({ shadowRoots: roots }) + '</html>';
}"""


_CONTENT: Final = """() => {
  const { doctype, documentElement: root } = document;
  return (doctype ? new XMLSerializer().serializeToString(doctype) : '') + (root ? root.outerHTML : '');
}"""


async def content_of_page(session: CDPSession, frame: str, *, shadow_roots: bool) -> str | None:
    """Return the HTML of the session's page, whose main frame has this identifier; None where it cannot be read so.

    ``Page.content`` of Playwright takes longer: it first compiles a large script of its own in each page.
    """
    read = f"(({_WITH_ROOTS})() ?? ({_CONTENT})())" if shadow_roots else f"({_CONTENT})()"
    found = await _evaluate(session, frame, read)
    return found if isinstance(found, str) else None


async def content_of(frame: Frame, *, shadow_roots: bool) -> str:
    """Return the HTML of a frame, with its open shadow roots where they are wanted."""
    with_roots = await frame.evaluate(_WITH_ROOTS) if shadow_roots else None
    return with_roots if isinstance(with_roots, str) else await frame.content()


async def content_with_frames(page: Page, limits: ServiceLimits, *, shadow_roots: bool = False) -> str:
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
        read = await asyncio.gather(*(_content(frame, limits, shadow_roots) for frame in level))
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


async def _content(frame: Frame, limits: ServiceLimits, shadow_roots: bool) -> str | None:
    try:
        async with timeout_after(limits.read_page if frame.parent_frame is None else limits.read_page / 4):
            return await content_of(frame, shadow_roots=shadow_roots)
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


# ── hTML of a page for automatic extraction: with its open shadow roots, and with what its styles say ──
#
# One script, in an isolated world that the page's scripts cannot change, copies the page into a document that loads and
# runs nothing, and writes into the copy: the shadow roots, as HTML declares them; of elements that are laid out
# otherwise than their tags, how; and, where wanted, the computed styles of texts and images (``auto/page/styles.py``).
# The page itself is not changed, nor is the HTML that users get. Elements can shadow properties of documents and forms
# by their names, so everything is read through prototypes. The work is bounded in time and size; after any fault,
# extraction goes on with the plain HTML.


#: Bounds: elements of a page, characters of a text that is measured, milliseconds of measuring and of it all.
MAX_ELEMENTS: Final = 30_000
MAX_TEXT: Final = 150
MEASURING: Final = 150
LONGEST: Final = 1_000
#: Two boxes of a line are apart for a reader with so many pixels between them.
GAP: Final = 2
#: Milliseconds of measuring with the rectangles of all elements.
MEASURING_BOXES: Final = 500
#: Smaller sides of a rectangle, in pixels, are those of texts for screen readers.
LEAST_SIDE: Final = 2
#: Media types of documents that are pages.
PAGES: Final = ("text/html", "application/xhtml+xml", "image/svg+xml")

_SCRIPT: Final = """(({ looks, look, display, ofLine, ofBlock, LINE, BLOCK, APART, STRUCK, HIDDEN, styled,
    maxElements, maxText, measuring, maxHtml, gap, pages, boxes, box, complete, leastSide, ofFullPage }) => {
  const call = (f, self, ...rest) => Reflect.apply(f, self, rest);
  const get = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
  const rootOf = get(Document.prototype, 'documentElement'), parentOf = get(Node.prototype, 'parentNode');
  const shadowOf = get(Element.prototype, 'shadowRoot'), childrenOf = get(Node.prototype, 'childNodes');
  const before = get(Node.prototype, 'previousSibling'), nameOf = get(Element.prototype, 'localName');
  const rect = Element.prototype.getBoundingClientRect, set = Element.prototype.setAttribute;
  // The viewers of other files are no pages, and are known by the HTML that the browser gives of them.
  if (!pages.includes(call(get(Document.prototype, 'contentType'), document))) return null;
  const written = boxes ? [look, display, box] : [look, display];
  const root = call(rootOf, document), inLine = new Set(ofLine), inBlocks = new Set(ofBlock);
  const inert = call(DOMImplementation.prototype.createHTMLDocument,
    call(get(Document.prototype, 'implementation'), document), '');
  const importNode = node => call(Document.prototype.importNode, inert, node, true);
  if (call(get(HTMLCollection.prototype, 'length'),
      call(Document.prototype.getElementsByTagName, document, '*')) > maxElements) return null;
  const copy = importNode(root);
  const place = (left, top, rectangle) => [rectangle.x + left, rectangle.y + top, rectangle.width, rectangle.height]
    .map(n => Math.round(Math.max(-99999, Math.min(n || 0, 999999))));
  const shown = { opacityProperty: true, visibilityProperty: true };
  const isShown = node => call(Element.prototype.checkVisibility, node, shown);
  const addBox = (node, twin) => {
    const own = call(rect, node), ofPage = place(scrollX, scrollY, own);
    const isOutside = ofPage[0] + ofPage[2] <= 0 || ofPage[1] + ofPage[3] <= 0;
    if (own.width >= leastSide && own.height >= leastSide && !isOutside && isShown(node))
      call(set, twin, box, (ofFullPage ? ofPage : place(0, 0, own)).join(' '));
  };
  const struck = new Map(), seen = new Set(), left = scrollX, top = scrollY;
  const isStruck = (node, levels) => {
    if (!(node instanceof Element) || !levels) return false;
    if (!struck.has(node)) struck.set(node, getComputedStyle(node).textDecorationLine.includes('line-through')
      || isStruck(call(parentOf, node), levels - 1));
    return struck.get(node);
  };
  const measure = (node, twin) => {
    let element = node, other = twin;
    if (node.nodeType == 3) {
      if (node.length > maxText || !/\\S/.test(node.data)) return;
      element = call(parentOf, node);
      other = call(parentOf, twin);
    } else if (!(node instanceof HTMLImageElement)) return;
    if (seen.has(element) || !(element instanceof HTMLElement)) return;
    seen.add(element);
    const own = call(rect, element), style = getComputedStyle(element);
    const hidden = !own.width || !own.height || style.visibility != 'visible' || style.opacity == '0';
    const flags = (!hidden && isStruck(element, 4) ? STRUCK : 0) | (hidden ? HIDDEN : 0);
    const type = [parseFloat(style.fontSize), +style.fontWeight, flags];
    const numbers = type.map(n => Math.round(Math.max(-99999, Math.min(n || 0, 999999))));
    call(set, other, look, [...place(left, top, own), ...numbers].join(' '));
  };
  // How an element lies beside the one directly before it.
  const besideOther = (node, box) => {
    const other = call(before, node);
    if (!(other instanceof HTMLElement)) return null;
    const its = call(rect, other);
    if (!its.width || !box.width) return null;
    if (box.top >= its.bottom - 1 || its.top >= box.bottom - 1) return BLOCK;
    return Math.max(box.left - its.right, its.left - box.right) >= gap ? APART : LINE;
  };
  const displayOf = (node, name) => {
    const { display: value, float, position } = getComputedStyle(node);
    if (value == 'none' || position == 'absolute' || position == 'fixed' || float != 'none') return null;
    const parent = call(parentOf, node);
    const isItem = parent instanceof Element && /flex|grid/.test(getComputedStyle(parent).display);
    const isInLine = /^(inline|contents|ruby)/.test(value);
    if (!inLine.has(name)) {
      if (isItem || !isInLine) return inBlocks.has(name) ? null : BLOCK;
      return besideOther(node, call(rect, node)) == BLOCK ? null : LINE;
    }
    if (!isItem && !isInLine) return BLOCK;
    const beside = besideOther(node, call(rect, node));
    return beside == LINE || (beside == BLOCK && !isItem && value == 'inline') ? null : beside;
  };
  call(rect, root);  // lay out the rest
  const started = performance.now(), roots = [], pairs = [[root, copy]];
  const walker = top => call(Document.prototype.createTreeWalker, document, top, 5);
  let count = 0, late = false;
  while (pairs.length) {
    const [original, twinTop] = pairs.pop();
    const originals = walker(original), copies = walker(twinTop);
    for (let node = original, twin = twinTop; node && twin; node = originals.nextNode(), twin = copies.nextNode()) {
      if (node.nodeType == 1) {
        for (const name of written)
          if (call(Element.prototype.hasAttribute, twin, name)) call(Element.prototype.removeAttribute, twin, name);
        const shadow = call(shadowOf, node);
        if (shadow) {
          const template = call(Document.prototype.createElement, inert, 'template');
          call(set, template, 'shadowrootmode', 'open');
          const content = call(get(HTMLTemplateElement.prototype, 'content'), template);
          for (const child of call(childrenOf, shadow)) call(Node.prototype.appendChild, content, importNode(child));
          roots.push([twin, template]);
          pairs.push([shadow, content]);
        }
        const tag = call(nameOf, node);
        late ||= count++ % 64 == 0 && performance.now() - started > measuring;
        if (boxes && !late && node instanceof HTMLElement && node != root) addBox(node, twin);
        if (!late && node instanceof HTMLElement
            && (inLine.has(tag) || inBlocks.has(tag) || tag.includes('-'))) {
          const value = displayOf(node, tag);
          if (value) call(set, twin, display, value);
        }
      }
      if (looks && !late) measure(node, twin);
    }
  }
  for (const [twin, template] of roots) call(Element.prototype.prepend, twin, template);
  // Style sheets, where there are any, change the default margin or font.
  const body = call(Element.prototype.querySelector, root, 'body'), usual = body && getComputedStyle(body);
  if (looks && usual && (usual.marginLeft != '8px' || !usual.fontFamily.includes('Times')))
    call(set, copy, look, styled);
  if (boxes && !late) call(set, copy, box, complete);
  const html = call(get(Element.prototype, 'outerHTML'), copy);
  return html.length > maxHtml ? null : '<!DOCTYPE html>' + html;
})"""


async def html_for_reading(
    session: CDPSession,
    frame: str,
    limits: ServiceLimits,
    *,
    looks: bool,
    boxes: bool = False,
    of_full_page: bool = False,
) -> str | None:
    """Return the HTML of the session's page for extraction; None where it is not available.

    It has the computed styles for ``looks``, and for ``boxes`` the rectangles of elements in a screenshot that is taken
    now: of the window, or ``of_full_page``.
    """
    options = {
        "looks": looks,
        "look": styles.STYLE_ATTRIBUTE,
        "display": styles.DISPLAY_ATTRIBUTE,
        "ofLine": sorted(styles.OF_LINE),
        "ofBlock": sorted(styles.OF_BLOCK),
        "LINE": styles.LINE,
        "BLOCK": styles.BLOCK,
        "APART": styles.APART,
        "STRUCK": styles.STRUCK,
        "HIDDEN": styles.HIDDEN,
        "styled": styles.STYLED,
        "maxElements": MAX_ELEMENTS,
        "maxText": MAX_TEXT,
        "measuring": MEASURING_BOXES if boxes else MEASURING,
        "boxes": boxes,
        "box": styles.BOX_ATTRIBUTE,
        "complete": styles.COMPLETE,
        "leastSide": LEAST_SIDE,
        "ofFullPage": of_full_page,
        "maxHtml": limits.html_bytes,
        "gap": GAP,
        "pages": PAGES,
    }
    try:
        async with timeout_after(min(2 * LONGEST / 1000, limits.read_page)):
            html = await _evaluate(session, frame, f"{_SCRIPT}({json.dumps(options)})", timeout=LONGEST)
    except (Error, *TIMEOUT_ERRORS):
        return None
    return html if isinstance(html, str) else None


async def _evaluate(session: CDPSession, frame: str, expression: str, **options: Any) -> Any:
    """Return the value of a script in an isolated world of a frame, which the page's scripts cannot change."""
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame})
    answer = await session.send(
        "Runtime.evaluate",
        {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True, **options},
    )
    return answer["result"].get("value")
