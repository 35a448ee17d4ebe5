"""Recognition of bans in answers of sites.

A ban is *certain* when the answer has a sign that only block and challenge pages have. Else it may be a *suspicion*: a
plain 403, 429 or 999, a page that is empty or hardly more than a CAPTCHA, or a script that only sets a cookie and
reloads. A suspicion is tried again by another proxy where the server has one, but it never fails a request: many sites
refuse some pages to everybody, and a page that is lost for a false alarm costs more than a ban that is not recognised.
So a status alone is never certain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from scrapy_ext.server.extraction.bans.outline import LARGEST, Outline
from scrapy_ext.server.extraction.bans.signs import (
    BLAME,
    CONTAINERS,
    HEADERS,
    JSON_REFUSALS,
    PLAIN_ERRORS,
    PLAIN_WORDS,
    REDIRECTED_TO,
    REFUSALS,
    REQUESTS,
    SIGNS,
    TYPED_WIDGETS,
    WIDGETS,
    Sign,
)

#: Links of the page of a CAPTCHA at most: where nothing else speaks for a ban, after a redirect to it, in a refusal.
_FEW_LINKS: Final = 3
_SOME_LINKS: Final = 10
_LINKS: Final = 40
#: Visible characters of such a page that is no refusal.
_SHORT: Final = 700
#: And of one that only says so.
_SHORTEST: Final = 300
#: Bytes of a ban page that is no refusal, such as a challenge with status 200, by HTTP. Larger pages are not read: for
#: 100 KB, that took two thirds of the processor time of fetching them.
_LARGEST_PASSED: Final = 64 * 1024
#: Characters of a script that only sets a cookie.
_SMALL: Final = 64 * 1024
#: Statuses that may refuse this client alone.
_SUSPECT: Final = frozenset({403, 429, 999})
_HTML: Final = ("text/html", "application/xhtml")
_PLAIN: Final = ("text/plain", "application/json", "text/json")
#: Characters of a refusal that is plain text or JSON.
_SHORT_PLAIN: Final = 4096


class Ban(NamedTuple):
    """A ban. ``sign`` is the service that banned, or the kind of sign, as the metrics name it."""

    sign: str
    #: False: a suspicion.
    certain: bool = True
    #: A browser may pass by running the page's scripts.
    scripted: bool = False


class Received(NamedTuple):
    """An answer. ``headers``: by name in lower case. ``asked`` is the URL of the request, ``url`` the final one."""

    asked: str
    url: str
    status: int
    headers: Mapping[str, str]
    #: None: it was not read.
    body: bytes | str | None
    #: The body is that of a page after its scripts ran.
    rendered: bool = False


def ban_of(answer: Received) -> Ban | None:
    """Return the ban that an answer is, or None."""
    for name, beginnings, service in HEADERS:
        if answer.headers.get(name, "").lower().startswith(beginnings):
            return Ban(service, scripted=True)
    kind = answer.headers.get("content-type", "").lower().strip()
    largest = LARGEST if answer.rendered or answer.status in REFUSALS else _LARGEST_PASSED
    if answer.body is None or len(answer.body) > largest or (kind and not kind.startswith((*_HTML, *_PLAIN))):
        return _suspicion(answer)
    body = answer.body
    page = (body if isinstance(body, str) else body.decode("latin-1")).lower()
    is_html = answer.rendered or kind.startswith(_HTML) or (not kind and page.lstrip().startswith("<"))
    if not is_html:
        return _by_form(answer, page) or _suspicion(answer)
    outline = Outline(page)
    if not outline.is_long:
        # The browser shows JSON and plain text as HTML, and some sites declare them as such.
        found = _by_form(answer, outline.text)
        if found is None and not outline.text.startswith(("{", "[")):
            found = _by_marks(answer, page, outline) or _by_words(answer, page, outline)
        if found is not None:
            return found
        if answer.status == 200 and (empty := _empty(answer, page, outline)):
            return empty
    return _suspicion(answer)


def _suspicion(answer: Received) -> Ban | None:
    return Ban("refused", certain=False) if answer.status in _SUSPECT else None


def _by_marks(answer: Received, page: str, outline: Outline) -> Ban | None:
    refused = answer.status in REFUSALS
    if not refused and (outline.links > _SOME_LINKS or len(outline.text) > _SHORT):
        return None
    where = page if refused else outline.markup
    for sign in SIGNS:
        if (refused or not sign.refused) and _has(sign, where, outline, refused=refused):
            return Ban(sign.service, scripted=sign.scripted)
    return None


def _has(sign: Sign, where: str, outline: Outline, *, refused: bool) -> bool:
    if sign.title:
        is_titled = outline.title.startswith(sign.title)
        if not is_titled or not (refused or outline.title.rstrip(" .…") == sign.title):
            return False
    return outline.text.startswith(sign.text) and all(mark in where for mark in sign.marks)


def _by_form(answer: Received, text: str) -> Ban | None:
    """Find the refusal of a service in plain text or JSON: the whole answer has its form."""
    text = text.strip()
    if answer.status not in REFUSALS or len(text) > _SHORT_PLAIN:
        return None
    if text in PLAIN_ERRORS:
        return Ban("cloudflare")
    if not text.startswith("{"):
        return None
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for service, form in JSON_REFUSALS:
        if all(str(members.get(name, "-")).startswith(value) and name in members for name, value in form.items()):
            return Ban(service, scripted=service == "datadome")
    return None


def _by_words(answer: Received, page: str, outline: Outline) -> Ban | None:
    """Find the page of a CAPTCHA, or of a block, of no known service. A page with a form to fill in is none."""
    if outline.passwords or (outline.inputs > 1) or outline.links > _LINKS:
        return None
    seen = f"{outline.title} {outline.text}"
    refused = answer.status in REFUSALS
    # A field is to be filled in with the solution, or it is that of a form.
    widgets = TYPED_WIDGETS if outline.inputs else WIDGETS
    where = page if refused else outline.markup
    widget = any(mark in where for mark in widgets)
    blamed = any(words in seen for words in BLAME)
    asked = blamed or any(words in seen for words in REQUESTS)
    if refused:
        return Ban("captcha") if widget and asked else Ban("words") if blamed and not outline.inputs else None
    if len(outline.text) > _SHORT:
        return None
    redirected = _is_redirected(answer)
    if redirected and widget and outline.links <= _SOME_LINKS:
        return Ban("captcha")
    if outline.links > _FEW_LINKS or outline.inputs:
        return None
    if widget and asked:
        return Ban("captcha")
    is_alone = len(outline.text) <= _SHORTEST and any(words in seen for words in PLAIN_WORDS)
    if is_alone or (redirected and asked):
        return Ban("words")
    return Ban("captcha", certain=False) if _is_bare(answer, outline, where) else None


def _is_bare(answer: Received, outline: Outline, where: str) -> bool:
    """Return whether a page has hardly more than a CAPTCHA: the words around one are known in English only."""
    if answer.status != 200 or not 1 <= len(outline.text) <= _SHORTEST or _path_parts(answer.asked) & REDIRECTED_TO:
        return False
    return any(mark in where for mark in CONTAINERS)


def _is_redirected(answer: Received) -> bool:
    """Return whether the site led away from the page to one for robots."""
    return bool(_path_parts(answer.url) & REDIRECTED_TO) and not _path_parts(answer.asked) & REDIRECTED_TO


def _path_parts(url: str) -> set[str]:
    try:
        return set(urlsplit(url).path.lower().split("/"))
    except ValueError:
        return set()


def _empty(answer: Received, page: str, outline: Outline) -> Ban | None:
    """Suspect a page on which nothing is seen. One that its scripts would fill is an ordinary page of our time."""
    if outline.text or outline.media or outline.inputs:
        return None
    if answer.rendered:
        return Ban("empty", certain=False)
    if not outline.scripts:
        # A page that only leads to another, and one of frames, are what they should be.
        leads_on = "http-equiv" in page or "<frame" in page or outline.title
        return None if leads_on else Ban("empty", certain=False)
    sets_cookie = "document.cookie" in page and ("location.reload" in page or "location.href" in page)
    if sets_cookie and len(page) < _SMALL and "src=" not in page:
        return Ban("cookie", certain=False, scripted=True)
    return None
