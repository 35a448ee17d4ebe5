"""PDFs are known by type and signature, and requested by HTTP where a request leaves that to the service."""

from __future__ import annotations

import pytest

from scrapy_ext.api.extraction import ExtractRequest
from scrapy_ext.server.extraction.documents import UnshownFileError, binary_problem, is_pdf, plan_by_http
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
