"""Settings of the compared contenders, as a user would write them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

Settings = dict[str, Any]

#: Settings of every crawl.
COMMON: Settings = {
    "LOG_LEVEL": "INFO",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
}


def scrapy_ext(port: int, key: str) -> Settings:
    """Return the settings of the add-on on a platform: scheduler, items, request records, log; direct downloads."""
    return {"ADDONS": {"scrapy_ext.Addon": 500}, "EXTRACT_API_ENABLED": False, **platform_at(port, key)}


def platform_at(port: int, key: str) -> Settings:
    """Return the settings with the platform's URL and key."""
    return {"PLATFORM_URL": f"http://127.0.0.1:{port}", "PLATFORM_API_KEY": key}


def extract_api(service: str, fields: Settings | None = None) -> Settings:
    """The add-on for extraction alone: every page through the service at this address. ``fields`` are what is asked
    for, none for the page's body."""
    alone = {"PLATFORM_ENABLED": False, "FRONTIER_ENABLED": False}
    return {"ADDONS": {"scrapy_ext.Addon": 500}, **alone, **_service_at(service, fields)}


def everything(port: int, key: str, service: str, fields: Settings | None = None) -> Settings:
    """Return the settings of the complete add-on, on a platform and through an extraction service."""
    return {"ADDONS": {"scrapy_ext.Addon": 500}, **platform_at(port, key), **_service_at(service, fields)}


def _service_at(service: str, fields: Settings | None) -> Settings:
    return {"EXTRACT_API_URL": service, "EXTRACT_API_KEY": "0" * 32, "EXTRACT_API_PARAMS": fields or {}}


def scrapy_zyte_api(service: str, fields: Settings | None = None) -> Settings:
    """Return the settings of scrapy-zyte-api's add-on for the same crawl."""
    if find_spec("scrapy_zyte_api") is None:
        raise SystemExit("scrapy-zyte-api is compared with: pip install -r benchmarks/requirements.txt")
    return {
        "ADDONS": {"scrapy_zyte_api.Addon": 500},
        # The add-on appends its paths without a slash.
        "ZYTE_API_URL": f"{service}/",
        "ZYTE_API_KEY": "0" * 32,
        "ZYTE_API_AUTOMAP_PARAMS": fields or {},
    }


def scrapy_redis(port: int) -> Settings:
    """Return the settings of scrapy-redis for scheduler, dupefilter and items, from an empty queue."""
    if find_spec("scrapy_redis") is None:
        raise SystemExit("scrapy-redis is compared with: pip install -r benchmarks/requirements.txt")
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 300},
        "SCHEDULER_FLUSH_ON_START": True,
        "REDIS_URL": f"redis://127.0.0.1:{port}",
    }
