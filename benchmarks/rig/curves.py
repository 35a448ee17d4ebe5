"""Curves over sizes, as SVG: sizes on a logarithmic scale, values from zero on. Readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from rig.picture import COLOURS, WIDTH, framed

_HEIGHT = 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 210, 70, 60
#: Possible distances between lines of the scale: the first with at most six lines is used.
_GAPS = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]


@dataclass(frozen=True)
class Line:
    """A line: its name, and its points of size and value."""

    name: str
    points: Sequence[tuple[float, float]]


def draw(path: Path, title: str, unit: str, lines: Sequence[Line]) -> str:
    """Write the picture; return in words what it shows."""
    sizes = [size for line in lines for size, _ in line.points]
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    largest = max(value for line in lines for _, value in line.points)
    gap = next(gap for gap in _GAPS if largest / gap <= 6)
    top = gap * math.ceil(largest / gap)

    def x(size: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (math.log10(size) - low) / max(high - low, 1e-9)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top

    body = []
    for step in range(top // gap + 1):
        place = y(step * gap)
        body.append(f'<path class="scale" d="M{_LEFT} {place:.1f}H{WIDTH - _RIGHT}"/>')
        body.append(f'<text x="{_LEFT - 10}" y="{place + 4:.1f}" text-anchor="end">{step * gap:,}</text>')
    body += [
        f'<text x="{x(size):.1f}" y="{_HEIGHT - _BOTTOM + 22}" text-anchor="middle">{_short(size)}</text>'
        for size in sorted(set(sizes))
    ]
    names = _apart([y(line.points[-1][1]) for line in lines])
    for line, colour, place in zip(lines, COLOURS, names, strict=False):
        way = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in line.points)
        body.append(f'<polyline class="curve" stroke="{colour}" points="{way}"/>')
        body += [
            f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="3.2" fill="{colour}"/>' for size, value in line.points
        ]
        body.append(
            f'<text x="{WIDTH - _RIGHT + 12}" y="{place + 4:.1f}" style="fill:{colour}">{escape(line.name)}</text>'
        )
    body.append(f'<text x="{_LEFT}" y="{_HEIGHT - 14}">sizes, on a logarithmic scale</text>')
    points_text = "; ".join(
        f"{line.name}: " + ", ".join(f"{value:g} at {_short(size)}" for size, value in line.points) for line in lines
    )
    description = f"{unit[0].upper()}{unit[1:]}. {points_text}."
    path.write_text(framed(title, unit, description, body, _HEIGHT), "utf-8")
    return description


def _short(size: float) -> str:
    """Format as 10⁵ and 3·10⁵, other numbers in digits."""
    power = math.floor(math.log10(size) + 1e-9)
    digit = size / 10**power
    if abs(digit - round(digit)) > 0.01:
        return f"{size:,.0f}"
    raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if round(digit) == 1 else f"{round(digit)}·10{raised}"


def _apart(places: list[float]) -> list[float]:
    """Return the positions of names, moved down to avoid overlaps."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, here in pairwise(order):
        moved[here] = max(moved[here], moved[before] + 18)
    return moved
