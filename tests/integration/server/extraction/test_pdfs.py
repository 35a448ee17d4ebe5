"""PDFs: their text for pageContent and article, and a clear word for all else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target
from tests.support.pdfs import bomb, endless, hostile, lines, of_images, pdf, with_password

HTTP = {"extractFrom": "httpResponseBody"}
DOWNLOAD = "/download/internal-error"
BODY = (
    "The quick brown fox jumps over the lazy dog, and does so again and again, be-",
    "cause a paragraph needs several lines of text. It ends here.",
)
REPORT = pdf(
    [*lines(["A report on foxes"], size=20), *lines(BODY, top=110), *lines(["The second paragraph."], top=170)],
    information={
        "Title": "Microsoft Word - Foxes in the report",
        "Author": "Jane Doe",
        "CreationDate": "D:20200131120000Z",
        "Subject": "",
    },
    language="en-GB",
)
TEXT = f"{BODY[0][:-1]}{BODY[1]}\n\nThe second paragraph."


@pytest.fixture
def report(target: Target) -> Iterator[str]:
    yield target.page("/report", REPORT, Content_Type="application/pdf")
    target.calls.clear()


def test_the_content_of_a_pdf_is_its_text(service: Service, report: str) -> None:
    item = service.result(url=report, pageContent=True, **HTTP)["pageContent"]
    metadata = item.pop("metadata")
    assert item == {
        "url": report,
        "headline": "A report on foxes",
        "title": "Foxes in the report",
        "itemMain": f"A report on foxes\n\n{TEXT}",
    }
    assert metadata["probability"] > 0.5
    assert metadata["dateDownloaded"]


def test_an_article_has_the_information_of_the_file(service: Service, report: str) -> None:
    item = service.result(url=report, article=True, **HTTP)["article"]
    del item["metadata"]
    first, second = TEXT.split("\n\n")
    assert item == {
        "url": report,
        "headline": "A report on foxes",
        "datePublished": "2020-01-31T12:00:00Z",
        "datePublishedRaw": "D:20200131120000Z",
        "authors": [{"name": "Jane Doe", "nameRaw": "Jane Doe"}],
        "inLanguage": "en",
        "articleBody": TEXT,
        "articleBodyHtml": f"<article>\n\n<p>{first}</p>\n\n<p>{second}</p>\n\n</article>",
    }


@pytest.mark.parametrize("content_type", ["application/pdf", "application/octet-stream", "application/x-unknown"])
def test_by_default_a_pdf_is_requested_by_http_when_the_browser_does_not_show_it(
    service: Service, target: Target, content_type: str
) -> None:
    url = target.page("/default", b"\n\n" + REPORT, Content_Type=content_type)
    target.calls.clear()
    if content_type == "application/x-unknown":
        # It is not even read.
        assert "not a page but a download" in service.problem(521, DOWNLOAD, url=url, pageContent=True)
        assert len(target.calls_of("/default")) == 1
        return
    result = service.result(url=url, pageContent=True, httpResponseHeaders=True)
    assert TEXT in result["pageContent"]["itemMain"]
    assert {"name": "Content-Type", "value": content_type} in result["httpResponseHeaders"]
    assert len(target.calls_of("/default")) == 2


def test_another_file_is_no_page_also_by_http(service: Service, target: Target) -> None:
    url = target.page("/file", b"PK\x03\x04", Content_Type="application/octet-stream")
    assert "not a page but a download" in service.problem(521, DOWNLOAD, url=url, article=True)
    for fields in ({"article": True}, {"product": True}, {"markdown": True}):
        options = {"markdownOptions": HTTP} if "markdown" in fields else HTTP
        detail = service.problem(521, DOWNLOAD, url=url, **fields, **options)
        assert "is a file of type application/octet-stream, which is not a page." in detail
    assert (
        service.result(url=url, httpResponseBody=True)["httpResponseBody"] == base64.b64encode(b"PK\x03\x04").decode()
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"browserHtml": True},
        {"pageContent": True, "browserHtml": True},
        {"pageContent": True, "screenshot": True},
        {"article": True, "extractFrom": "browserHtml"},
    ],
)
def test_a_browser_does_not_show_a_pdf(service: Service, report: str, fields: dict[str, object]) -> None:
    detail = service.problem(521, DOWNLOAD, url=report, **fields)
    assert f"{report} is a PDF, which the browser does not show" in detail
    assert "extractFrom httpResponseBody" in detail


@pytest.mark.parametrize("kind", ["product", "articleList", "serp"])
def test_other_kinds_need_a_page(service: Service, report: str, kind: str) -> None:
    way = {} if kind == "serp" else HTTP
    detail = service.problem(521, DOWNLOAD, url=report, **{kind: True}, **way)
    assert f"{report} is a PDF, and {kind} is extracted from HTML only" in detail


def test_the_file_comes_along(service: Service, report: str) -> None:
    result = service.result(url=report, article=True, httpResponseBody=True, **HTTP)
    assert base64.b64decode(result["httpResponseBody"]) == REPORT
    assert result["article"]["headline"] == "A report on foxes"


def test_a_page_that_is_declared_as_a_pdf_is_a_page(service: Service, target: Target) -> None:
    url = target.page("/error", "<html><title>Not found</title><h1>Not found</h1>", Content_Type="application/pdf")
    assert service.result(url=url, pageContent=True, **HTTP)["pageContent"]["title"] == "Not found"


def test_sources_and_custom_attributes_of_a_pdf(service: Service, target: Target) -> None:
    labels = lines(["Weight: 12 kg", "Fuel: gas"], top=120, step=30)
    body = pdf([*lines(["Lamp"], size=20), *labels], information={"CreationDate": "D:20200131120000Z"})
    result = service.result(
        url=target.page("/lamp", body, Content_Type="application/pdf"),
        article=True,
        fieldSources=True,
        customAttributes={"fuel": {"type": "string"}},
        **HTTP,
    )
    assert result["customAttributes"]["values"] == {"fuel": "gas"}
    assert result["fieldSources"] == {
        "headline": {"rule": "heading"},
        "articleBody": {"rule": "main text"},
        "articleBodyHtml": {"rule": "main text"},
        "datePublished": {"rule": "pdf CreationDate"},
        "datePublishedRaw": {"rule": "pdf CreationDate"},
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (with_password(), "needs a password"),
        (of_images(), "has no text: its pages may be images"),
        (pdf([]), "has no text"),
        (b"%PDF-1.7\nand nothing else", "cannot be read"),
    ],
)
def test_a_pdf_without_a_text_is_a_problem_with_its_reason(
    service: Service, target: Target, body: bytes, reason: str
) -> None:
    url = target.page("/bad", body, Content_Type="application/pdf")
    assert f"{url} is a PDF that {reason}" in service.problem(521, DOWNLOAD, url=url, pageContent=True, **HTTP)


@pytest.mark.parametrize("fault", hostile())
def test_a_hostile_pdf_has_a_text_or_a_reason(service: Service, target: Target, fault: str) -> None:
    url = target.page("/hostile", hostile()[fault], Content_Type="application/pdf")
    answer = service.extract(url=url, pageContent=True, **HTTP)
    assert answer.status in (200, 521), answer.body[:500]
    if answer.status == 521:
        assert f"{url} is a PDF that " in answer.json["detail"]
    else:
        assert answer.json["pageContent"]["itemMain"]


@pytest.mark.parametrize("make", [lambda: bomb(2**28), endless])
@pytest.mark.long
def test_a_bomb_ends_its_reader_and_nothing_else(
    service: Service, target: Target, report: str, make: Callable[[], bytes]
) -> None:
    url = target.page("/bomb", make(), Content_Type="application/pdf")
    detail = service.problem(521, DOWNLOAD, url=url, article=True, **HTTP)
    assert f"{url} is a PDF that cannot be read" in detail
    assert service.result(url=report, article=True, **HTTP)["article"]["headline"] == "A report on foxes"


def test_a_pdf_that_takes_too_long_is_given_up(target: Target, report: str) -> None:
    # A process takes longer to start.
    limits = ServiceLimits(extract=0.001)
    with Service(allow_hosts=[target.host], extraction_processes=1, limits=limits) as service:
        detail = service.problem(521, DOWNLOAD, url=report, article=True, **HTTP)
    fault = f"{report} is a PDF that cannot be read in 0.001 seconds."
    assert detail == f"{fault} Leave this URL out: another attempt would fail, too."
