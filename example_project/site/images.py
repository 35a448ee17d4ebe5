"""Pictures drawn by code: SVG for the shop's products, PNG for the newspaper."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

from scrapy_ext.compatibility.toml import tomllib

_DATA = tomllib.loads((Path(__file__).parent / "data" / "drawings.toml").read_text("utf-8"))
_BACKGROUNDS = ("#f3efe8", "#eef1ee", "#f0eef3", "#f6efe9", "#ebf0f3")


def product_svg(shape: str, colour: str, number: int, view: int) -> bytes:
    """Draw the product, differently for each product and view."""
    rng = random.Random(f"{number}/{view}")
    drawing = _DATA["shapes"][shape].format(
        c=_DATA["colours"][colour],
        d="#3a3733",
        n=rng.randrange(84, 97),
        m=rng.randrange(28, 46),
        t=rng.randrange(128, 142),
        r=rng.randrange(30, 44),
    )
    turn, scale = (view - 1) * 9 - 4 + rng.randrange(-3, 4), 1 - 0.08 * (view - 1)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 200" width="480" height="480">'
        f'<rect width="200" height="200" fill="{_BACKGROUNDS[(number + view) % len(_BACKGROUNDS)]}"/>'
        f'<ellipse cx="100" cy="172" rx="{60 + number % 17}" ry="7" fill="#000" opacity=".08"/>'
        f'<g transform="rotate({turn} 100 100) translate({100 * (1 - scale):.2f} {100 * (1 - scale):.2f}) '
        f'scale({scale:.2f})">{drawing}</g></svg>'
    ).encode()


def landscape_png(number: int, width: int = 320, height: int = 180) -> bytes:
    """Draw a landscape of hills under a sky, as a true-colour PNG."""
    rng = random.Random(f"landscape {number}")
    sky = (150 + rng.randrange(80), 170 + rng.randrange(60), 200 + rng.randrange(50))
    hills = [_hill(rng, width, height * part) for part in (0.5, 0.66, 0.82)]
    shades = [bytes((60 + 20 * n + rng.randrange(25), 140 - 22 * n, 70 + rng.randrange(30))) for n in range(3)]
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        backdrop = bytes(min(255, channel + y // 6) for channel in sky)
        for tops in zip(*hills, strict=True):
            # The nearest hill whose top is above this line, else the sky.
            layer = 2 if y > tops[2] else 1 if y > tops[1] else 0 if y > tops[0] else None
            rows += backdrop if layer is None else shades[layer]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _hill(rng: random.Random, width: int, base: float) -> list[int]:
    """Return the top of a hill, from the upper edge, for every column."""
    peaks = [(rng.randrange(width), rng.randrange(30, 90), rng.randrange(10, 46)) for _ in range(3)]
    return [
        int(base - sum(rise * max(0.0, 1 - abs(x - at) / reach) for at, reach, rise in peaks)) for x in range(width)
    ]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
