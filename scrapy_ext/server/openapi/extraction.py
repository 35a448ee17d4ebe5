"""``/v1/extract``."""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.extraction.problems import PROBLEM_TYPES
from scrapy_ext.api.extraction.records import ExtractRequest, ExtractResult
from scrapy_ext.server.openapi.words import JSON, Body, Operation, value

TAG: Final = "extraction"

OPERATIONS: Final = (
    Operation(
        method="POST",
        path="/v1/extract",
        summary="Fetch a page, and extract from it what is asked for.",
        tag=TAG,
        body=Body(JSON, ExtractRequest),
        answer=value("What was asked for.", ExtractResult),
        errors=(404, 405, 408, 414, 415, 431, *sorted({problem.status for problem in PROBLEM_TYPES.values()})),
    ),
)
