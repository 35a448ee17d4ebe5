"""Where the platform's data lives: SQL, and nothing else."""

from typing import TYPE_CHECKING

from scrapy_ext.server.store.engine.errors import StoreError

if TYPE_CHECKING:
    from scrapy_ext.server.store.store import Store

__all__ = ["Store", "StoreError"]


def __getattr__(name: str) -> object:
    # Whoever reads a configuration needs the address of a database, and not the engines.
    if name == "Store":
        from scrapy_ext.server.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
