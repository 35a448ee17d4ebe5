"""Failures of routed requests as Scrapy's exceptions of each version."""

from __future__ import annotations

import pytest

from scrapy_ext.client.extraction.errors import ServiceError
from scrapy_ext.compatibility import scrapy as classes
from scrapy_ext.crawl.extraction.download import as_scrapys


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        ("host-not-found", "CannotResolveHostError"),
        ("connection-refused", "DownloadConnectionRefusedError"),
        ("timeout", "DownloadTimeoutError"),
        ("cut-short", "ResponseDataLossError"),
        ("too-large", "DownloadCancelledError"),
    ],
)
def test_an_error_is_of_scrapys_class_as_well_and_keeps_all_that_it_had(cause: str, name: str) -> None:
    error = ServiceError("no page", status=520, cause=cause, sent={"url": "https://a.example/"})
    marked = as_scrapys(error)
    assert isinstance(marked, getattr(classes, name))
    assert isinstance(marked, ServiceError)
    assert (str(marked), marked.args, vars(marked)) == (str(error), error.args, vars(error))
    assert type(marked).__name__ == "ServiceError"
    assert as_scrapys(marked) is marked


@pytest.mark.scrapy(newest="2.14", why="Twisted's exceptions")
def test_errbacks_that_read_the_reasons_of_a_failed_response_find_none() -> None:
    marked = as_scrapys(ServiceError("no page", cause="cut-short"))
    assert (list(marked.reasons), marked.response) == ([], None)  # type: ignore[attr-defined]
