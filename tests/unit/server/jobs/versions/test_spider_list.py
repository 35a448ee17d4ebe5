"""Explanations of a spider's arguments, from its docstrings."""

from __future__ import annotations

from typing import Any

from scrapy import Spider

from scrapy_ext.server.jobs.versions.spider_list import _spider


class BaseSpider(Spider):
    """Pages of a site.

    Args:
        depth (int): Levels to follow;
            0 for none.
        unknown: No argument.
    """

    def __init__(self, *args: Any, depth: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class PagesSpider(BaseSpider):
    """Products of a shop.

    Note: this is no argument.

    url: Listing to start at: a category.

    Text that belongs to nothing.
    """

    name = "pages"

    def __init__(self, *args: Any, url: str, pages: int = 3, bare: str = "", **kwargs: Any) -> None:
        """Make it.

        :param int pages: Pages of each listing,
            at most.
        """
        super().__init__(*args, **kwargs)


def test_arguments_have_the_explanations_of_all_docstrings_of_a_spider() -> None:
    spider = _spider("pages", PagesSpider, [])
    assert spider.summary == "Products of a shop."
    assert {argument.name: argument.help for argument in spider.arguments} == {
        "url": "Listing to start at: a category.",
        "pages": "Pages of each listing, at most.",
        "bare": "",
        "depth": "Levels to follow; 0 for none.",
    }


def test_a_docstring_that_is_long_or_no_text_does_no_harm() -> None:
    class Odd(Spider):
        __doc__ = "a: " + "x" * 100_000 + "\n" + "b:" * 100_000

        def __init__(self, a: str = "") -> None:
            pass

    class None_(Spider):  # noqa: N801
        __doc__ = None

        def __init__(self, a: str = "") -> None:
            pass

    (argument,) = _spider("odd", Odd, []).arguments
    assert argument.help == "x" * 200
    assert _spider("none", None_, []).arguments[0].help == ""
