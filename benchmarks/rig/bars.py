"""Bars in groups, as SVG: one group for each circumstance, in it one bar for each contender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from rig.picture import WIDTH, framed

_LEFT, _RIGHT, _TOP, _BOTTOM = 210, 80, 70, 16
_BAR, _GAP, _HEAD = 18, 5, 26


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its value, and its colour (CSS)."""

    name: str
    value: float
    colour: str


def draw(path: Path, title: str, unit: str, groups: Mapping[str, Sequence[Bar]], form: str = ",.0f") -> str:
    """Write the picture; return in words what it shows. ``form`` is the format of the values."""
    largest = max(bar.value for bars in groups.values() for bar in bars)
    body, y = [], _TOP
    for group, bars in groups.items():
        body.append(f'<text class="group" x="20" y="{y + 13}">{escape(group)}</text>')
        y += _HEAD
        for bar in bars:
            length = (WIDTH - _LEFT - _RIGHT) * bar.value / largest
            body.append(f'<text x="{_LEFT - 10}" y="{y + 13}" text-anchor="end">{escape(bar.name)}</text>')
            body.append(f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" rx="2" fill="{bar.colour}"/>')
            body.append(f'<text x="{_LEFT + length + 8:.1f}" y="{y + 13}">{bar.value:{form}}</text>')
            y += _BAR + _GAP
        y += 2 * _GAP
    shown = "; ".join(
        f"{group}: " + ", ".join(f"{bar.name} {bar.value:{form}}" for bar in bars) for group, bars in groups.items()
    )
    description = f"{unit[0].upper()}{unit[1:]}. {shown}."
    path.write_text(framed(title, unit, description, body, y + _BOTTOM), "utf-8")
    return description
