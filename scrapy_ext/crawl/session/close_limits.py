"""Limits of Scrapy's ``CloseSpider`` extension, for all workers of a job together.

Each report has the totals of the group, which are compared here. What is under way is exceeded, as with one worker,
and what comes in until the next report. Scrapy's extension stays, since a worker that reaches a count alone is right;
but it must not see the limits of the time and pages without an item, for another worker may have some.
"""

from __future__ import annotations

from typing import Final

from scrapy.settings import BaseSettings

from scrapy_ext.api.platform.workers import Totals

_TIMEOUT, _PAGES = "CLOSESPIDER_TIMEOUT_NO_ITEM", "CLOSESPIDER_PAGECOUNT_NO_ITEM"
#: Setting with the limits that Scrapy's extension must not see. Not for users.
_TAKEN: Final = "CRAWL_GROUP_NO_ITEM"


def take_over(settings: BaseSettings) -> None:
    """Take the limits without an item from the settings, before Scrapy's extension reads them."""
    settings.set(_TAKEN, {name: settings.getint(name) for name in (_TIMEOUT, _PAGES)}, priority="cmdline")
    for name in (_TIMEOUT, _PAGES):
        settings.set(name, 0, priority="cmdline")


class CloseLimits:
    """The limits of a group."""

    def __init__(self, settings: BaseSettings) -> None:
        taken = settings.getdict(_TAKEN)
        self._items = settings.getint("CLOSESPIDER_ITEMCOUNT")
        self._pages = settings.getint("CLOSESPIDER_PAGECOUNT")
        self._errors = settings.getint("CLOSESPIDER_ERRORCOUNT")
        self._seconds = settings.getfloat("CLOSESPIDER_TIMEOUT")
        self._seconds_no_item = taken.get(_TIMEOUT, 0)
        self._pages_no_item = taken.get(_PAGES, 0)
        #: Totals when the number of items was last seen to change.
        self._at_item = Totals()

    def reason(self, totals: Totals) -> str | None:
        """Return the close reason of a limit that is reached, by Scrapy's names; None: the crawl goes on."""
        if totals.items != self._at_item.items:
            self._at_item = totals
        reached = {
            "itemcount": (totals.items, self._items),
            "pagecount": (totals.responses, self._pages),
            "errorcount": (totals.errors, self._errors),
            "timeout": (totals.seconds, self._seconds),
            "timeout_no_item": (totals.item_seconds, self._seconds_no_item),
            "pagecount_no_item": (totals.responses - self._at_item.responses, self._pages_no_item),
        }
        return next((f"closespider_{name}" for name, (value, most) in reached.items() if most and value >= most), None)
