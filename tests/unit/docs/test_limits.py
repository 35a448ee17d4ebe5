"""The page on limits has its numbers as they are in the code, for readers of its source."""

from __future__ import annotations

import re

from scrapy_ext.api.platform import conditions, expressions, schema_bounds
from scrapy_ext.api.platform.versions import MAX_ARCHIVE
from scrapy_ext.server import deploying, record_search
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction import auto_worker
from scrapy_ext.server.extraction.auto import markdown
from scrapy_ext.server.extraction.auto.pdf import reading
from scrapy_ext.server.extraction.browser.capture import MAX_CAPTURED
from scrapy_ext.server.http import bodies, form_bodies, json_bodies, limits, memory
from scrapy_ext.server.http.json_bodies import MAX_VALUES
from scrapy_ext.server.mcp import endpoint, results, services, tool
from scrapy_ext.server.mcp.tools.jobs import LONGEST_WAIT
from scrapy_ext.server.monitors import item_schemas
from scrapy_ext.server.monitors.schema_worker import ITEM_SECONDS
from scrapy_ext.server.ui import images, pages
from tests.support.docs_tables import DOCS, tables_of

KIB, MIB, GIB = 2**10, 2**20, 2**30


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def expected() -> list[list[str]]:
    """The phrases with numbers of each row of the table."""
    page, server = ServiceLimits(), ServerConfig()
    return [
        [f"the URL: {limits.TARGET // KIB} KiB, {limits.PARAMETERS} parameters"],
        [f"headers: {limits.HEADERS // KIB} KiB, {limits.HEADER_COUNT} lines"],
        [
            f"{bodies.MAX_RECORDS_BODY // MIB} MiB of items, requests or logs",
            f"{bodies.MAX_BODY // MIB} MiB of other line-based bodies",
            f"{json_bodies.MAX_DOCUMENT // MIB} MiB of a JSON document, {form_bodies.MAX_FORM // MIB} MiB of a form",
            f"{_spaced(bodies.MAX_LINES)} lines",
        ],
        [f"one line of a body: {bodies.MAX_LINE // MIB} MiB"],
        [
            f"a {memory.SHARE}nd of the memory of the machine",
            f"at least {limits.MEMORY // MIB} MiB",
            f"less than {2 * limits.MEMORY // GIB} GiB",
        ],
        [f"over {json_bodies._PLAIN // MIB} MiB: {_spaced(MAX_VALUES)} commas, colons and opening brackets"],
        [f"{MAX_ARCHIVE // MIB} MiB of archive, {deploying._MAX_HEADERS // KIB} KiB of headers"],
        [
            f"``--client-timeout`` ({server.client_timeout:g} s)",
            f"{limits.SLOWEST // KIB} KiB/s",
            f"{limits.FIRST_REQUEST:g} s for the first request",
        ],
        [],
        [f"``--connections``: {limits.CONNECTIONS}"],
        [],
        [f"{limits.PIPELINE} requests of a connection"],
        [
            f"{page.requests} in progress, {page.request:g} s each, {page.fetch:g} s for an HTTP fetch",
            f"{page.redirects} redirects, {page.body_bytes // MIB} MiB of body",
            f"{page.navigate:g} s until the first byte of a page in a browser",
        ],
        [f"{server.browser_pages} at once; {page.pages_waiting} more wait, {page.page_patience:g} s at most"],
        [f"{page.page_bytes // MIB} MiB of loaded data, {page.html_bytes // MIB} MiB of HTML"],
        [f"{page.page_heap_mib} MiB of JavaScript heap, {page.page_memory_mib} MiB in all"],
        [f"together: {page.browser_memory_mib} MiB"],
        [f"{page.sessions} open, {page.sessions_of_key} of one key"],
        [f"a session: {page.session_bytes // KIB} KiB"],
        [f"all sessions: {page.sessions_bytes // MIB} MiB"],
        [f"{MAX_CAPTURED}, with {page.capture_bytes // MIB} MiB of headers and bodies"],
        [f"{page.extract:g} s each"],
        [
            f"{reading.MAX_PAGES} pages, {_spaced(reading.MAX_LENGTH)} characters, {_spaced(reading.MAX_LINES)} lines, "
            f"{reading.MAX_SECONDS:g} s of processor time",
        ],
        [f"{_spaced(markdown.MAX_LENGTH)} characters"],
        [f"{auto_worker.PDF_MEMORY // MIB} MiB of memory"],
        [
            f"{_spaced(record_search.MOST_RECORDS)} records, {record_search.MOST_BYTES // MIB} MiB or "
            f"{record_search.MOST_SECONDS:g} s; {record_search.MOST_SORTED} sorted items"
        ],
        [
            f"{expressions.MAX_EXPRESSIONS}, of {expressions.MAX_LENGTH} characters",
            f"{1000 * expressions.SECONDS:g} ms for a value, and {expressions.SLOW_SECONDS:g} s for all",
        ],
        [f"search for: {conditions.MAX_SEARCHED}"],
        [f"{pages.MAX_QUERY} bytes"],
        [
            f"{schema_bounds.MAX_DEPTH} levels, {schema_bounds.MAX_REFERENCES} references, "
            f"{schema_bounds.MAX_PATTERNS} patterns of {schema_bounds.MAX_PATTERN} characters, "
            f"{_spaced(schema_bounds.MAX_EVALUATIONS)} evaluations",
        ],
        [
            f"{ITEM_SECONDS:g} s of processor time for an item, {item_schemas.JOB_SECONDS:g} s for a job, "
            f"{item_schemas.PROJECT_SECONDS:g} s for a project",
        ],
        [
            f"{images.MOST_BYTES // MIB} MiB, {images.SECONDS:g} s, {images.REDIRECTS} redirects; "
            f"{images.AT_ONCE} at a time"
        ],
        [f"{page.answer:g} s to read the response"],
        [f"``/mcp``: {endpoint.MOST // KIB} KiB"],
        [
            f"{tool.SECONDS:g} s, {LONGEST_WAIT} s of waiting",
            f"{results.MOST_BYTES // KIB} KiB of a result, {results.DEFAULT_BYTES // KIB} KiB by default",
            f"{services.MOST // MIB} MiB of an answer of the platform, {services.MOST_EXTRACTED // MIB} MiB of one",
        ],
    ]


def test_every_number_of_the_page_on_limits_is_that_of_the_code() -> None:
    rows = tables_of("reference/limits.rst")["Limits"]
    phrases = expected()
    assert len(rows) == len(phrases)
    for (what, _), wanted in zip(rows, phrases, strict=True):
        rest = what
        for phrase in wanted:
            assert phrase in rest, what
            rest = rest.replace(phrase, "")
        assert not re.search(r"\d", rest), rest


def test_the_source_of_the_page_on_limits_reads_as_it_is_built() -> None:
    assert ":value:" not in (DOCS / "reference" / "limits.rst").read_text("utf-8")
    assert memory.PRESSURE == 3 / 4
