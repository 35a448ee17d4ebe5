"""The text of a page, in the encoding that its headers, byte order mark or markup name.

Python knows more by the name of encoding than the web does: ``base64`` is none of a text, and ``punycode`` takes hours
for a long page. A name that stands for none of the web's encodings is passed over, as browsers do.
"""

from __future__ import annotations

from typing import Final

from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding, read_bom

#: Codecs of the encodings that the web has (encoding.spec.whatwg.org), and of those that its names stand for in Python.
_CODECS: Final = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "ascii"),
        *(
            "cp866",
            "koi8-r",
            "koi8-u",
            "mac-roman",
            "mac-cyrillic",
            "mac-turkish",
            "mac-greek",
            "mac-latin2",
            "ptcp154",
        ),
        *("gbk", "gb2312", "gb18030", "hz", "big5", "big5hkscs", "cp950", "euc_jp", "euc_jis_2004", "euc_jisx0213"),
        *("iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_kr", "shift_jis", "shift_jis_2004", "shift_jisx0213"),
        *("cp932", "euc_kr", "johab", "cp949", "tis-620", "cp874", "kz1048", "koi8-t"),
        *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
        *(f"cp{page}" for page in (437, 720, 737, 775, 850, 852, 855, 857, 858, 862, 864, 869, 1125)),
        *(f"cp{page}" for page in range(1250, 1259)),
    }
)
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
