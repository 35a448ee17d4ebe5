"""What is compared, as the settings that a user would write."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

Settings = dict[str, Any]

#: For every crawl.
COMMON: Settings = {
    "LOG_LEVEL": "INFO",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
}


def scrapy_ext(port: int, key: str) -> Settings:
    """The add-on on a platform: scheduler, items, request records, log. Pages are downloaded directly."""
    return {"ADDONS": {"scrapy_ext.Addon": 500}, "EXTRACT_API_ENABLED": False, **platform_at(port, key)}


def platform_at(port: int, key: str) -> Settings:
    """Where the platform is."""
    return {"PLATFORM_URL": f"http://127.0.0.1:{port}", "PLATFORM_API_KEY": key}


def scrapy_redis(port: int) -> Settings:
    """Scheduler, dupefilter and items of scrapy-redis, from an empty queue."""
    if find_spec("scrapy_redis") is None:
        raise SystemExit("scrapy-redis is compared with: pip install -r benchmarks/requirements.txt")
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 300},
        "SCHEDULER_FLUSH_ON_START": True,
        "REDIS_URL": f"redis://127.0.0.1:{port}",
    }
