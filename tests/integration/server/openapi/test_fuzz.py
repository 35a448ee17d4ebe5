"""The real server against requests made from its own description, some that keep to it and some that do not.

The requests are the same in every run; ``--full`` makes more of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.openapi import from_dict

from scrapy_ext.server.http.openapi import document
from scrapy_ext.server.http.schemas import JSON_LINES
from scrapy_ext.server.routes import ROUTES
from tests.support.handwritten_site import Target
from tests.support.packed_projects import tar_of
from tests.support.servers import ForkedServer, RunningServer

pytestmark = pytest.mark.long

EXAMPLES, EXAMPLES_IN_FULL = 3, 60

#: Parts of paths that keep to the description name what is there, every other time.
_THERE = {"project": 1, "spider": 1, "job": 1, "index": 0, "type": "s"} | dict.fromkeys(
    ("field", "key", "collection", "frontier", "slot", "name"), "name"
)
_THERE |= {"item": 0, "comment": "1-1", "schedule": 1, "webhook": 1, "rule": 1, "state": "running", "version": "1.0"}
_THERE |= {"user": 1, "target": 1, "number": 1}

#: Without parameters and without a body.
_NOTHING_TO_BREAK = {"GET /system/ts", "GET /healthz", "GET /readyz", "GET /openapi.json", "GET /metrics"}

load_all_checks()
_CHECKS = CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"]
)
_SCHEMA = from_dict(document(ROUTES))
_OPERATIONS = {
    f"{operation.method.upper()} {operation.path}": operation
    for operation in (result.ok() for result in _SCHEMA.get_all_operations())
}


@schemathesis.serializer(JSON_LINES)
def _as_lines(_context: Any, value: Any) -> bytes:
    values = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(each).encode() + b"\n" for each in values)


@schemathesis.deserializer(JSON_LINES)
def _of_lines(_context: Any, response: Any) -> Any:
    return [json.loads(line) for line in response.content.splitlines() if line]


#: Fields of an extraction that need no browser and nothing but the page.
_OF_A_PAGE = {
    *("tags", "httpRequestMethod", "httpRequestBody", "httpRequestText", "customHttpRequestHeaders", "requestHeaders"),
    *("httpResponseBody", "httpResponseHeaders", "echoData", "jobId", "geolocation", "ipType", "requestCookies"),
}


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of a page that the server may load."""
    site = Target().start()
    site.page("/", "<h1>title</h1>")
    yield site.url("/")
    site.stop()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory, page: str) -> Iterator[RunningServer]:
    """A server of its own: what is sent deletes anything, and makes webhooks for any address."""
    data, hosts = tmp_path_factory.mktemp("fuzzed") / "data", [urlsplit(page).netloc]
    with ForkedServer(data, allow_hosts=hosts, options=["--no-runner"]) as server:
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture(scope="module", autouse=True)
def filled(fuzzed: RunningServer) -> None:
    """Something to be found at what :data:`_THERE` names."""

    def post(path: str, body: str | bytes) -> None:
        sent = body.encode() if isinstance(body, str) else body
        answer = requests.post(fuzzed.url + path, sent, auth=(fuzzed.platform_key, ""), timeout=60)
        assert answer.status_code in (200, 201), answer.text

    post("/jobq/1/push", '{"spider": "name", "state": "running", "tags": ["t"]}')
    post("/items/1/1/1", '{"name": "a", "nested": {"x": [1, null]}}\n{"name": "ü", "price": 1.5}\n')
    post("/requests/1/1/1", '{"time":1,"method":"GET","url":"u","status":200,"duration":1,"rs":1,"parent":null}')
    post("/logs/1/1/1", '{"time":1,"level":20,"message":"m"}')
    post("/collections/1/s/name", '{"_key":"name","value":"v"}\n{"_key":"other","n":1}\n')
    post("/hcf/1/name/s/name", '{"fp":"a","qdata":{"x":1},"p":1}\n{"fp":"b"}\n')
    post("/samples/1/1/1", "[1,2,null]\n[2]\n")
    post("/jobs/1/1/1/name", '"v"')
    post("/projects/1/settings/name", '{"x":1}')
    post("/activity/1", '{"event":"e"}')
    post("/api/comments/1/1/1/0", "text=t")
    post("/api/comments/1/1/1/0/name", "text=t")
    post("/api/projects/1/versions?version=1.0", tar_of({"scrapy.cfg": ""}))
    post("/api/projects/1/periodicjobs", '{"cron":"1 2 * * *","tasks":[{"name":"s"}]}')
    post("/api/projects/1/monitors", '{"checks":["items >= 1"]}')
    post("/api/projects/1/alerts", '{"name":"a","url":"json://hooks.example/"}')
    post("/api/projects/1/webhooks", '{"url":"http://hooks.example/","events":["*"]}')


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


def _cases() -> Iterator[tuple[str, GenerationMode]]:
    """Operations in an order that has DELETE last."""
    for name in sorted(_OPERATIONS, key=lambda name: (name.startswith("DELETE"), name)):
        yield name, GenerationMode.POSITIVE
        if name not in _NOTHING_TO_BREAK:
            yield name, GenerationMode.NEGATIVE


@pytest.mark.parametrize(("name", "mode"), list(_cases()))
def test_every_answer_is_as_described(
    fuzzed: RunningServer,
    page: str,
    session: requests.Session,
    pytestconfig: pytest.Config,
    name: str,
    mode: GenerationMode,
) -> None:
    number = 0
    key = fuzzed.extract_key if "/v1/" in name else fuzzed.platform_key

    @settings(
        max_examples=EXAMPLES_IN_FULL if pytestconfig.getoption("--full") else EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=_OPERATIONS[name].as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case) -> None:
        nonlocal number
        number += 1
        if mode is GenerationMode.POSITIVE and name == "POST /v1/extract":
            # Pages in a browser: tests/acceptance/server/extraction/browser. Here the page is one of these tests' own.
            asked = {field: value for field, value in case.body.items() if field in _OF_A_PAGE}
            case.body = {"httpResponseBody": True, **asked, "url": page}
        elif mode is GenerationMode.POSITIVE and number % 2:
            case.path_parameters.update({part: _THERE[part] for part in case.path_parameters})
        case.call_and_validate(
            base_url=fuzzed.url, session=session, checks=_CHECKS, auth=(key, ""), timeout=60, allow_redirects=False
        )

    send()
