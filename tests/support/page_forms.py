"""Pages as a browser without scripts uses them: what they show, and sending their forms."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import lxml.html

from tests.support.http import Answer, Http

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}"


def page(answer: Answer, status: int = 200) -> Any:
    """The document of an answer, of which nothing runs that did not come with the server."""
    assert answer.status == status, answer.text[:2000]
    document = lxml.html.document_fromstring(answer.text)
    assert document.xpath("//script[not(@src)] | //script[not(starts-with(@src, '/ui/static/'))]") == []
    assert document.xpath("//*[@onerror or @onclick or @onload or @style] | //img[@src='x']") == []
    assert not [link for link in document.xpath("//@href") if link.lower().startswith("javascript")]
    return document


def texts(document: Any, path: str) -> list[str]:
    """The texts of elements, their white space as it is shown."""
    return [" ".join(element.text_content().split()) for element in document.xpath(path)]


def rows(document: Any) -> list[list[str]]:
    """The cells of the tables' bodies."""
    return [texts(row, "./td") for row in document.xpath("//table/tbody/tr")]


async def submit(http: Http, path: str, fields: dict[str, Any], *, shown_at: str | None = None) -> Answer:
    """Send a form with the token that the page gave it, and follow to the page that it leads to."""
    document = page(await http.get(shown_at or path))
    token = document.xpath("//input[@name='token']/@value")[0]
    body = urlencode({"token": token, **fields}, doseq=True).encode()
    return await http.post(path, body, Content_Type="application/x-www-form-urlencoded")


def done(answer: Answer) -> str:
    """Message of a page about the form that led to it."""
    return " ".join(texts(page(answer), "//*[@role='status']"))
