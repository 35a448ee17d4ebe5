"""PDFs are known by type and signature, and requested by HTTP where a request leaves that to the service."""

from __future__ import annotations

import pytest

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.server.extraction.documents import (
    UnshownFileError,
    binary_problem,
    is_pdf,
    kind_of_text,
    plan_by_http,
    shown_text,
)
from scrapy_ext.server.extraction.plan import PagePlan, plan
from scrapy_ext.server.net.pool import ProxyPool

PDF = b"%PDF-1.7\n..."
URL = "https://example.com/a"


@pytest.mark.parametrize(
    ("content_type", "body", "is_one"),
    [
        ("application/pdf", PDF, True),
        ("application/PDF; charset=binary", b"\n" * 1000 + PDF, True),
        ("application/pdf", b"cut off or broken", True),
        ("application/pdf", b"", False),
        ("application/pdf", b"\n<!doctype html><title>Not found</title>", False),
        ("application/octet-stream", PDF, True),
        ("application/octet-stream", b" " * 1019 + PDF, True),
        ("application/octet-stream", b" " * 1020 + PDF, False),
        (None, PDF, True),
        ("text/html", PDF, True),
        ("text/html", b"<p>A file begins with %PDF-1.7", False),
        ("application/zip", b"PK\x03\x04 %PDF-1.7", False),
    ],
)
def test_a_pdf_is_known_by_its_type_and_signature(content_type, body, is_one):
    assert is_pdf(content_type, body) is is_one


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("image/png", PNG, "is an image,"),
        ("text/html; charset=utf-8", PNG, "is binary data,"),
        (None, PNG, "is binary data,"),
        ("application/zip", b"PK\x03\x04\x14\x00", "is a file of type application/zip,"),
        ("application/x-gzip", b"\x1f\x8b\x08\x00abc", "is a file of type application/x-gzip,"),
        ("audio/mpeg", b"ID3\x03\x00", "is a sound,"),
        ("text/plain", b"ID3 is the begin of a sound", None),
        ("text/html", b"<p>a page with a stray \x00</p>", None),
        ("application/json", b'{"a": "\x01"}', None),
        ("image/svg+xml", b"<svg>\x01</svg>", None),
        ("image/png", b"<!doctype html><p>Not found</p>", None),
        ("application/octet-stream", b"<p>a page</p>", None),
        (None, "<p>a page</p>".encode("utf-16"), None),
        (None, b"<!doctype html><p>a page with a stray \x0b</p>", None),
        ("application/octet-stream", b"\n<html>a page with a stray \x02</html>", None),
        (None, "<p>a page</p>".encode("utf-16-le"), None),
        ("application/octet-stream", b"", None),
    ],
)
def test_binary_data_has_no_text(content_type, body, words):
    problem = binary_problem(URL, content_type, body)
    if words is None:
        assert problem is None
    else:
        assert problem is not None
        assert f"{URL} {words} which is not a page." in str(problem)


RSS = '<?xml version="1.0"?>\n<!-- made by <a> tool --><rss version="2.0"><channel><title>News</title></channel></rss>'
XHTML = '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0"><html><body><p>a page</p></body></html>'


@pytest.mark.parametrize(
    ("content_type", "text", "kind"),
    [
        ("application/rss+xml; charset=utf-8", RSS, "XML"),
        ("text/xml", RSS, "XML"),
        ("text/html", RSS, "XML"),
        (None, "\ufeff<feed xmlns='http://www.w3.org/2005/Atom'></feed>", "XML"),
        ("text/plain", "<urlset></urlset>", "XML"),
        ("application/xml", "<book><title>a</title></book>", "XML"),
        ("application/xhtml+xml", "<book>no page, but declared as one</book>", ""),
        ("application/xml", XHTML, ""),
        ("text/html", "<?xml version='1.0'?><div>a part of a page</div>", ""),
        ("text/html", "<p>a <rss> in a page</p>", ""),
        ("image/svg+xml", "<svg></svg>", ""),
        ("application/xml", "no XML at all", ""),
        ("application/json", '{"a": "<rss>"}', "JSON"),
        ("application/ld+json", "[]", "JSON"),
        ("application/json", " <!doctype html><p>Not found</p>", ""),
        ("text/plain; charset=utf-8", "a\nb <b>c</b>", "text"),
        ("text/markdown", "# a", "text"),
        ("text/csv", "a,b", "text"),
        ("text/plain", "<!-- saved --><!DOCTYPE html><html><p>a page</p></html>", ""),
        ("application/xml", "<?xml version='1.0'?><h:html xmlns:h='http://www.w3.org/1999/xhtml'/>", ""),
        ("text/plain", "<!-- saved --><body><p>a page", ""),
        ("text/plain", f"<!--{'x' * 3000}--><html><p>a page", ""),
        ("text/plain", "<html> is the first element of a page.\nIt has a head.", "text"),
        ("text/plain", "<body> tags are old.", "text"),
        ("application/xml", f"<!--{'x' * 3000}--><urlset>", "XML"),
        ("text/html", "<!DOCTYPE rss [<!ENTITY a 'b'>]><rss>", "XML"),
        ("text/html", "<feedback-form>a part of a page</feedback-form>", ""),
        ("text/html", "a text", ""),
        (None, "a text", ""),
        ("", "", ""),
        ("application/octet-stream", "a text", ""),
    ],
)
def test_files_of_text_are_known_by_their_type_and_begin(content_type, text, kind):
    assert kind_of_text(content_type, text) == kind


@pytest.mark.parametrize(
    "text", ["<!---->" * 100_000, "<!--" * 100_000, "<?xml " * 100_000, " " * 1_000_000, "<!DOCTYPE" * 9]
)
def test_the_begin_of_a_hostile_text_is_read_in_bounds(text):
    assert kind_of_text("text/plain", text) == "text"


def test_a_text_is_shown_with_its_signs():
    assert shown_text("\n<b>&amp;</b>") == "<html><body><pre>\n\n&lt;b&gt;&amp;amp;&lt;/b&gt;</pre></body></html>"


def by_http(**fields):
    request = ExtractRequest(url=URL, **fields)
    todo = plan(request, ProxyPool([]))
    assert isinstance(todo, PagePlan)
    return plan_by_http(request, todo)


@pytest.mark.parametrize("kind", ["article", "page_content"])
def test_a_request_that_names_no_browser_can_be_sent_by_http(kind):
    found = by_http(**{kind: True}, request_headers={"Accept-Language": "de"}, device="mobile")
    assert found is not None
    assert (found.url, found.device, found.method, found.wants_body) == (URL, "mobile", "GET", True)
    assert [(header.name, header.value) for header in found.headers] == [("Accept-Language", "de")]


@pytest.mark.parametrize(
    "fields",
    [
        {"product": True},
        {"browser_html": True},
        {"page_content": True, "browser_html": True},
        {"page_content": True, "screenshot": True},
        {"page_content": True, "extract_from": "browserHtml"},
        {"page_content": True, "page_content_options": {"extractFrom": "browserHtml"}},
        {"page_content": True, "actions": [{"action": "reload"}]},
        {"article": True, "network_capture": [{"filterType": "url", "value": "a"}]},
    ],
)
def test_a_request_for_a_page_or_a_browser_is_not(fields):
    assert by_http(**fields) is None


def test_a_download_of_a_pdf_says_how_to_get_it():
    assert "extractFrom httpResponseBody" in str(UnshownFileError(URL, "application/pdf"))
    assert [UnshownFileError(URL, kind).may_be_pdf for kind in ("application/pdf", None, "application/zip")] == [
        True,
        True,
        False,
    ]
