"""Requests for the frontier of a crawl, from programs that know nothing of Scrapy's objects.

A line is a URL, or a JSON object with the attributes of a request under the names of Scrapy (:data:`MEMBERS`). It
becomes the form in which crawls store requests (:mod:`scrapy_ext.crawl.frontier.serialize`), with the fingerprint that
Scrapy computes by default, and the slot of :mod:`~scrapy_ext.api.platform.frontier`. So a request that was pushed
and the same request of the crawl are one.

A request with ``dont_filter`` has a fingerprint of its own, as in a crawl. It is made of Scrapy's, the ID of the
push and the number of the line, so that a push that is repeated after a failure adds nothing twice.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scrapy_ext.api.json_decoder import decoder
from scrapy_ext.api.masking import without_user
from scrapy_ext.api.platform.frontier import MAX_REQUEST_BYTES, META_KEY, FrontierRequest, slot_of_url
from scrapy_ext.api.violations import ContractError, Violation

#: Version of the stored form.
FORM_VERSION: Final = 1
#: Classes of requests that a stored form can name.
REQUEST_CLASSES: Final = ("Request", "FormRequest", "JsonRequest", "XmlRpcRequest")
#: Lines of one push over HTTP, and its bytes. All of them are checked before the first is stored.
MAX_LINES: Final = 10_000
MAX_BYTES: Final = 16 * 1024 * 1024
#: Maximum violations that are collected of one push.
MAX_VIOLATIONS: Final = 100
#: Pattern of the ID of a push.
PUSH_PATTERN: Final = r"(?!\.{1,2}$)[A-Za-z0-9_.\-]{1,64}"

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1
#: Codecs of names of hosts. They take a time that grows with the square of a text, hours for a URL of a mebibyte.
_OF_HOSTS: Final = ("idna", "punycode")
_METHOD: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}")
_NAME: Final = re.compile(r"[^\W\d]\w{0,199}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_FP: Final = re.compile(r"(?:[0-9a-f]{2}){1,64}")
_NOT_IN_HEADERS: Final = re.compile(r"[\r\n\0]")
_decode: Final = decoder(Any)
_encode: Final = msgspec.json.Encoder().encode


class Feed(msgspec.Struct, omit_defaults=True):
    """A frontier as whoever pushes into it sees it (``GET .../feed``).

    ``slots``: number of slots, which a crawl or the first push has set.
    ``open``: whether a job's own frontier accepts requests; one that a user has named always does.
    ``own_fingerprints``: the crawl does not use Scrapy's default fingerprints, so each request needs its ``fp``.
    ``spread``: the slot of a request follows from its host and its fingerprint, not from its host alone.
    ``stamps``: a number by slot that changes with each write of requests.
    """

    slots: int | None = None
    open: bool = True
    own_fingerprints: bool = False
    spread: bool = False
    stamps: dict[str, int] = {}


class FedCount(msgspec.Struct):
    """Requests of a push that were queued, and those whose fingerprint the frontier had."""

    new: int
    known: int


class Fed(NamedTuple):
    """A valid request. ``form``: its stored form. ``fp``: the fingerprint that its line names, else Scrapy's."""

    form: dict[str, Any]
    fp: str
    names_fp: bool = False

    @property
    def needs_fp(self) -> bool:
        """Return true if only the crawl's fingerprinter knows the fingerprint: the request is for other content than
        the plain page."""
        return not self.names_fp and isinstance(self.form.get("meta", {}).get("extract_api"), dict)

    @property
    def chosen_slot(self) -> int | str | None:
        """Meta ``frontier_slot``."""
        chosen: int | str | None = self.form.get("meta", {}).get(META_KEY)
        return chosen

    def record(self, push: str, index: int) -> FrontierRequest:
        """Return the request to enqueue; ``index``: the number of its line in the push."""
        fp = self.fp
        if self.form.get("dont_filter"):
            fp = hashlib.sha1(f"{fp} {push} {index}".encode(), usedforsecurity=False).hexdigest()
        priority = -self.form.get("priority", 0)
        return FrontierRequest(fp, self.form, p=min(max(priority, _LOWEST), _HIGHEST))


