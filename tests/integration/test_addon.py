"""Imports of the add-on."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys
import scrapy_ext.addon
heavy = ("scrapy_ext.client", "scrapy_ext.crawl.extraction", "scrapy_ext.scheduler", "aiohttp")
assert not [name for name in sys.modules if name.startswith(heavy)], sys.modules.keys()
"""


def test_commands_that_do_not_crawl_load_the_add_on_without_its_components():
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=300)
