"""ScrapydWeb's program. Its requirements are older than those of this package: ``nox --session scrapydweb`` makes an
environment for it."""

from __future__ import annotations

import os

VARIABLE = "SCRAPY_EXT_SCRAPYDWEB"
PROGRAM = os.environ.get(VARIABLE, "")
NOT_FOUND = f"not run: tests/acceptance/scrapydweb; nox --session scrapydweb does, or name its program in {VARIABLE}"
