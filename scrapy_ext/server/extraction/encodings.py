"""Text of a body: its encoding is found by the rules of Chromium, in their order.

1. The byte order mark.
2. ``charset`` of the Content-Type header.
3. The XML declaration, or UTF-16 without a mark before one; then, in HTML, ``meta`` (:func:`meta_declared`). UTF-16
   declared there is UTF-8, and ``x-user-defined`` windows-1252.
4. For XML and JSON: UTF-8.
5. Detection by the bytes themselves, then the usual encoding of the top-level domain, then windows-1252.

There are two differences. A body that is valid UTF-8, or nearly so, without a declaration is UTF-8: Chromium does not
detect that, so that authors declare it, and shows garbage. And encodings that pages declare although the web has no
label for them are used.

Python has codecs that are no encodings of the web: ``base64`` is none of a text, and ``punycode`` takes hours for a
long page. Names of such codecs are ignored, as browsers do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import webencodings
from resiliparse.parse.encoding import detect_encoding
from w3lib.encoding import read_bom, resolve_encoding

from scrapy_ext.server.extraction.vocabulary import load_vocabulary

# ── encoding that a page declares in its markup, found as Chromium finds it ──
#
# The rules are those of the HTML standard with Chromium's choices (``HTMLMetaCharsetParser``): the markup is read as
# tags, so that a ``meta`` inside a comment, a script, a style sheet or a title is none. It is searched for as long as
# the page is in its head, and in the first :data:`UNCONDITIONALLY` bytes. A label that names no encoding is passed
# over.


#: Bytes that are searched behind the head, too.
UNCONDITIONALLY: Final = 1024
#: Most bytes that are searched: far more than the heads of pages.
_MOST: Final = 1024 * 1024
_SPACE: Final = b"\t\n\f\r "
_NAME: Final = re.compile(rb"[^\t\n\f\r />]+")
_ATTRIBUTE: Final = re.compile(rb"[\t\n\f\r /]*(=?[^\t\n\f\r />=]*)[\t\n\f\r ]*")
_UNQUOTED: Final = re.compile(rb"[^\t\n\f\r >]*")
_HEAD: Final = frozenset({b"script", b"noscript", b"style", b"link", b"meta", b"object", b"title", b"base"})
#: Elements whose content is text.
_TEXTS: Final = frozenset({b"script", b"style", b"title", b"textarea", b"iframe", b"xmp", b"noembed", b"noframes"})
_XML: Final = re.compile(rb"""<\?xml.*?\bencoding[\t\n\r ]*=[\t\n\r ]*(["'])([^"'>]*)\1""", re.DOTALL)
_CHARSET_OF_META: Final = re.compile(rb"charset[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)
_VALUE: Final = re.compile(rb"[^\t\n\f\r ;]*")

Tag = tuple[bytes, bool, dict[bytes, bytes], int]


def xml_declared(data: bytes) -> str | None:
    """Return the encoding of an XML declaration at the begin of a page."""
    end = data.find(b">", 0, _MOST) if data.startswith(b"<?xml") else -1
    match = _XML.match(data, 0, end) if end >= 0 else None
    return match[2].decode("latin-1") if match else None


def meta_declared(data: bytes, is_known: Callable[[str], bool]) -> str | None:
    """Return the first label of a ``meta`` that names an encoding."""
    in_head = True
    for name, is_end, attributes, end in _tags(data[:_MOST]):
        if name == b"meta" and not is_end:
            label = _label_of(attributes)
            if label is not None and is_known(label):
                return label
        if name not in _HEAD and (is_end or name not in (b"html", b"head")):
            in_head = False
        if not in_head and end >= UNCONDITIONALLY:
            return None
    return None


def _label_of(attributes: dict[bytes, bytes]) -> str | None:
    value = attributes.get(b"charset")
    if value is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
        value = _charset_in(attributes.get(b"content", b""))
    return value.strip(_SPACE).decode("latin-1") if value is not None else None


def _charset_in(content: bytes) -> bytes | None:
    match = _CHARSET_OF_META.search(content)
    if match is None:
        return None
    quote = content[match.end() : match.end() + 1]
    if quote in (b'"', b"'") and quote:
        end = content.find(quote, match.end() + 1)
        return content[match.end() + 1 : end] if end > 0 else None
    value = _VALUE.match(content, match.end())
    return value[0] if value else None


def _tags(data: bytes) -> Iterator[Tag]:
    """Yield name, whether it is an end tag, attributes and end of each tag; stop at one that does not end."""
    at = data.find(b"<")
    while at >= 0:
        is_end = data.startswith(b"/", at + 1)
        start = at + 1 + is_end
        # The first letter is checked alone: a long text without a space may have a "<" at each of its characters.
        name = _NAME.match(data, start) if data[start : start + 1].isalpha() else None
        if name is None:
            at = _after_other(data, at)
        else:
            tag, (attributes, end) = name[0].lower(), _attributes(data, name.end())
            if end < 0:
                return
            yield tag, is_end, attributes, end
            at = _end_of_text(data, tag, end) if tag in _TEXTS and not is_end else end
        at = data.find(b"<", at) if at >= 0 else -1


def _after_other(data: bytes, at: int) -> int:
    """Return the position after a comment, a declaration, or a ``<`` that begins nothing; -1 where it does not end."""
    if data.startswith(b"<!--", at):
        return data.find(b"-->", at + 2)
    if data[at + 1 : at + 2] in (b"!", b"?", b"/"):
        return data.find(b">", at + 1)
    return at + 1


def _end_of_text(data: bytes, tag: bytes, at: int) -> int:
    match = re.compile(rb"</" + tag + rb"[\t\n\f\r />]", re.IGNORECASE).search(data, at)
    return match.start() if match else -1


def _attributes(data: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of a tag by name, the first of each, and its end; -1 for a tag that does not end."""
    found: dict[bytes, bytes] = {}
    while match := _ATTRIBUTE.match(data, at):
        at = match.end()
        if data.startswith(b">", at) and not match[1]:
            return found, at + 1
        value = b""
        if data.startswith(b"=", at):
            at += 1
            while data[at : at + 1] and data[at : at + 1] in _SPACE:
                at += 1
            value, at = _value(data, at)
        if at < 0 or at >= len(data):
            break
        if match[1]:
            found.setdefault(match[1].lower(), value)
    return found, -1


def _value(data: bytes, at: int) -> tuple[bytes, int]:
    quote = data[at : at + 1]
    if quote in (b'"', b"'") and quote:
        end = data.find(quote, at + 1)
        return (data[at + 1 : end], end + 1) if end >= 0 else (b"", -1)
    match = _UNQUOTED.match(data, at)
    return (match[0], match.end()) if match else (b"", -1)


_VOCABULARY: Final = load_vocabulary("encodings")
#: Encodings that pages declare although the web has no label for them.
_OLD: Final = _VOCABULARY.words("old")
_CHARSET: Final = re.compile(r""";[^;]*?\bcharset\s*=\s*(?:["']\s*)?([^\s"';,]+)""", re.IGNORECASE)
_NOT_HTML: Final = re.compile(r"(?:json\d*|(?<!xhtml\+)xml)\s*(?:;|$)", re.IGNORECASE)
_UTF_16_XML: Final = {b"<\0?\0x\0": "utf-16-le", b"\0<\0?\0x": "utf-16-be"}
_LATIN: Final = "cp1252"
_USER_DEFINED: Final = "x-user-defined"
#: Bytes that are examined without a declaration: from so many before the first one that is not ASCII.
_BEFORE: Final = 100
_EXAMINED: Final = 16 * 1024
#: A text with more valid characters for each byte that is none is UTF-8 with faults.
_FAULTLESS: Final = 10
_ASCII: Final = bytes(range(128))
_HIGH: Final = re.compile(rb"[\x80-\xff]+")
#: Two or more characters of GB 2312 that follow each other, as no text in Latin letters has them.
_GB_2312: Final = re.compile(rb"(?:[\xa1-\xf7][\xa1-\xfe]){2,}")
#: Ukrainian letters beside others: lines of boxes in KOI8-R.
_UKRAINIAN: Final = rb"[\xa4\xa6\xa7\xad\xb4\xb6\xb7\xbd]"
_KOI8_U: Final = re.compile(rb"[\xc0-\xff]" + _UKRAINIAN + rb"|" + _UKRAINIAN + rb"[\xc0-\xff]")
#: Encodings by top-level domain, as Chromium has them; windows-1252 for others.
_BY_DOMAIN: Final = {domain: label for label, domains in _VOCABULARY.groups("domains").items() for domain in domains}


def text_of(content_type: str | None, body: bytes, url: str = "") -> str:
    """Decode a body; undecodable bytes are replaced. ``content_type``: of its header."""
    marked, mark = read_bom(body)
    if marked is not None and mark is not None:
        return body[len(mark) :].decode(marked, "replace")
    codec = _declared(content_type, body) or _detected(body, url)
    if codec == _USER_DEFINED:
        return str(webencodings.decode(body, codec)[0])
    return body.decode(codec, "replace")


@lru_cache(maxsize=1000)
def codec_of(label: str) -> str | None:
    """Return Python's codec of a label; None for one that names no encoding."""
    found = webencodings.lookup(label)
    if found is not None:
        return _python_codec(found)
    return resolve_encoding(label) if resolve_encoding(label) in _old_codecs() else None


def _python_codec(encoding: webencodings.Encoding) -> str:
    # w3lib has the wider sets that browsers decode: windows-31j for Shift_JIS, for example.
    return resolve_encoding(encoding.name) or encoding.codec_info.name


@lru_cache(maxsize=1)
def _old_codecs() -> frozenset[str | None]:
    return frozenset(map(resolve_encoding, _OLD)) - {None}


def _declared(content_type: str | None, body: bytes) -> str | None:
    charset = _CHARSET.search(content_type or "")
    codec = codec_of(charset[1]) if charset else None
    if codec is not None:
        return codec
    is_html = not _NOT_HTML.search(content_type or "")
    if wide := _UTF_16_XML.get(body[:6]):
        return wide
    label = xml_declared(body)
    if label is not None and (codec := codec_of(label)) is not None:
        return _of_markup(codec)
    if is_html:
        label = meta_declared(body, lambda name: codec_of(name) is not None)
        codec = codec_of(label) if label is not None else None
        return _of_markup(codec) if codec else None
    return "utf-8"


def _of_markup(codec: str) -> str:
    """Return the codec for one that markup declares: text that can be read as ASCII is not UTF-16."""
    if codec.replace("_", "-").lower().startswith(("utf-16", "utf-32")):
        return "utf-8"
    return _LATIN if codec == _USER_DEFINED else codec


def _detected(body: bytes, url: str) -> str:
    if body.isascii() or _is_utf_8(body):
        return "utf-8"
    first = _HIGH.search(body)
    begin = max(0, first.start() - _BEFORE) if first else 0
    start = body[begin : begin + _EXAMINED]
    found = str(detect_encoding(start, max_len=_EXAMINED, html5_compatible=False)).lower()
    codec = codec_of(found) or codec_of(found.replace("_", "-")) or resolve_encoding(found)
    if codec in (None, "utf-8", _LATIN) and _is_gb_2312(start):
        return "gb18030"
    if codec in (None, "utf-8"):
        return codec_of(_BY_DOMAIN.get((urlsplit(url).hostname or "").rpartition(".")[2], _LATIN)) or _LATIN
    return "koi8-u" if codec == "koi8-r" and _KOI8_U.search(start) else str(codec)


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        high = len(data.translate(None, _ASCII))
        faults = data.decode("utf-8", "replace").count("\ufffd")
        return high > _FAULTLESS * faults
    return True


def _is_gb_2312(data: bytes) -> bool:
    runs = _HIGH.findall(data)
    return any(len(run) >= 4 for run in runs) and all(_GB_2312.fullmatch(run) for run in runs if len(run) >= 4)
