"""A version of Scrapy without a private name that the package needs is refused when the crawl opens."""

from types import SimpleNamespace

import pytest

from scrapy_ext.crawl.session.scrapy_engine import (
    UnsupportedScrapyError,
    close_after_start_items,
    on_closing,
    watch,
)


@pytest.mark.parametrize(
    "use",
    [
        lambda crawler: watch(crawler, print),
        lambda crawler: on_closing(crawler, print),
        close_after_start_items,
    ],
    ids=["finished", "closing", "start-items"],
)
def test_an_engine_without_the_names_is_refused_with_the_version_to_install(use):
    with pytest.raises(UnsupportedScrapyError, match=r"Scrapy 2\.14 to 2\.\d+\. Install such a version"):
        use(SimpleNamespace(engine=SimpleNamespace()))


def test_a_scraper_whose_slot_does_not_say_that_it_closes_is_refused():
    scraper = SimpleNamespace(start_itemproc_async=print, slot=SimpleNamespace(is_idle=bool))
    with pytest.raises(UnsupportedScrapyError, match=r"items of start\(\)"):
        close_after_start_items(SimpleNamespace(engine=SimpleNamespace(scraper=scraper)))
