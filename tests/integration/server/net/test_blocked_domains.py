"""The operator's block list: 451, for what is asked for and for where it leads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.net import blocked_domains as blocking
from scrapy_ext.server.net.blocked_domains import BlockList, BlockListError
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Target

BODY = {"httpResponseBody": True}
LIST = "# none of these\n\nBlocked.Example  # nor what is below it\nbücher.example\n"


def write(path: Path, text: str | bytes) -> None:
    """Write a file so that its time differs from that of the last one, however coarse the clock is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "domains.txt"
    write(path, LIST)
    return path


@pytest.fixture
def service(target: Target, listed: Path) -> Iterator[Service]:
    names = ("blocked", "shop.blocked", "notblocked", "late")
    rules = tuple(f"{name}.example:80=127.0.0.1:{target.port}" for name in names)
    limits = ServiceLimits(block_list=0)
    with Service(allow_hosts=(target.host,), connect_to=rules, block_list=listed, limits=limits) as running:
        yield running


@pytest.mark.parametrize("host", ["blocked.example", "shop.blocked.example", "BLOCKED.example."])
def test_a_domain_of_the_list_and_those_below_it_are_451_with_blocked_domain(
    service: Service, target: Target, host: str
) -> None:
    calls = len(target.calls)
    answer = service.extract(url=f"http://{host}/", **BODY)
    assert (answer.status, answer.json["type"]) == (451, "/download/domain-forbidden")
    assert answer.json["title"] == "Domain Forbidden"
    assert answer.json["blockedDomain"] == "blocked.example"
    assert len(target.calls) == calls


def test_a_domain_that_only_ends_alike_is_extracted(service: Service, target: Target) -> None:
    target.page("/alike", "ok")
    assert service.result(url="http://notblocked.example/alike", **BODY)["statusCode"] == 200


def test_a_redirect_to_a_domain_of_the_list_is_451(service: Service, target: Target) -> None:
    url = target.page("/away", "", 302, Location="http://shop.blocked.example/here")
    service.problem(451, "/download/domain-forbidden", url=url, **BODY)
    assert not target.calls_of("/here")


def test_a_change_of_the_file_holds_for_connections_that_are_open(
    service: Service, target: Target, listed: Path
) -> None:
    target.page("/late", "ok")
    service.result(url="http://late.example/late", **BODY)
    write(listed, "late.example\n")
    service.problem(451, "/download/domain-forbidden", url="http://late.example/late", **BODY)
    service.result(url="http://blocked.example/late", **BODY)


@pytest.mark.parametrize("damage", [b"what is this?\n", b"\xff\xff\n", None])
def test_a_file_that_turns_bad_leaves_what_was_read_in_force(
    service: Service, listed: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    if damage is None:
        listed.unlink()
    else:
        write(listed, damage)
    for _ in range(2):
        service.problem(451, "/download/domain-forbidden", url="http://blocked.example/", **BODY)
    assert len([record for record in caplog.records if "stays in force" in record.getMessage()]) == 1


@pytest.mark.parametrize("line", ["https://example.com/", "*.example.com", "a b", "x" * 64, "-a.example"])
def test_a_line_that_is_no_domain_keeps_the_server_from_starting(listed: Path, line: str) -> None:
    write(listed, f"fine.example\n{line}\n")
    with pytest.raises(BlockListError, match=r"line 2: .* is not a domain\. Write one per line"):
        BlockList(listed)


def test_a_list_is_bounded(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "MAX_DOMAINS", 1)
    with pytest.raises(BlockListError, match="at most 1 domains"):
        BlockList(listed)
    monkeypatch.setattr(blocking, "MAX_BYTES", 10)
    with pytest.raises(BlockListError, match="at most 10 bytes"):
        BlockList(listed)


async def test_domains_in_other_scripts_are_known_by_their_ascii_form(listed: Path) -> None:
    assert await BlockList(listed).blocked("www.xn--bcher-kva.example") == "xn--bcher-kva.example"