def parsed(line: bytes | str, place: str) -> Fed:
    """Return the request of a line: a URL, as it is or as a JSON string, or a JSON object; raises
    :class:`ContractError`."""
    text = line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape")
    text = text.strip()
    if len(text) > MAX_REQUEST_BYTES:
        raise ContractError([_too_large(place, len(text))])
    value: object
    try:
        value = _decode(text) if text[:1] in (b"{", b'"', b"[") else text.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ContractError([Violation(place, f"is not a URL or a JSON object: {reason}", _EXAMPLE)]) from None
    if isinstance(value, str):
        value = {"url": value}
    if not isinstance(value, dict):
        raise ContractError([Violation(place, "must be a URL or a JSON object", _EXAMPLE)])
    return fed(value, place)


def fed(members: Mapping[str, Any], place: str) -> Fed:
    """Return the request of a JSON object; raises :class:`ContractError`."""
    faults = list(_faults(members, place))
    if faults:
        raise ContractError(faults)
    form: dict[str, Any] = {"v": FORM_VERSION}
    for name, member in MEMBERS.items():
        value = members.get(name)
        if value is not None and (made := member.make(value)) not in _LEFT_OUT.get(name, (None,)):
            form[name] = made
    try:
        form["url"] = _safe_url(form)
        own: str | None = members.get("fp")
        fp = own or fingerprint(form)
        slot_of_url(form["url"], None, 1)  # raises an error for a host that is none
    except (ValueError, LookupError) as error:  # LookupError: an encoding that is not one of text
        raise ContractError([Violation(f"{place}.url", f"cannot be requested: {error}"[:300], _EXAMPLE)]) from None
    if (size := len(_encode(form))) > MAX_REQUEST_BYTES:
        raise ContractError([_too_large(place, size)])
    return Fed(form, fp, names_fp=own is not None)


