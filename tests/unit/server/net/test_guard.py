from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter

import pytest

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.server.net.guard import Endpoint, Guard, GuardRuleError, is_public
from tests.support.eventually import eventually_async

PUBLIC = "93.184.215.14"


def guard_of(*answers: list[str] | Exception, **options: object) -> Guard:
    """A guard whose resolver gives these answers, one a lookup, the last one for ever."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Guard(resolve=resolve, **{"cache_time": 0.0, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["8.8.8.8", PUBLIC, "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.100.100.200", "192.0.0.192", "168.63.129.16", "198.18.0.1", "203.0.113.5", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "fd00:ec2::254", "ff0e::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::1",
        "2001:0:808:808:0:0:80ff:fffe", "2606:4700::5efe:127.0.0.1", "2001:db8::1", "100::1", "not an address",
        # The edges of ranges, other spellings, and what else is somebody's own network.
        "0.1.2.3", "10.255.255.255", "100.64.0.1", "100.127.255.255", "172.31.255.255", "192.0.2.1", "192.88.99.1",
        "198.19.255.255", "198.51.100.1", "239.255.255.255", "240.0.0.1", "fe80::1%25eth0", "fe80::a9fe:a9fe%1",
        "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::ffff:0:127.0.0.1", "0:0:0:0:0:ffff:7f00:1", "::7f00:1",
        "64:ff9b::10.0.0.1", "64:ff9b::c0a8:1", "64:ff9b:1::1", "2002:c0a8:101::1", "2002:a00:1::", "fc00::1",
        "fdff::1", "febf::1", "feff::1", "ff02::1", "2001::1",
        "2001:2::1", "2001:10::1", "2001:20::1", "3fff::1", "5f00::1",
        "fd20:ce::254", "fd00:42::42", "1::1", "4000::1", "", " ", "127.0.0.1 ", "8.8.8.8%eth0", "08.8.8.8",
    ],
)  # fmt: skip
def test_no_private_or_reserved_address_is_public_in_any_spelling(address: str) -> None:
    assert not is_public(address)


async def test_a_host_is_given_the_addresses_that_were_checked() -> None:
    assert await guard_of([PUBLIC, "2606:4700::1111"]).endpoints("example.com", 443) == [
        Endpoint(PUBLIC, 443),
        Endpoint("2606:4700::1111", 443),
    ]


async def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    with pytest.raises(ExtractionError, match=r"--allow-host example.com:80") as caught:
        await guard_of([PUBLIC, "10.0.0.1"]).endpoints("example.com", 80)
    assert caught.value.problem.status == 421
    assert "10.0.0.1" not in str(caught.value)


async def test_a_name_that_changes_to_a_private_address_is_refused_at_the_next_connection() -> None:
    guard = guard_of([PUBLIC], ["127.0.0.1"])
    assert await guard.endpoints("rebind.example", 80)
    with pytest.raises(ExtractionError, match="not public"):
        await guard.endpoints("rebind.example", 80)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost."],
)
async def test_loopback_is_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        await Guard().endpoints(host, 80)
    assert caught.value.problem.status == 421


@pytest.mark.parametrize("port", [22, 25, 3306, 5432, 6379, 9200, 11211])
async def test_ports_of_other_services_are_refused_with_the_remedy(port: int) -> None:
    with pytest.raises(ExtractionError, match=f"--allow-host example.com:{port}"):
        await guard_of([PUBLIC]).endpoints("example.com", port)


async def test_an_allowed_host_is_allowed_on_its_port_only() -> None:
    guard = guard_of(["127.0.0.1"], allow_hosts=["Intranet.Example:9999"])
    assert await guard.endpoints("intranet.example", 9999) == [Endpoint("127.0.0.1", 9999)]
    with pytest.raises(ExtractionError):
        await guard.endpoints("intranet.example", 80)


async def test_a_connect_rule_replaces_the_lookup_and_the_most_specific_one_wins() -> None:
    guard = guard_of(OSError(), connect_to=["*:80=127.0.0.1:8001", "shop.example:80=127.0.0.1:8002"])
    assert await guard.endpoints("any.example", 80) == [Endpoint("127.0.0.1", 8001)]
    assert await guard.endpoints("shop.example", 80) == [Endpoint("127.0.0.1", 8002)]


async def test_a_host_that_does_not_exist_is_unreachable_and_a_failing_resolver_is_temporary() -> None:
    with pytest.raises(ExtractionError, match="does not resolve") as missing:
        await guard_of(socket.gaierror(socket.EAI_NONAME, "x")).endpoints("nope.example", 80)
    with pytest.raises(ExtractionError, match="for now") as failing:
        await guard_of(socket.gaierror(socket.EAI_AGAIN, "x")).endpoints("later.example", 80)
    assert (missing.value.problem.status, failing.value.problem.status) == (421, 520)


async def test_a_lookup_is_reused_for_a_short_time() -> None:
    guard = guard_of([PUBLIC], OSError("asked again"), cache_time=60.0)
    assert await guard.endpoints("example.com", 80) == await guard.endpoints("EXAMPLE.com.", 80)


@pytest.mark.parametrize("rule", ["localhost", "localhost:", ":80", "localhost:http", "localhost:70000"])
def test_an_allowed_host_that_cannot_be_read_says_what_to_write(rule: str) -> None:
    with pytest.raises(GuardRuleError, match="must be HOST:PORT"):
        Guard([rule])


@pytest.mark.parametrize("rule", ["a:80", "a:80=", "a=b:80", "a:80=b"])
def test_a_connect_rule_that_cannot_be_read_says_what_to_write(rule: str) -> None:
    with pytest.raises(GuardRuleError, match=r"HOST:PORT"):
        Guard(connect_to=[rule])


async def test_a_host_is_the_same_in_any_case_and_with_a_final_dot() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return [PUBLIC]

    guard = Guard(resolve=resolve, cache_time=0)
    for host in ("EXAMPLE.com.", "example.com"):
        await guard.endpoints(host, 80)
    assert asked == ["example.com"] * 2


@pytest.mark.parametrize("port", [0, 21, 23, 53, 110, 143, 445, 587, 993, 2049, 2375, 3389, 5900, 6667, 10250, 27017])
async def test_no_port_but_those_of_web_sites_is_open(port: int) -> None:
    with pytest.raises(ExtractionError, match="Port"):
        await guard_of([PUBLIC]).endpoints("example.com", port)


async def test_names_whose_servers_are_silent_do_not_keep_others_from_being_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    asked: Counter[str] = Counter()

    def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked[host] += 1
        if host.startswith("silent"):
            release.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (PUBLIC, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    guard = Guard(cache_time=0)
    silent = [asyncio.create_task(guard.endpoints(f"silent-{number % 30}.example", 443)) for number in range(90)]
    try:
        await eventually_async(lambda: len(asked) >= 30)
        async with timeout_after(60):
            assert await guard.endpoints("answers.example", 443) == [Endpoint(PUBLIC, 443)]
        # One who leaves does not end the lookup for the two others who wait for the same name.
        silent.pop().cancel()
    finally:
        release.set()
    assert await asyncio.gather(*silent) == [[Endpoint(PUBLIC, 443)]] * 89
    assert set(asked.values()) == {1}
