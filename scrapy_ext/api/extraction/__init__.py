"""The contract of the extraction service (``extraction-api.md``)."""

from scrapy_ext.api.extraction.fields import EXTENSIONS, EXTENSIONS_HEADER, EXTRACT_TYPES, FIELDS, MADE_OF_PAGE, OUTPUTS
from scrapy_ext.api.extraction.problems import CAUSE_HEADER, PROBLEM_TYPES, Cause, Problem, ProblemType
from scrapy_ext.api.extraction.records import ExtractRequest, ExtractResult, Header, Redirect
from scrapy_ext.api.extraction.rules import check, parse

__all__ = [
    "CAUSE_HEADER",
    "EXTENSIONS",
    "EXTENSIONS_HEADER",
    "EXTRACT_TYPES",
    "FIELDS",
    "MADE_OF_PAGE",
    "OUTPUTS",
    "PROBLEM_TYPES",
    "Cause",
    "ExtractRequest",
    "ExtractResult",
    "Header",
    "Problem",
    "ProblemType",
    "Redirect",
    "check",
    "parse",
]
