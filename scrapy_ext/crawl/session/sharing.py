"""Parts of a crawl that several workers cannot share: refused when the crawl opens, or warned of once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Request, Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ext import settings as names
from scrapy_ext.api.masking import without_user
from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.worker_bounds import GROUP_SETTING
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.errors import BadRequest, NotFound
from scrapy_ext.crawl.session.forked import is_forked
from scrapy_ext.crawl.session.group import RESUME
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

_SCHEDULER: Final = "scrapy_ext.scheduler"


class _Refused(NamedTuple):
    """A setting that several workers cannot have, when the condition holds."""

    name: str
    condition: Callable[[BaseSettings], object]
    rule: str


_REFUSED: Final = (
    _Refused(
        "FRONTIER_WORKER",
        lambda settings: settings.get("FRONTIER_WORKER") is not None,
        "cannot be set beside {}: it is for workers that are started one by one",
    ),
    _Refused(
        "PLATFORM_ENABLED",
        lambda settings: not names.PLATFORM_ENABLED.read(settings),
        "must be True with {}: the workers run a job of the platform",
    ),
    _Refused(
        "FRONTIER_ENABLED",
        lambda settings: not names.FRONTIER_ENABLED.read(settings),
        "must be True with {}: another scheduler cannot share requests",
    ),
    _Refused(
        "SCHEDULER",
        lambda settings: not _is_ours(settings),
        "must be scrapy_ext.scheduler.FrontierScheduler with {}: another scheduler cannot share requests",
    ),
    _Refused(
        "PLATFORM_ITEMS_MODE",
        lambda settings: names.PLATFORM_ITEMS_MODE.read(settings) == "streaming",
        "must be exact with {}: else the items of a worker that died would be stored again",
    ),
)
_NO_REPORTS: Final = (
    "needs a platform to which workers of one job can report, and this one does not have that call (404)"
)
_OTHER_WORKERS: Final = (
    "Remove it, or start several crawls with one FRONTIER_NAME and FRONTIER_WORKER = auto, each with a job of its own."
)


def check_shareable(settings: BaseSettings) -> None:
    """Raise :class:`SettingError` for the first setting that workers cannot share."""
    for each in _REFUSED:
        if each.condition(settings):
            chosen, remedy = _chosen_by(settings)
            raise SettingError(each.name, each.rule.format(chosen), f"Remove it, or {remedy}.")


def _chosen_by(settings: BaseSettings) -> tuple[str, str]:
    """Return the name of what the number of workers was chosen by, and the way to have one."""
    if is_forked(settings) or str(settings.get(GROUP_SETTING)).startswith(RESUME):
        return "CRAWL_WORKERS", "CRAWL_WORKERS"
    return "several workers of a job (job_workers, --workers)", "run the job with one worker"


async def check_platform(client: PlatformClient, project: int) -> None:
    """Raise :class:`SettingError` for a platform without the calls of workers, before there is a job. Raises
    :class:`PlatformError`."""
    try:
        await client.workers.list(project, JobKey(project, 1, 1))
    except (BadRequest, NotFound):
        raise SettingError("CRAWL_WORKERS", _NO_REPORTS, _OTHER_WORKERS) from None


def _is_ours(settings: BaseSettings) -> bool:
    scheduler = load_object(settings["SCHEDULER"])
    return any(base.__module__ == _SCHEDULER for base in getattr(scheduler, "__mro__", ()))


class SharingWarnings:
    """Warnings of one worker about what it has for itself."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        if crawler.settings.getbool("COOKIES_ENABLED") and names.CRAWL_SPREAD.read(crawler.settings):
            crawler.signals.connect(self._response_received, signal=signals.response_received)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    def _response_received(self, response: Response, request: Request) -> None:
        # A named jar is in one worker.
        own_jar = request.meta.get("cookiejar") is not None or request.meta.get("dont_merge_cookies")
        if own_jar or b"Set-Cookie" not in response.headers:
            return
        logger.warning(
            "%s sets a cookie. Each worker has its own cookies, and requests of a host can continue in another worker. "
            "If the site needs its cookies, set meta cookiejar or CRAWL_SPREAD = False, else COOKIES_ENABLED = False",
            without_user(response.url),
        )
        self._crawler.signals.disconnect(self._response_received, signal=signals.response_received)

    def _spider_closed(self, spider: Spider) -> None:
        if getattr(spider, "state", None):
            logger.warning("spider.state is not shared: each worker has its own. Keep what they share in a collection")
