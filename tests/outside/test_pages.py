"""Pages of public reports give the right values."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.outside.cases import Page, cases_of, faults_of, parameters
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

CASES: list[Page] = cases_of("pages")
BY_HTTP = [case for case in CASES if not case.browser]
BY_BROWSER = [case for case in CASES if case.browser]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target().start()
    yield target
    target.stop()


@pytest.fixture(scope="module")
def service(target: Target) -> Iterator[Service]:
    with Service(allow_hosts=[target.host]) as service:
        yield service


@pytest.mark.parametrize("case", parameters(BY_HTTP))
def test_page_by_http(case: Page, service: Service, target: Target) -> None:
    _try(case, service, target)


@pytest.mark.parametrize("case", parameters(BY_BROWSER))
@pytest.mark.long(keep=10)
def test_page_by_browser(case: Page, service: Service, target: Target) -> None:
    _try(case, service, target)


def _try(case: Page, service: Service, target: Target) -> None:
    sent = {"Content-Type": case.type} if case.type else {}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**sent, **case.headers}.items())
    head = f"HTTP/1.1 {case.status} X\r\n{lines}Content-Length: {len(case.content)}\r\n\r\n"
    target.raw(case.path.partition("?")[0], head.encode() + case.content)
    answer = service.extract(url=target.url(case.path), **case.ask)
    result: dict[str, Any] = answer.json
    assert answer.status == case.answer, result
    assert case.problem in result.get("type", ""), result
    if case.body is not None:
        assert base64.b64decode(result["httpResponseBody"]).decode() == case.body
    assert list(faults_of(case, result)) == []
