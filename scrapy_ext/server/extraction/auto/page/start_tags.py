"""Bound of the attributes of a start tag: the time of the parser grows by the square of their number."""

from __future__ import annotations

import re
from typing import Final

#: Maximum attributes of an element; the rest is left out.
MAX_ATTRIBUTES: Final = 1000

_ATTRIBUTE: Final = rb"""[\s/]+[^\s=>/][^\s=>/]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>"'][^\s>]*)?)?"""
_RAW_TEXT: Final = rb"script|style|textarea|title|xmp|iframe|noembed|noframes"
#: A comment, an element whose content is text, or a start tag, and what of its attributes is too many. All are matched,
#: so that no quote in one of them hides the next. Each byte is read once.
_TAG: Final = re.compile(
    rb"(<!--.*?(?:-->|\Z)|<(?:%b)\b.*?(?:</(?:%b)|\Z))|(<[a-z][^\s>/]*(?:%b){0,%d})(?:%b)*"
    % (_RAW_TEXT, _RAW_TEXT, _ATTRIBUTE, MAX_ATTRIBUTES, _ATTRIBUTE),
    re.DOTALL | re.IGNORECASE,
)


def with_bounded_attributes(source: bytes) -> bytes:
    """Return HTML without the attributes of a tag beyond :data:`MAX_ATTRIBUTES`."""
    return _TAG.sub(rb"\1\2", source)
