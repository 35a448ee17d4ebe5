"""The self-hosted extraction service (extraction-api.md). Other parts of the package use the names of this module."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy_ext.server.extraction.auto import extract_more
    from scrapy_ext.server.extraction.auto.extract_rules import correct_item
    from scrapy_ext.server.extraction.browser import (
        ENVIRONMENT_VARIABLE,
        HOW_TO_GET_ONE,
        BrowserNotFoundError,
    )
    from scrapy_ext.server.extraction.browser.launcher import Launcher
    from scrapy_ext.server.extraction.routes import EXTRACT
    from scrapy_ext.server.extraction.service import ExtractionService

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "EXTRACT",
    "HOW_TO_GET_ONE",
    "BrowserNotFoundError",
    "ExtractionService",
    "Launcher",
    "correct_item",
    "extract_more",
]

#: Modules of the names, which are imported at first use: the processes that extract need this package, and no browser.
_MODULES: Final = {
    "ENVIRONMENT_VARIABLE": "browser",
    "EXTRACT": "routes",
    "HOW_TO_GET_ONE": "browser",
    "BrowserNotFoundError": "browser",
    "ExtractionService": "service",
    "Launcher": "browser.launcher",
    "correct_item": "auto.extract_rules",
    "extract_more": "auto",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
