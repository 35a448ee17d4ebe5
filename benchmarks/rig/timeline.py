"""Values over time, as SVG: panels below one another with one scale of time, each value from its time on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from rig.picture import COLOURS, WIDTH, framed

_PANEL, _SPACE = 150, 40
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 90, 40
#: Seconds between two marks of the scale of time.
_MARK = 30

Point = tuple[float, float]


def draw(path: Path, title: str, unit: str, panels: Sequence[tuple[str, Sequence[Point]]]) -> str:
    """Write the picture; return in words what it shows. ``panels``: names, and points of seconds and value."""
    end = max(points[-1][0] for _, points in panels)
    body: list[str] = []
    for number, (name, points) in enumerate(panels):
        top = _TOP + number * (_PANEL + _SPACE)
        body += _panel(name, points, end, top, COLOURS[number])
    height = _TOP + len(panels) * (_PANEL + _SPACE) + _BOTTOM - _SPACE
    for seconds in range(0, math.ceil(end), _MARK):
        place = _x(seconds, end)
        body.append(f'<text x="{place:.1f}" y="{height - 20}" text-anchor="middle">{seconds} s</text>')
    description = f"{unit[0].upper()}{unit[1:]}. " + "; ".join(_in_words(name, points) for name, points in panels) + "."
    path.write_text(framed(title, unit, description, body, height), "utf-8")
    return description


def _x(seconds: float, end: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * seconds / end


def _panel(name: str, points: Sequence[Point], end: float, top: int, colour: str) -> list[str]:
    largest = max(value for _, value in points) or 1

    def y(value: float) -> float:
        return top + _PANEL * (1 - value / largest)

    body = [f'<text class="group" x="{_LEFT}" y="{top - 12}">{escape(name)}</text>']
    for value in (0, largest):
        body.append(f'<path class="scale" d="M{_LEFT} {y(value):.1f}H{WIDTH - _RIGHT}"/>')
        body.append(f'<text x="{_LEFT - 10}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    way = [(_x(points[0][0], end), y(points[0][1]))]
    for (_, before), (seconds, value) in pairwise(points):
        way += [(_x(seconds, end), y(before)), (_x(seconds, end), y(value))]
    text = " ".join(f"{across:.1f},{down:.1f}" for across, down in way)
    return [*body, f'<polyline class="curve" stroke="{colour}" points="{text}"/>']


def _in_words(name: str, points: Sequence[Point]) -> str:
    """Return the values of a panel: each change of a few, else the first, the largest and the last."""
    changes = [points[0], *(here for before, here in pairwise(points) if here[1] != before[1])]
    if len(changes) > 12:
        changes = sorted({points[0], max(points, key=lambda point: point[1]), points[-1]})
    return f"{name}: " + ", ".join(f"{value:,.0f} at {seconds:.0f} s" for seconds, value in changes)
