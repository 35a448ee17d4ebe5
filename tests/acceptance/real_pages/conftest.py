"""Without the folder of real pages its tests are not collected; tests/conftest.py says so below the results."""

from __future__ import annotations

from tests.acceptance.real_pages.folder import FOUND

if not FOUND:
    collect_ignore = ["test_real_pages.py"]
