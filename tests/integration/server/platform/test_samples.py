"""Samples: measurements of running jobs, over HTTP."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.http import Http

SAMPLES = [[1000, 1, 2.5], [2000, 3, 4], [3000, 5, 6]]


@pytest.fixture
async def job(http: Http, project: int) -> str:
    key = f"{project}/1/1"
    assert (await http.post(f"/samples/{key}?start=0", SAMPLES)).status == 200
    return key


async def test_samples_come_back_as_they_were_sent(http: Http, job: str, project: int) -> None:
    answer = await http.get(f"/samples/{job}")
    assert answer.headers["Content-Type"] == "application/x-jsonlines; charset=UTF-8"
    assert answer.lines == SAMPLES
    assert (await http.get(f"/samples/{job}/1")).lines == [SAMPLES[1]]
    assert (await http.get(f"/samples/{project}")).lines == SAMPLES
    assert (await http.get(f"/samples/{job}?count=1&startafter={job}/0")).lines == [SAMPLES[1]]
    packed = await http.get(f"/samples/{job}", Accept="application/x-msgpack")
    assert packed.headers["Content-Type"] == "application/x-msgpack; charset=UTF-8"
    assert packed.body == b"".join(map(msgspec.msgpack.encode, SAMPLES))


async def test_samples_are_chosen_by_time(http: Http, job: str) -> None:
    assert (await http.get(f"/samples/{job}?startts=2000")).lines == SAMPLES[1:]
    assert (await http.get(f"/samples/{job}?startts=1001&endts=3000")).lines == SAMPLES[1:2]
    assert (await http.get(f"/samples/{job}?startts=1001&count=1")).lines == SAMPLES[1:2]


async def test_samples_sent_again_are_stored_once(http: Http, job: str) -> None:
    await http.post(f"/samples/{job}?start=0", SAMPLES)
    assert (await http.get(f"/samples/{job}")).lines == SAMPLES


@pytest.mark.parametrize("body", [b"{}", b"[1]\n{}", b"[1", b"[1]\n[", b"1", b"[1][2]\n[", b'[1,\n2]\n["x"]'])
async def test_only_arrays_are_samples(http: Http, project: int, body: bytes) -> None:
    answer = await http.post(f"/samples/{project}/1/1", body)
    assert answer.status == 400
    assert answer.text.startswith("Error parsing data, line ")
    assert (await http.get(f"/samples/{project}/1/1")).body == b""


@pytest.mark.parametrize(
    ("rest", "status"), [("/stats", 404), ("/0/a", 404), ("?meta=_key", 400), ("?nodata=1", 400), ("?filter=1", 400)]
)
async def test_samples_have_no_stats_fields_or_meta(http: Http, job: str, rest: str, status: int) -> None:
    assert (await http.get(f"/samples/{job}{rest}")).status == status
