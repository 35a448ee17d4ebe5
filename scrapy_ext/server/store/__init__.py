"""Storage of the platform's data in SQL databases."""

from typing import TYPE_CHECKING

from scrapy_ext.server.store.engine.errors import StoreError

if TYPE_CHECKING:
    from scrapy_ext.server.store.store import Store

__all__ = ["Store", "StoreError"]


def __getattr__(name: str) -> object:
    # Reading a configuration needs the address of a database, but not the engines.
    if name == "Store":
        from scrapy_ext.server.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
