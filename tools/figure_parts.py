"""Parts of the documentation with figures of the benchmarks: ``benchmarks/figures``, filled in from their results."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

# The benchmarks are programs, not a package.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from rig.figures import CHARTS, TEMPLATES, Figures, unusable

__all__ = ["CHARTS", "draw", "lines"]


def lines(name: str) -> Iterable[str]:
    """Return the lines of the part of this name."""
    return Figures(why=unusable).render((TEMPLATES / f"{name}.rst").read_text("utf-8")).splitlines()


def draw(folder: Path) -> None:
    """Write the pictures of all parts."""
    figures = Figures(pictures=folder, why=unusable)
    for template in sorted(TEMPLATES.glob("*.rst")):
        figures.render(template.read_text("utf-8"))