def fingerprint(form: Mapping[str, Any]) -> str:
    """Return the fingerprint of a stored form in hexadecimal digits, as Scrapy computes it by default.

    It depends on the method, the URL in its canonical form, and the body; neither on headers nor on cookies.
    """
    from w3lib.url import canonicalize_url  # with the first push

    meta: Mapping[str, Any] = form.get("meta", {})
    url = form["url"] if meta.get("verbatim_url") else canonicalize_url(form["url"])
    data = {
        "method": form.get("method", "GET"),
        "url": url,
        "body": body_of(form.get("body", "")).hex(),
        "headers": {},
    }
    return hashlib.sha1(json.dumps(data, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def body_of(stored: str | Mapping[str, str]) -> bytes:
    """Return the body of a stored form: text, or bytes in Base64."""
    return stored.encode() if isinstance(stored, str) else base64.b64decode(stored["value"], validate=True)


_EXAMPLE: Final = 'Write https://example.com/ or {"url": "https://example.com/", "callback": "parse"}.'


def _too_large(place: str, size: int) -> Violation:
    return Violation(
        place, f"must be at most {MAX_REQUEST_BYTES} bytes of JSON, got {size}", "Send a smaller body or meta.", 413
    )


def _safe_url(form: Mapping[str, Any]) -> str:
    """Return the URL of a form as Scrapy's requests have it; raises ``ValueError``."""
    from w3lib.url import safe_url_string  # with the first push

    meta: Mapping[str, Any] = form.get("meta", {})
    url: str = form["url"]
    if not meta.get("verbatim_url"):
        url = safe_url_string(url, form.get("encoding", "utf-8"))
    if "://" not in url and not url.startswith(("about:", "data:")):
        raise ValueError(f"it has no scheme such as https:// ({without_user(url)[:80]!r})")
    return url


# ── members of a line ──


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_body(value: object) -> bool:
    if not isinstance(value, dict):
        return isinstance(value, str)
    try:
        return value.keys() == {"$type", "value"} and value["$type"] == "bytes" and body_of(value) is not None
    except (TypeError, ValueError, binascii.Error):
        return False


def _is_headers(value: object) -> bool:
    return isinstance(value, dict) and all(
        _HEADER.fullmatch(name) and all(map(_is_header_value, each if isinstance(each, list) else [each]))
        for name, each in value.items()
    )


def _is_header_value(value: object) -> bool:
    return isinstance(value, str) and not _NOT_IN_HEADERS.search(value) and all(ord(char) < 256 for char in value)


def _is_cookies(value: object) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _is_meta(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    slot = value.get(META_KEY)
    return slot is None or (isinstance(slot, int | str) and not isinstance(slot, bool))


def _is_priority(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**53) <= value <= 2**53


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_encoding(value: object) -> bool:
    try:
        return isinstance(value, str) and codecs.lookup(value).name not in _OF_HOSTS and "".encode(value) == b""
    except (LookupError, ValueError):
        return False


class Member(NamedTuple):
    """A member of a line: whether a value is valid, the rule in words, and the value in the stored form."""

    is_valid: Callable[[Any], bool]
    rule: str
    make: Callable[[Any], Any] = lambda value: value


#: Members of a line under the names of Scrapy's attributes, but ``fp`` and ``v``, which are not stored as given.
MEMBERS: Final[Mapping[str, Member]] = {
    "url": Member(lambda value: isinstance(value, str) and value != "", "must be the URL of a page"),
    "class": Member(lambda value: value in REQUEST_CLASSES, f"must be one of {', '.join(REQUEST_CLASSES)}"),
    "method": Member(_matches(_METHOD), "must be a method of HTTP", str.upper),
    "encoding": Member(_is_encoding, "must be an encoding of text"),
    "priority": Member(_is_priority, "must be a whole number"),
    "dont_filter": Member(lambda value: isinstance(value, bool), "must be true or false"),
    "callback": Member(_matches(_NAME), "must be the name of a method of the spider"),
    "errback": Member(_matches(_NAME), "must be the name of a method of the spider"),
    "body": Member(_is_body, 'must be text, or {"$type": "bytes", "value": "…"} with Base64'),
    "headers": Member(
        _is_headers,
        "must be an object of names with text, or arrays of text, in Latin-1 without line breaks",
        lambda value: {name: each if isinstance(each, list) else [each] for name, each in value.items()},
    ),
    "cookies": Member(_is_cookies, "must be an object, or an array of objects"),
    "flags": Member(lambda value: isinstance(value, list) and all(map(_is_text, value)), "must be an array of text"),
    "meta": Member(_is_meta, f"must be an object, {META_KEY} in it a number or text"),
    "cb_kwargs": Member(lambda value: isinstance(value, dict), "must be an object"),
}
#: Values that the stored form leaves out.
_LEFT_OUT: Final[Mapping[str, tuple[Any, ...]]] = {
    "class": ("Request",),
    "method": ("GET",),
    "encoding": ("utf-8",),
    "priority": (0,),
    "dont_filter": (False,),
    "body": ("",),
    "headers": ({},),
    "cookies": ({}, []),
    "flags": ([],),
    "meta": ({},),
    "cb_kwargs": ({},),
}


def _faults(members: Mapping[str, Any], place: str) -> Iterator[Violation]:
    for name in members:
        if name not in MEMBERS and name not in ("fp", "v"):
            yield Violation(place, f"has an unknown member {name[:60]!r}", f"Known are {', '.join(MEMBERS)} and fp.")
    if members.get("url") is None:
        yield Violation(f"{place}.url", "is missing", _EXAMPLE)
    if members.get("v") not in (None, FORM_VERSION):
        yield Violation(f"{place}.v", f"must be {FORM_VERSION}, the version of this form", "Leave it out.")
    if (own := members.get("fp")) is not None and not (isinstance(own, str) and _FP.fullmatch(own)):
        yield Violation(
            f"{place}.fp", "must be a fingerprint in lower-case hexadecimal digits", "Leave it out for Scrapy's own."
        )
    for name, member in MEMBERS.items():
        value = members.get(name)
        if value is not None and not member.is_valid(value):
            yield Violation(f"{place}.{name}", member.rule, "Write such a value, or leave it out.")
