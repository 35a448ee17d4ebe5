"""The chart of a run: a panel for each kind of number, a line for each life, the harms above. Light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from tests.soak.flatness import Sample
from tests.soak.harms import Harm

_WIDTH, _HEIGHT = 900, 130
_LEFT, _RIGHT, _TOP = 64, 16, 46
_GAP = 34
_COLOURS = 6
#: Seconds of a run whose axis shows seconds instead of minutes.
_SHORT = 300
_STYLE = """
text { font: 12px sans-serif; fill: #333 }
.title { font-weight: bold }
.small { font-size: 10px; fill: #666 }
.grid { stroke: #ddd }
.harm { stroke: #c33; stroke-width: 1; opacity: .45 }
polyline { fill: none; stroke-width: 1.5 }
.l0 { stroke: #1668b8 } .l1 { stroke: #b85c00 } .l2 { stroke: #2a7d3f }
.l3 { stroke: #8a3fa0 } .l4 { stroke: #a3333d } .l5 { stroke: #5a6b00 }
.key { stroke: none; font-size: 10px }
.k0 { fill: #1668b8 } .k1 { fill: #b85c00 } .k2 { fill: #2a7d3f }
.k3 { fill: #8a3fa0 } .k4 { fill: #a3333d } .k5 { fill: #5a6b00 } .kh { fill: #c33 }
.page { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .small { fill: #aaa } .grid { stroke: #444 } .page { fill: #16181c } .harm { stroke: #ff6b6b }
  .l0 { stroke: #6fb1f0 } .l1 { stroke: #ffb066 } .l2 { stroke: #7fd493 }
  .l3 { stroke: #d7a0ea } .l4 { stroke: #ff9aa2 } .l5 { stroke: #cfe06a }
  .k0 { fill: #6fb1f0 } .k1 { fill: #ffb066 } .k2 { fill: #7fd493 }
  .k3 { fill: #d7a0ea } .k4 { fill: #ff9aa2 } .k5 { fill: #cfe06a } .kh { fill: #ff6b6b }
}
"""


def draw(samples: Mapping[str, Sequence[Sample]], harms: Sequence[Harm]) -> str:
    """An SVG of all that has samples."""
    panels = [(name, each) for name, each in samples.items() if len(each) > 1 and max(s.value for s in each) > 0]
    end = max((sample.at for _, each in panels for sample in each), default=1.0)
    height = len(panels) * (_HEIGHT + _GAP) + _TOP + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>Samples of the soak over {end:.0f} seconds, with {len(harms)} harms</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="key kh" x="{_LEFT}" y="16">Red: a harm; the table of the report names it by its second.</text>',
    ]
    for number, (name, each) in enumerate(panels):
        parts += _panel(name, each, harms, end, _TOP + number * (_HEIGHT + _GAP))
    return "\n".join([*parts, "</svg>\n"])


def _panel(name: str, samples: Sequence[Sample], harms: Sequence[Harm], end: float, top: float) -> Iterator[str]:
    most = _above(max(sample.value for sample in samples))
    yield f'<text class="title" x="{_LEFT}" y="{top - 6:g}">{escape(name)}</text>'
    for part in (0, 0.5, 1):
        y = top + _HEIGHT * (1 - part)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        yield f'<text class="small" x="{_LEFT - 6}" y="{y + 3:g}" text-anchor="end">{most * part:g}</text>'
    for at in _times(end):
        label = f"{at:g} s" if end < _SHORT else f"{at / 60:g} min"
        place = f'x="{_x(at, end):.1f}" y="{top + _HEIGHT + 13:g}" text-anchor="middle"'
        yield f'<text class="small" {place}>{label}</text>'
    for harm in harms:
        x = _x(harm.began, end)
        yield (
            f'<line class="harm" x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{top + 8:g}">'
            f"<title>{escape(harm.description)}</title></line>"
        )
    ordered = sorted(samples, key=lambda each: (each.life, each.at))
    roles: list[str] = []
    for life, group in groupby(ordered, key=lambda each: each.life):
        role = life.rpartition("-")[0] or life
        roles += [role] * (role not in roles)
        points = " ".join(f"{_x(s.at, end):.1f},{top + _HEIGHT * (1 - s.value / most):.1f}" for s in group)
        colour = roles.index(role) % _COLOURS
        yield f'<polyline class="l{colour}" points="{points}"><title>{escape(life)}</title></polyline>'
    names = "".join(f'<tspan class="k{n % _COLOURS}" dx="10">{escape(role)}</tspan>' for n, role in enumerate(roles))
    yield f'<text class="key" x="{_WIDTH - _RIGHT}" y="{top - 6:g}" text-anchor="end">{names}</text>'


def _x(at: float, end: float) -> float:
    return _LEFT + at / end * (_WIDTH - _LEFT - _RIGHT)


def _above(value: float) -> float:
    """A round number that is not below."""
    unit = 10.0 ** math.floor(math.log10(max(value, 1)))
    return next(unit * factor for factor in (1, 2, 4, 5, 8, 10, 20) if unit * factor >= value)


def _times(end: float) -> list[float]:
    """The marked seconds of the axis."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
    step = next((step for step in steps if end / step <= 10), 14400)
    return [step * place for place in range(int(end / step) + 1)]
