"""Where the platform's data lives: SQL, and nothing else."""

from scrapy_ext.server.store.errors import StoreError
from scrapy_ext.server.store.store import Store

__all__ = ["Store", "StoreError"]
