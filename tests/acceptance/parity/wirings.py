"""The four ways in which each spider runs."""

from __future__ import annotations

from typing import Any, Final

from scrapy_ext import Addon

PLAIN: Final = "plain"

_ADDONS: Final = {"ADDONS": {Addon: 500}}

#: Settings by wiring.
WIRINGS: Final[dict[str, dict[str, Any]]] = {
    PLAIN: {},
    "platform": {**_ADDONS, "EXTRACT_API_ENABLED": False},
    "extraction": {**_ADDONS, "PLATFORM_ENABLED": False, "FRONTIER_ENABLED": False},
    "everything": _ADDONS,
}
