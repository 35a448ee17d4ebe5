"""A site, and an extraction service that gives the same pages, in one process that costs as little as can be.

``python -m rig.extraction BYTES [FOLDER]`` says its port and ends with its standard input; with a folder it speaks TLS
(:mod:`rig.certificates`). ``GET /page/…`` answers a page of so many bytes, ``POST /v1/extract`` the same page as
``httpResponseBody`` with ``httpResponseHeaders``, or as ``browserHtml``. All but the URL of an answer is made at the
start, and nothing is checked.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rig.http1 import Answer, head, serve
from rig.pages import as_json, page
from rig.processes import python

_PAGES: Final = 8
_CONTENT_TYPE: Final = "text/html; charset=utf-8"
#: Headers of the site besides Content-Type and Content-Length.
_HEADERS: Final = {
    "Date": "Sat, 31 Jan 2026 12:00:00 GMT",
    "Server": "nginx",
    "Cache-Control": "max-age=300, public",
    "ETag": '"5f2c-61a7b"',
    "Last-Modified": "Fri, 30 Jan 2026 08:00:00 GMT",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Strict-Transport-Security": "max-age=31536000",
}


@dataclass(frozen=True)
class Extraction:
    """URLs of the two services. The host is a name, since the service accepts no IP addresses."""

    site: str
    service: str


@contextmanager
def extraction(size: int, folder: str = "") -> Generator[Extraction]:
    """Run both for pages of ``size`` bytes; with TLS if there is a folder with a certificate."""
    with python("-m", "rig.extraction", str(size), folder) as running:
        scheme = "https" if folder else "http"
        yield Extraction(f"{scheme}://localhost:{running.said}", f"{scheme}://127.0.0.1:{running.said}/v1")


class _Pages:
    def __init__(self, size: int) -> None:
        pages = [page(size, seed) for seed in range(_PAGES)]
        listed = [{"name": name, "value": value} for name, value in {"Content-Type": _CONTENT_TYPE, **_HEADERS}.items()]
        headers = json.dumps(listed).encode()
        self._direct = [head("200 OK", _CONTENT_TYPE, len(made), _HEADERS) + made for made in pages]
        self._body = [
            b'"httpResponseBody":"%s","httpResponseHeaders":%s}' % (base64.b64encode(made), headers) for made in pages
        ]
        self._browser = [b'"browserHtml":%s}' % as_json(made.decode()) for made in pages]
        self._next = 0

    def answer(self, path: str, body: bytes) -> tuple[float, list[bytes]]:
        self._next = (self._next + 1) % _PAGES
        if not body:
            return 0, [self._direct[self._next]]
        asked = json.loads(body)
        rest = (self._browser if asked.get("browserHtml") else self._body)[self._next]
        begin = b'{"url":%s,"statusCode":200,' % as_json(asked["url"])
        return 0, [head("200 OK", "application/json", len(begin) + len(rest)), begin, rest]


if __name__ == "__main__":
    answer: Answer = _Pages(int(sys.argv[1])).answer
    asyncio.run(serve(answer, folder=sys.argv[2] if len(sys.argv) > 2 else ""))
