"""A site whose page is what a browser has to do for one: 50 KB of HTML, two style sheets, a script, ten pictures.

``python -m rig.page_site`` says its port and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import random
import struct
import zlib
from typing import Final

from rig.http1 import head, serve

_HTML: Final = 50_000
_SCRIPT: Final = """for (const card of document.querySelectorAll('article')) {
    const note = document.createElement('p');
    note.textContent = card.textContent.length + ' letters';
    card.append(note);
} document.body.append('end of the page');"""
_STYLE: Final = "".join(
    f".card{n} {{ margin: {n}px; padding: 4px; border: 1px solid #ccc; float: left }}" for n in range(99)
)


def _picture(seed: int, width: int = 160, height: int = 120) -> bytes:
    """Return a PNG of some 20 KB that compresses badly."""
    chance = random.Random(seed)
    rows = b"".join(b"\0" + bytes(chance.getrandbits(2) * 60 for _ in range(3 * width)) for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _page() -> bytes:
    chance = random.Random(0)
    parts = ["<!doctype html><title>A page</title><link rel=stylesheet href=/a.css><link rel=stylesheet href=/b.css>"]
    parts += [f"<img src=/{number}.png alt=''>" for number in range(10)]
    size = sum(map(len, parts))
    while size < _HTML:
        words = " ".join(str(chance.getrandbits(30)) for _ in range(20))
        parts.append(f"<article class='card card{chance.randrange(99)}'><h2>Item</h2><p>{words}</p></article>")
        size += len(parts[-1])
    return "".join((*parts, "<script src=/a.js></script>")).encode()


def main() -> None:
    files = {"/page": ("text/html; charset=utf-8", _page()), "/a.js": ("text/javascript", _SCRIPT.encode())}
    files |= {f"/{name}.css": ("text/css", _STYLE.encode()) for name in "ab"}
    files |= {f"/{number}.png": ("image/png", _picture(number)) for number in range(10)}
    answers = {path: [head("200 OK", kind, len(body)), body] for path, (kind, body) in files.items()}
    missing = [head("404 Not Found", "text/plain", 0)]
    asyncio.run(serve(lambda path, _: (0, answers.get(path.partition("?")[0], missing))))


if __name__ == "__main__":
    main()
