"""All that differs between the supported versions of Scrapy, 2.14 and later.

Private names of Scrapy's engine are in ``crawl/session/scrapy_engine.py``: all supported versions have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy import exceptions
from scrapy.http import Response

if TYPE_CHECKING or hasattr(exceptions, "DownloadFailedError"):
    from scrapy.exceptions import (
        CannotResolveHostError,
        DownloadCancelledError,
        DownloadConnectionRefusedError,
        DownloadFailedError,
        DownloadTimeoutError,
        ResponseDataLossError,
    )
else:
    # Scrapy 2.14 gives errbacks the exceptions of Twisted that later versions replace.
    from twisted.internet.defer import CancelledError as DownloadCancelledError
    from twisted.internet.error import ConnectionRefusedError as DownloadConnectionRefusedError
    from twisted.internet.error import DNSLookupError as CannotResolveHostError
    from twisted.internet.error import TimeoutError as DownloadTimeoutError
    from twisted.web.client import ResponseFailed as DownloadFailedError

    ResponseDataLossError = DownloadFailedError

__all__ = (
    "CACHE_KEEPS_RESULTS",
    "CannotResolveHostError",
    "DownloadCancelledError",
    "DownloadConnectionRefusedError",
    "DownloadFailedError",
    "DownloadTimeoutError",
    "ResponseDataLossError",
)

#: The HTTP cache stores a response with the attributes of its class (Scrapy 2.19 and later).
CACHE_KEEPS_RESULTS: Final = hasattr(Response, "to_dict")
