"""Print the browser of the extraction service; exit status 1 with the reason when there is none."""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from scrapy_ext.server.extraction.browser import BrowserNotFoundError, find_browser

with sync_playwright() as playwright:
    own = Path(playwright.chromium.executable_path)
try:
    print(find_browser(None, os.environ, own))
except BrowserNotFoundError as error:
    print(error, file=sys.stderr)
    sys.exit(1)
