"""One domain at a time: how many requests it gets at once, how far apart, and that others do not wait for it."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from scrapy_ext.api.extraction.problems import ExtractionError
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.request_limits import DomainLimits
from tests.support.eventually import TIMEOUT, eventually
from tests.support.extraction_service import Service
from tests.support.handwritten_site import Call, Target

BODY = {"httpResponseBody": True}


class Gate:
    """Page that answers on demand; ``most`` is the highest number of requests at once."""

    def __init__(self, target: Target, path: str) -> None:
        self._open = threading.Event()
        self.now = self.most = 0
        target.handle(path, self._answer)

    def open(self) -> None:
        self._open.set()

    async def _answer(self, call: Call, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        while not self._open.is_set():
            await asyncio.sleep(0.01)
        self.now -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def wait_until_inside(self, number: int) -> None:
        eventually(lambda: self.now >= number)


def test_a_domain_that_hangs_holds_its_own_places_and_no_others(target: Target) -> None:
    gate = Gate(target, "/hangs")
    target.page("/quick", "ok")
    rules = tuple(f"{name}.example:80=127.0.0.1:{target.port}" for name in ("hanging", "quick"))
    limits = ServiceLimits(domain_waiting=2, requests=5)
    with Service(connect_to=rules, limits=limits, domain_requests=2) as running, ThreadPoolExecutor(4) as pool:
        try:
            held = [pool.submit(running.extract, url="http://hanging.example/hangs", **BODY) for _ in range(2)]
            gate.wait_until_inside(2)
            held += [pool.submit(running.extract, url="http://HANGING.example./hangs", **BODY) for _ in range(2)]
            eventually(lambda: running.service._domains.waiting >= 2)
            # Two are at work and two wait: one more gets 429, and the fifth permit is free for another site.
            answer = running.extract(url="http://hanging.example/hangs", **BODY)
            assert (answer.status, answer.json["type"]) == (429, "/limits/over-domain-limit")
            assert int(answer.headers["retry-after"]) > 0
            assert running.result(url="http://quick.example/quick", **BODY)["statusCode"] == 200
        finally:
            gate.open()
        assert [each.result(TIMEOUT).status for each in held] == [200] * 4
        assert gate.most == 2
        assert len(running.service._domains) == 0


async def test_requests_of_a_domain_start_apart_and_those_of_others_do_not_wait() -> None:
    politeness = DomainLimits(ServiceLimits(domain_patience=60), delay=0.2)
    loop = asyncio.get_running_loop()
    starts: list[tuple[str, float]] = []

    async def request(host: str) -> None:
        async with politeness.permit(host):
            starts.append((host, loop.time()))

    began = loop.time()
    await asyncio.gather(*(request(host) for host in ("a", "a", "a", "b")))
    times = [at - began for host, at in starts if host == "a"]
    assert times[1] - times[0] >= 0.19
    assert times[2] - times[1] >= 0.19
    assert [host for host, _ in starts].index("b") < 2


async def test_a_start_that_is_late_delays_those_behind_it() -> None:
    politeness = DomainLimits(ServiceLimits(domain_patience=60), delay=0.2)
    starts: list[float] = []

    async def request() -> None:
        async with politeness.permit("a"):
            starts.append(asyncio.get_running_loop().time())

    async def other_work() -> None:
        await asyncio.sleep(0.1)
        time.sleep(0.35)  # the second start is due in it, and the third soon after it

    await asyncio.gather(*(request() for _ in range(3)), other_work())
    assert min(after - before for before, after in itertools.pairwise(starts)) >= 0.19


async def test_a_wait_that_would_be_too_long_is_told_with_its_length() -> None:
    politeness = DomainLimits(ServiceLimits(domain_patience=5), delay=60)
    async with politeness.permit("a"):
        pass
    with pytest.raises(ExtractionError) as refused:
        async with politeness.permit("a"):
            pass
    assert refused.value.problem.type == "/limits/over-domain-limit"
    assert 30 <= (refused.value.retry_after or 0) <= 60


async def test_a_place_is_given_back_whatever_happens() -> None:
    politeness = DomainLimits(ServiceLimits(domain_patience=0.01), requests=1)
    async with politeness.permit("a"):
        with pytest.raises(ExtractionError, match="too busy"):
            await politeness.permit("a").__aenter__()
    with pytest.raises(ZeroDivisionError):
        async with politeness.permit("a"):
            raise ZeroDivisionError
    async with politeness.permit("a"):
        assert len(politeness) == 1
    assert len(politeness) == 0
