"""The benchmarks' own modules, as their scripts import them."""

from __future__ import annotations

import sys
from pathlib import Path

_FOLDER = str(Path(__file__).parents[3] / "benchmarks")

if _FOLDER not in sys.path:
    sys.path.insert(0, _FOLDER)
