from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import threading

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from tests.support.extraction_service import Service, head
from tests.support.handwritten_site import Call, Target

MIB = 1024 * 1024


@pytest.mark.parametrize("header", [None, "", "Basic", "Basic !!!", "Bearer abc", "Basic bm9jb2xvbg==", "Basic Og=="])
def test_missing_or_malformed_credentials_are_401_not_valid_with_a_challenge(
    service: Service, header: str | None
) -> None:
    answer = service.send(key=None, **({} if header is None else {"Authorization": header}))
    assert (answer.status, answer.json["type"]) == (401, "/auth/not-valid")
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_wrong_key_is_401_key_not_found_and_is_not_repeated(service: Service) -> None:
    answer = service.send(key="wrong-key")
    assert (answer.status, answer.json["type"]) == (401, "/auth/key-not-found")
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert b"wrong-key" not in answer.body


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_405_with_allow(service: Service, method: str) -> None:
    answer = service.send(method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["title"] == "Method Not Allowed"


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/extract/", "/v1/extracts", "/v1/a/b"])
def test_other_paths_under_v1_are_404_problems(service: Service, path: str) -> None:
    answer = service.send(path=path)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")
    assert "POST /v1/extract" in answer.json["detail"]


def test_invalid_json_names_the_place_of_the_fault(service: Service) -> None:
    answer = service.send(body=b'{"url": "https://example.com/",\n  "browserHtml" true}')
    assert (answer.status, answer.json["type"]) == (400, "/request/invalid-json")
    assert "line 2, column 17" in answer.json["detail"]


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[" * 100_000])
def test_any_bytes_that_are_not_json_are_invalid_json(service: Service, body: bytes) -> None:
    assert service.send(body=body).json["type"] == "/request/invalid-json"


def test_every_broken_rule_is_reported_at_once(service: Service) -> None:
    detail = service.problem(400, "/request/invalid", url="nope", htpResponseBody=True, tags={"a": 1}, jobId=3)
    for name in ("url", "htpResponseBody", "httpResponseBody", "tags.a", "jobId"):
        assert name in detail


def test_incompatible_fields_are_422(service: Service, target: Target) -> None:
    detail = service.problem(422, "/request/unprocessable", url=target.url(), httpResponseBody=True, browserHtml=True)
    assert "browserHtml" in detail


def test_a_body_over_5_mib_is_413(service: Service) -> None:
    body = json.dumps({"url": "https://example.com/", "httpResponseBody": True, "echoData": "x" * (5 * MIB)}).encode()
    answer = service.send(body=body)
    assert (answer.status, answer.json["type"]) == (413, "/request/too-large")


def test_a_body_over_5_mib_is_413_while_it_arrives(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as raw:
        raw.sendall(head("Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with contextlib.suppress(OSError):  # The server need not read what it has refused.
            for _ in range(100):
                raw.sendall(chunk)
        assert raw.recv(12) == b"HTTP/1.1 413"


def test_a_gzip_body_is_understood(service: Service, target: Target) -> None:
    url = target.page("/gzip", "ok")
    body = gzip.compress(json.dumps({"url": url, "httpResponseBody": True}).encode())
    assert service.send(body=body, Content_Encoding="gzip").status == 200


def test_a_gzip_body_that_inflates_over_the_limit_is_413(service: Service) -> None:
    bomb = gzip.compress(b" " * (20 * MIB))
    assert service.send(body=bomb, Content_Encoding="gzip").status == 413


@pytest.mark.parametrize(
    "body", [b"{}", gzip.compress(b"{}")[:-4], gzip.compress(b"{}") + b"x"], ids=["plain", "cut", "more behind it"]
)
def test_a_gzip_body_that_is_not_whole_is_400(service: Service, body: bytes) -> None:
    answer = service.send(body=body, Content_Encoding="gzip")
    assert (answer.status, answer.json["type"]) == (400, "/request/invalid")


def test_another_content_coding_is_415_and_says_which_are_known(service: Service) -> None:
    answer = service.send(body=b"{}", Content_Encoding="br")
    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip")


@pytest.mark.parametrize("data", [None, False, 0, "", [], {"a": [1, {"b": None}]}, "ü"])
def test_echo_data_and_job_id_come_back_unchanged(service: Service, target: Target, data: object) -> None:
    result = service.result(url=target.page("/echo", "ok"), httpResponseHeaders=True, echoData=data, jobId="1/2/3")
    assert (result["echoData"], result["jobId"]) == (data, "1/2/3")


def test_what_was_not_asked_for_is_not_in_the_answer(service: Service, target: Target) -> None:
    result = service.result(url=target.page("/lean", "ok"), httpResponseBody=True)
    assert set(result) == {"url", "statusCode", "httpResponseBody"}


@pytest.mark.parametrize("fields", [{"geolocation": "DE"}, {"ipType": "residential"}])
def test_an_address_that_the_server_cannot_send_from_is_422(service: Service, fields: dict[str, str]) -> None:
    detail = service.problem(422, "/request/unprocessable", url="https://example.com/", httpResponseBody=True, **fields)
    assert "no proxies" in detail


def test_an_unexpected_failure_is_500_with_a_number_and_without_internals(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    with Service(allow_hosts=(target.host,)) as running:
        running.run(running.service.fetcher.stop())  # as if a bug had closed it
        detail = running.problem(500, "/server/internal", url=target.url(), httpResponseBody=True)
    assert "not started" not in detail
    number = detail.rpartition(" ")[2].rstrip(".")
    assert any(number in record.getMessage() for record in caplog.records)


def test_a_request_that_takes_too_long_as_a_whole_is_500_timed_out(target: Target) -> None:
    async def never(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    url = target.handle("/never", never)
    with Service(allow_hosts=(target.host,), limits=ServiceLimits(request=0.5)) as running:
        running.problem(500, "/server/timed-out", url=url, httpResponseBody=True)


def test_a_body_that_does_not_arrive_is_408(target: Target) -> None:
    with (
        Service(limits=ServiceLimits(request_body=0.3)) as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as raw,
    ):
        raw.sendall(head("Content-Length: 100") + b"{")
        assert raw.recv(12) == b"HTTP/1.1 408"


def test_more_requests_than_the_server_takes_on_get_503_with_retry_after(target: Target) -> None:
    entered, release = threading.Event(), threading.Event()

    async def hold(call: Call, writer: asyncio.StreamWriter) -> None:
        entered.set()
        await asyncio.to_thread(release.wait, 60)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    url = target.handle("/hold", hold)
    with Service(allow_hosts=(target.host,), limits=ServiceLimits(requests=1)) as running:
        first = threading.Thread(target=running.result, kwargs={"url": url, "httpResponseBody": True})
        first.start()
        assert entered.wait(60)
        answer = running.extract(url=url, httpResponseBody=True)
        release.set()
        first.join()
    assert (answer.status, answer.json["type"]) == (503, "/limits/over-global-limit")
    assert int(answer.headers["retry-after"]) >= 0


def test_work_for_a_caller_who_left_is_given_up(target: Target) -> None:
    entered, left = threading.Event(), threading.Event()

    async def watched(call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        entered.set()
        try:
            while True:
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.02)
        finally:
            left.set()

    url = target.handle("/watched", watched)
    with Service(allow_hosts=(target.host,)) as running:
        body = json.dumps({"url": url, "httpResponseBody": True}).encode()
        with socket.create_connection(("127.0.0.1", running.port)) as raw:
            raw.sendall(head(f"Content-Length: {len(body)}") + body)
            assert entered.wait(60)
        assert left.wait(60)
