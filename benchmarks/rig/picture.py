"""The frame of a picture (SVG): a title, a line that names the unit, and colours. Readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 900
COLOURS: Final = ("#0b6bcb", "#b4540a", "#64748b", "#15803d")

_FRAME: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
     aria-labelledby="t d" font-size="13"
     font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
  <title id="t">{title}</title>
  <desc id="d">{description}</desc>
  <style>
    .paper {{ fill: #ffffff; stroke: #cbd5e1 }} .scale {{ stroke: #e2e8f0 }} text {{ fill: #334155 }}
    .head {{ font-size: 15px; font-weight: 600; fill: #0f172a }} .curve {{ fill: none; stroke-width: 2.2 }}
    .group {{ font-weight: 600 }}
  </style>
  <rect class="paper" x="1" y="1" width="{right}" height="{bottom}" rx="10"/>
  <text class="head" x="20" y="30">{title}</text>
  <text x="20" y="51">{unit}</text>
{body}
</svg>
"""


def framed(title: str, unit: str, description: str, body: Iterable[str], height: int) -> str:
    """Return a picture; ``description`` says in words what it shows."""
    return _FRAME.format(
        width=WIDTH,
        height=height,
        right=WIDTH - 2,
        bottom=height - 2,
        title=escape(title),
        unit=escape(unit),
        description=escape(description),
        body="\n".join(f"  {part}" for part in body),
    )
