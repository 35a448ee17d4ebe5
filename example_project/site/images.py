"""Pictures drawn in code: SVG for the shop's products, PNG for the newspaper."""

from __future__ import annotations

import random
import struct
import zlib

_COLOURS = {
    "slate": "#5b6770", "moss": "#6f7d4a", "ochre": "#c58b2a", "chalk": "#e6e1d6", "rust": "#a8502f",
    "ink": "#2b3350", "sand": "#cdb48a", "plum": "#6b3a55", "pine": "#2f5d50", "copper": "#b87345",
}  # fmt: skip
_BACKGROUNDS = ("#f3efe8", "#eef1ee", "#f0eef3", "#f6efe9", "#ebf0f3")

#: Drawings in a 200 x 200 square; {c} is the product's colour, {d} a dark line, {n} a number that varies.
_SHAPES = {
    "lamp": '<path d="M60 70 L140 70 L{n} 25 L{m} 25 Z" fill="{c}"/><rect x="96" y="70" width="8" height="80" fill="{d}"/><ellipse cx="100" cy="156" rx="34" ry="8" fill="{d}"/>',
    "lantern": '<rect x="68" y="60" width="64" height="90" rx="8" fill="{c}"/><rect x="80" y="74" width="40" height="62" rx="4" fill="#fff3c4"/><circle cx="100" cy="{n}" r="9" fill="#f2b134"/><path d="M76 60 Q100 {m} 124 60" fill="none" stroke="{d}" stroke-width="5"/>',
    "kettle": '<path d="M55 150 Q50 80 100 80 Q150 80 145 150 Z" fill="{c}"/><path d="M145 105 L{t} 85 L172 96 L145 130 Z" fill="{c}"/><path d="M70 82 Q100 {m} 130 82" fill="none" stroke="{d}" stroke-width="8"/><circle cx="100" cy="76" r="6" fill="{d}"/>',
    "pan": '<ellipse cx="85" cy="105" rx="58" ry="{r}" fill="{d}"/><ellipse cx="85" cy="100" rx="58" ry="{r}" fill="{c}"/><rect x="138" y="94" width="52" height="11" rx="5" fill="{d}"/>',
    "jar": '<rect x="62" y="62" width="76" height="100" rx="14" fill="{c}"/><rect x="70" y="44" width="60" height="20" rx="6" fill="#b9895b"/><rect x="78" y="{n}" width="44" height="26" fill="#fff" opacity=".8"/>',
    "planter": '<path d="M58 95 L142 95 L130 165 L70 165 Z" fill="{c}"/><path d="M100 95 C60 {m} 70 40 88 35 C92 60 100 70 100 95 C102 60 120 40 {t} 48 C140 70 120 85 100 95" fill="#5f8a4c"/>',
    "trowel": '<path d="M100 30 Q130 60 118 {n} L82 {n} Q70 60 100 30" fill="#aab2b8"/><rect x="95" y="98" width="10" height="22" fill="{d}"/><rect x="90" y="118" width="20" height="54" rx="9" fill="{c}"/>',
    "tent": '<path d="M20 155 L100 {m} L180 155 Z" fill="{c}"/><path d="M100 {m} L{n} 155 L118 155 Z" fill="{d}"/><path d="M12 155 H188" stroke="#7d9367" stroke-width="6"/>',
    "backpack": '<rect x="58" y="50" width="84" height="115" rx="26" fill="{c}"/><rect x="70" y="108" width="60" height="44" rx="10" fill="{d}" opacity=".55"/><path d="M80 52 Q100 {m} 120 52" fill="none" stroke="{d}" stroke-width="7"/><rect x="70" y="{n}" width="60" height="6" fill="{d}"/>',
    "flask": '<rect x="76" y="60" width="48" height="112" rx="12" fill="{c}"/><rect x="82" y="36" width="36" height="26" rx="6" fill="{d}"/><rect x="76" y="{n}" width="48" height="8" fill="#fff" opacity=".5"/>',
    "notebook": '<rect x="60" y="40" width="86" height="122" rx="5" fill="{c}"/><rect x="60" y="40" width="14" height="122" fill="{d}"/><rect x="88" y="{n}" width="44" height="20" fill="#fff" opacity=".75"/>',
    "clock": '<circle cx="100" cy="100" r="62" fill="{c}"/><circle cx="100" cy="100" r="50" fill="#fdfbf6"/><path d="M100 100 L{n} 72 M100 100 L{t} 112" stroke="{d}" stroke-width="5" stroke-linecap="round"/>',
}  # fmt: skip


def product_svg(shape: str, colour: str, number: int, view: int) -> bytes:
    """A drawing of the product; no two products or views look the same."""
    rng = random.Random(f"{number}/{view}")
    drawing = _SHAPES[shape].format(
        c=_COLOURS[colour],
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
    """A landscape of hills under a sky, as a true-colour PNG."""
    rng = random.Random(f"landscape {number}")
    sky = (150 + rng.randrange(80), 170 + rng.randrange(60), 200 + rng.randrange(50))
    hills = [_hill(rng, width, height * part) for part in (0.5, 0.66, 0.82)]
    shades = [bytes((60 + 20 * layer + rng.randrange(25), 140 - 22 * layer, 70 + rng.randrange(30))) for layer in range(3)]
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        backdrop = bytes(min(255, channel + y // 6) for channel in sky)
        for tops in zip(*hills, strict=True):
            # The nearest of the hills whose top is above this line, else the sky.
            layer = 2 if y > tops[2] else 1 if y > tops[1] else 0 if y > tops[0] else None
            rows += backdrop if layer is None else shades[layer]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _hill(rng: random.Random, width: int, base: float) -> list[int]:
    """The height of a hill's top, from the upper edge, for every column."""
    peaks = [(rng.randrange(width), rng.randrange(30, 90), rng.randrange(10, 46)) for _ in range(3)]
    return [int(base - sum(rise * max(0.0, 1 - abs(x - at) / reach) for at, reach, rise in peaks)) for x in range(width)]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
