"""The text of a page, in the encoding that its headers, byte order mark or markup name.

Python knows more by the name of encoding than the web does: ``base64`` is none of a text, and ``punycode`` takes hours
for a long page. A name that stands for none of the web's encodings is passed over, as browsers do.
"""

from __future__ import annotations

from typing import Final

from w3lib.encoding import (
    html_body_declared_encoding,
    html_to_unicode,
    http_content_type_encoding,
    read_bom,
    resolve_encoding,
)
from webencodings.labels import LABELS

#: Encodings that the web has no label for, and that pages name all the same.
_OLD: Final = (
    *("euc_jis_2004", "euc_jisx0213", "iso2022_jp_1", "iso2022_jp_2", "shift_jis_2004", "shift_jisx0213", "johab"),
    *("koi8-t", "kz1048", "ptcp154", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-turkish"),
    *(f"cp{page}" for page in (437, 720, 737, 775, 850, 852, 855, 857, 858, 862, 864, 869, 950, 1125)),
    *("utf-32", "utf-32-le", "utf-32-be"),
)
#: Codecs of the web's encodings (encoding.spec.whatwg.org), as w3lib reads their labels, and of the old ones.
_CODECS: Final = frozenset(map(resolve_encoding, (*LABELS, *_OLD))) - {None}
_UTF_8: Final = "text/html; charset=utf-8"


def text_of(content_type: str | None, body: bytes) -> str:
    """A page as text; what does not decode is replaced."""
    if http_content_type_encoding(content_type) not in _CODECS:
        content_type = None
    if content_type is None and read_bom(body)[0] is None:
        declared = html_body_declared_encoding(body)
        if declared is not None and declared not in _CODECS:
            content_type = _UTF_8
    return html_to_unicode(content_type, body)[1]
