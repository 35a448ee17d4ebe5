"""The real server without ``pyarrow``, and with temporary files of downloads of 64 KiB at most."""

from __future__ import annotations

import sys
from typing import Any

from scrapy_ext.server import __main__ as server
from scrapy_ext.server import launch
from scrapy_ext.server.http import formats

if __name__ == "__main__":
    modules: dict[str, Any] = sys.modules
    modules["pyarrow"] = None
    formats._SPOOLED = 64 * 1024  # type: ignore[misc]
    # The program would be executed anew, without its keys in the environment.
    launch._execute_anew = lambda *_: None
    server.main()
