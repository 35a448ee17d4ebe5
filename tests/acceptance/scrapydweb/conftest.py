"""Without ScrapydWeb its tests are not collected; tests/conftest.py says so below the results."""

from __future__ import annotations

from tests.acceptance.scrapydweb.program import PROGRAM

if not PROGRAM:
    collect_ignore = ["test_scrapydweb.py"]
