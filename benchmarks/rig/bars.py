"""Bars in groups, as SVG: one group for each circumstance, in it one bar for each contender."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from rig.picture import COLOURS, WIDTH, framed

_LEFT, _RIGHT, _TOP, _BOTTOM = 210, 80, 70, 16
_BAR, _GAP, _HEAD = 18, 5, 26


def draw(path: Path, title: str, unit: str, groups: Mapping[str, Mapping[str, float]], form: str = ",.0f") -> str:
    """Write the picture; return in words what it shows. ``form`` is the format of the values."""
    largest = max(value for bars in groups.values() for value in bars.values())
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    body, y = [], _TOP
    for group, bars in groups.items():
        body.append(f'<text class="group" x="20" y="{y + 13}">{escape(group)}</text>')
        y += _HEAD
        for name, value in bars.items():
            length, colour = (WIDTH - _LEFT - _RIGHT) * value / largest, COLOURS[names.index(name) % len(COLOURS)]
            body.append(f'<text x="{_LEFT - 10}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
            body.append(f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" rx="2" fill="{colour}"/>')
            body.append(f'<text x="{_LEFT + length + 8:.1f}" y="{y + 13}">{value:{form}}</text>')
            y += _BAR + _GAP
        y += 2 * _GAP
    shown = "; ".join(
        f"{group}: " + ", ".join(f"{name} {value:{form}}" for name, value in bars.items())
        for group, bars in groups.items()
    )
    description = f"{unit[0].upper()}{unit[1:]}. {shown}."
    path.write_text(framed(title, unit, description, body, y + _BOTTOM), "utf-8")
    return description
