"""Items, as the clients write and read them."""

from __future__ import annotations

import secrets

import pytest
from scrapinghub import HubstorageClient
from scrapinghub.client.exceptions import BadRequest, NotFound, ValueTooLarge
from scrapinghub.hubstorage.resourcetype import ItemsResourceType

from tests.acceptance.conformance.unreliable import CutConnection

ITEMS = [{"n": n, "name": f"item {n} \u00e9", "price": n / 4, "tags": ["a", None, {"b": True}]} for n in range(25)]


@pytest.fixture
def job(client, project_id):
    return client.get_job(f"{project_id}/1/1")


def written(job, items=ITEMS):
    for item in items:
        job.items.write(item)
    job.items.flush()
    return job


def test_what_is_written_is_read(job):
    written(job)
    assert list(job.items.iter()) == ITEMS
    assert job.items.list(count=3) == ITEMS[:3]
    assert [item for part in job.items.list_iter(chunksize=10) for item in part] == ITEMS


def test_the_number_of_an_item_is_returned_and_finds_it(job):
    assert [job.items.write(item) for item in ITEMS[:2]] == [0, 1]
    job.items.flush()
    assert job.items.get(1) == ITEMS[1]
    with pytest.raises(NotFound):
        job.items.get(2)


def test_reading_starts_at_the_given_place(job):
    written(job)
    assert job.items.list(offset=20) == ITEMS[20:]
    assert job.items.list(start=f"{job.key}/20", count=2) == ITEMS[20:22]
    assert job.items.list(startafter=f"{job.key}/20") == ITEMS[21:]
    assert job.items.list(index=[3, 5]) == [ITEMS[3], ITEMS[5]]
    assert list(job.items.list_iter(chunksize=10, start=5, count=15)) == [
        ITEMS[5:15],
        ITEMS[15:20],
    ]


def test_keys_and_times_come_when_asked_for(job, client):
    written(job)
    first = job.items.list(meta=["_key", "_ts"], count=1)[0]
    assert first["_key"] == f"{job.key}/0"
    assert abs(first["_ts"] - client._hsclient.server_timestamp()) < 60_000


def test_filters(job):
    written(job)
    assert job.items.list(filter=[("n", ">=", [20]), ["n", "<", [23]]]) == ITEMS[20:23]
    assert job.items.list(filter='["name","contains",["item 7 "]]') == ITEMS[7:8]
    with pytest.raises(BadRequest, match="one of the operators"):
        job.items.list(filter=[("n", "~", [1])])


def test_stats(job):
    written(job, [{"x": n} for n in range(111)])
    stats = job.items.stats()
    assert stats == {"counts": {"x": 111}, "totals": {"input_bytes": 444, "input_values": 111}}


def test_a_project_and_a_spider_are_read_across_jobs(hubstorage, project_id):
    for spider, number in ((1, 1), (1, 2), (2, 1)):
        items = hubstorage.get_job(f"{project_id}/{spider}/{number}").items
        items.write({"job": f"{spider}/{number}"})
        items.flush()
    project = hubstorage.get_project(project_id)
    assert [item["job"] for item in project.items.list()] == ["1/1", "1/2", "2/1"]
    assert [item["job"] for item in project.items.list(1)] == ["1/1", "1/2"]


def test_an_item_that_is_too_large_is_refused(job):
    with pytest.raises(ValueTooLarge):
        job.items.write({"text": "x" * 2**20})


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_the_uploader_sends_batches_that_follow_each_other(hubstorage, project_id, monkeypatch, coding):
    monkeypatch.setattr(ItemsResourceType, "batch_content_encoding", coding)
    job = hubstorage.get_job(f"{project_id}/1/1")
    items = [{"n": n} for n in range(3500)]
    for item in items:
        job.items.write(item)
    job.items.close()
    assert list(job.items.iter_values()) == [{"n": n, "_key": f"{job.key}/{n}"} for n in range(3500)]
    assert job.items.stats()["totals"]["input_values"] == 3500


def test_whole_numbers_of_64_bits_are_kept(job):
    numbers = [{"n": 2**63 - 1}, {"n": 2**64 - 1}, {"n": -(2**63)}]
    assert list(written(job, numbers).items.iter()) == numbers


def test_a_reader_goes_on_behind_what_it_has_when_its_connection_breaks(server, project_id):
    with CutConnection(server.url, after=200_000) as cut:
        whole = HubstorageClient(server.platform_key, endpoint=f"{server.url}/", use_msgpack=False)
        job = whole.get_job(f"{project_id}/1/1")
        # Text that compression does not shorten much: what is cut is a gzip stream.
        items = [{"n": n, "text": secrets.token_hex(150)} for n in range(3000)]
        for item in items:
            job.items.write(item)
        job.items.close()
        whole.close()
        reader = HubstorageClient(server.platform_key, endpoint=f"{cut.url}/", use_msgpack=False, max_retries=0)
        found = list(reader.get_job(job.key).items.iter_values())
        reader.close()
        assert cut.cuts == 1
    assert [item["n"] for item in found] == list(range(3000))


def test_a_batch_whose_answer_was_lost_is_stored_once(server, project_id):
    with CutConnection(server.url, after=0, answers_to="POST") as cut:
        client = HubstorageClient(server.platform_key, endpoint=f"{cut.url}/", max_retries=0)
        job = client.get_job(f"{project_id}/1/1")
        for n in range(100):
            job.items.write({"n": n})
        job.items.close()
        assert cut.cuts == 1
        assert [item["n"] for item in job.items.iter_values()] == list(range(100))
        client.close()


def test_a_job_token_writes_its_job_and_no_other(server, hubstorage, project_id):
    job = hubstorage.push_job(project_id, "spider", state="running")
    token = job.metadata.authtoken()
    writer = HubstorageClient("no key", endpoint=f"{server.url}/", jobq_endpoint=f"{server.url}/")
    own = writer.get_job(job.key, jobauth=(job.key, token))
    own.items.write({"a": 1})
    own.logs.info("message")
    own.samples.write([1, 2])
    for resource in (own.items, own.logs, own.samples):
        resource.flush()
    writer.close()
    assert [item["a"] for item in job.items.iter_values()] == [1]
    assert [log["message"] for log in job.logs.iter_values()] == ["message"]
    assert list(job.samples.list()) == [[1, 2]]
