"""Histograms side by side, as SVG: the share of each class, with one scale of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from rig.picture import COLOURS, WIDTH, framed

_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM, _SPACE = 330, 20, 20, 100, 50, 24


def draw(path: Path, title: str, unit: str, edges: Sequence[str], counts: Mapping[str, Sequence[int]]) -> str:
    """Write the picture; return in words what it shows. ``edges``: the lower end of each class; those that are empty
    text are not written. ``counts``: by name, as many of each class."""
    shares = {name: [count / max(sum(found), 1) for count in found] for name, found in counts.items()}
    largest = max(max(found) for found in shares.values())
    wide = (WIDTH - _LEFT - _RIGHT - _SPACE * (len(shares) - 1)) / len(shares)
    body = []
    for number, (name, found) in enumerate(shares.items()):
        left = _LEFT + number * (wide + _SPACE)
        body.append(f'<text class="group" x="{left:.1f}" y="80">{escape(name)}</text>')
        body.append(f'<path class="scale" d="M{left:.1f} {_HEIGHT - _BOTTOM}H{left + wide:.1f}"/>')
        body += _bars(left, wide / len(found), [share / largest for share in found], edges, COLOURS[number % 2])
    shown = "; ".join(
        f"{name}: " + ", ".join(f"{share:.1%} from {place}" for place, share in _classes(found) if share)
        for name, found in shares.items()
    )
    description = f"{unit[0].upper()}{unit[1:]}. {shown}."
    path.write_text(framed(title, unit, description, body, _HEIGHT), "utf-8")
    return description


def _classes(shares: Sequence[float]) -> list[tuple[str, float]]:
    return [(f"{number / 4:g}", share) for number, share in enumerate(shares)]


def _bars(left: float, step: float, heights: Sequence[float], edges: Sequence[str], colour: str) -> list[str]:
    body, base = [], _HEIGHT - _BOTTOM
    for number, (edge, height) in enumerate(zip(edges, heights, strict=True)):
        tall, place = (base - _TOP) * height, left + number * step
        body.append(
            f'<rect x="{place:.1f}" y="{base - tall:.1f}" width="{step - 1:.1f}" height="{tall:.1f}" fill="{colour}"/>'
        )
        if edge:
            body.append(f'<text x="{place:.1f}" y="{base + 20}" text-anchor="middle">{edge}</text>')
    return body
