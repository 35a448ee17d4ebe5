"""The contract of the extraction service (``extraction-api.md``)."""

from scrapy_ext.api.extraction.fields import EXTRACT_TYPES, FIELDS, OUTPUTS
from scrapy_ext.api.extraction.problems import PROBLEM_TYPES, Problem, ProblemType
from scrapy_ext.api.extraction.records import ExtractRequest, ExtractResult, Header
from scrapy_ext.api.extraction.rules import check, parse

__all__ = [
    "EXTRACT_TYPES",
    "FIELDS",
    "OUTPUTS",
    "PROBLEM_TYPES",
    "ExtractRequest",
    "ExtractResult",
    "Header",
    "Problem",
    "ProblemType",
    "check",
    "parse",
]
