"""Imports of automatic extraction."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_is_cheap_and_preload_imports_the_rest() -> None:
    heavy = "('lxml', 'trafilatura', 'stdnum', 'resiliparse')"
    script = f"""
import sys
from scrapy_ext.server.extraction import auto
assert not any(name in sys.modules for name in {heavy}), sys.modules.keys()
auto.preload()
assert all(name in sys.modules for name in {heavy})
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
