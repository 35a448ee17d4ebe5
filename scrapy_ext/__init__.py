"""Scrapy components for an extraction API and a crawling platform, with both services included."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_ext.addon import Addon

__all__ = ["Addon"]


def __getattr__(name: str) -> object:
    # The server and its child processes import the package without loading Scrapy.
    if name == "Addon":
        from scrapy_ext.addon import Addon

        return Addon
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
