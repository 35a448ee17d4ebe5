"""Pages as Markdown, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target
from tests.support.pdfs import lines, of_images, pdf

HTTP = {"extractFrom": "httpResponseBody"}
STEP = "take the rope in the left hand, lay a loop over the post, pull until the boat lies still."
PAGE = (
    "<nav><a href='/menu'>Menu</a></nav><main><h1>Knots</h1>"
    + "".join(f"<p>Step <b>{number}</b>: <a href='/{number}'>{STEP}</a></p>" for number in range(3))
    + "<img src='/knot.png' alt='A knot'></main><footer><a href='/imprint'>Imprint</a></footer>"
)


@pytest.fixture
def page(target: Target) -> str:
    return target.page("/knots", PAGE.encode(), Content_Type="text/html")


def test_the_main_content_of_a_page_is_markdown(service: Service, page: str) -> None:
    result = service.result(url=page, markdown=True, **HTTP)
    site = page.removesuffix("/knots")
    steps = "\n\n".join(f"Step **{number}**: [{STEP}]({site}/{number})" for number in range(3))
    assert result == {
        "url": page,
        "statusCode": 200,
        "markdown": f"# Knots\n\n{steps}\n\n![A knot]({site}/knot.png)\n",
    }


def test_options_choose_content_links_and_images(service: Service, page: str) -> None:
    def markdown(**options: Any) -> str:
        answer = service.result(url=page, markdown=True, markdownOptions={**options, **HTTP})
        return str(answer["markdown"])

    assert "[Menu]" in markdown(content="all")
    assert "](" not in markdown(links=False, images=False)
    assert "![A knot]" in markdown(links=False)


def test_an_item_and_the_page_come_with_it(service: Service, page: str) -> None:
    result = service.result(url=page, markdown=True, pageContent=True, httpResponseBody=True, **HTTP)
    assert result["markdown"].startswith("# Knots\n")
    assert result["pageContent"]["itemMain"].startswith("Knots\n")
    assert result["httpResponseBody"]


def test_a_pdf_is_its_text(service: Service, target: Target) -> None:
    report = pdf([*lines(["A report on foxes"], size=20), *lines(["The quick fox jumps."], top=110)])
    url = target.page("/report", report, Content_Type="application/pdf")
    assert service.result(url=url, markdown=True, **HTTP)["markdown"] == "# A report on foxes\n\nThe quick fox jumps.\n"
    scan = target.page("/scan", of_images(), Content_Type="application/pdf")
    answer = service.extract(url=scan, markdown=True, **HTTP)
    assert "no text" in answer.json["detail"]


def test_an_empty_page_has_an_empty_text(service: Service, target: Target) -> None:
    url = target.page("/empty", b"<html></html>", Content_Type="text/html")
    assert service.result(url=url, markdown=True, **HTTP)["markdown"] == ""


@pytest.mark.parametrize(
    ("fields", "status", "place"),
    [
        ({"markdown": "yes"}, 400, "markdown: must be true or false"),
        (
            {"markdown": True, "markdownOptions": {"content": "text"}},
            400,
            "markdownOptions.content: must be one of main",
        ),
        ({"markdown": True, "markdownOptions": {"links": 1}}, 400, "markdownOptions.links: must be true or false"),
        ({"markdown": True, "markdownOptions": {"html": True}}, 400, "markdownOptions.html: is not a member"),
        ({"markdown": True, "httpResponseBody": True}, 422, "markdown: is extracted from a browser request"),
        ({"markdown": True, "browserHtml": True, **HTTP}, 422, "browserHtml: needs a browser request"),
        ({"markdown": True, "serp": True}, 422, "markdown: cannot be combined with serp"),
        ({"markdown": True, "fieldSources": True}, 422, "fieldSources: needs a kind"),
        (
            {
                "markdown": True,
                "markdownOptions": HTTP,
                "article": True,
                "articleOptions": {"extractFrom": "browserHtml"},
            },
            422,
            "markdownOptions.extractFrom: is httpResponseBody",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    service: Service, page: str, fields: dict[str, Any], status: int, place: str
) -> None:
    answer = service.extract(url=page, **fields)
    assert answer.status == status
    assert place in answer.json["detail"]
