"""hcf-backend from PyPI, unchanged: frontera's backend on the platform's frontier, and its commands.

Its commands name the hosted platform in a table of addresses; that table is the one thing that is pointed elsewhere.
"""

from __future__ import annotations

import sys

import pytest
from frontera.core.manager import FrontierManager
from frontera.core.models import Request
from frontera.settings import Settings
from hcf_backend.manager import HCFManager
from hcf_backend.utils import assign_slotno
from hcf_backend.utils.crawlmanager import HCFCrawlManager
from hcf_backend.utils.hcfpal import HCFPal, HCFPalScript
from sh_scrapy.writer import _PipeWriter

HOSTED = "https://storage.scrapinghub.com"


class Stats:
    """Stats that the scheduler of a crawl gives to frontera's backends."""

    def __init__(self):
        self.values = {}

    def inc_value(self, name, count=1):
        self.values[name] = self.values.get(name, 0) + count

    def set_value(self, name, value):
        self.values[name] = value


@pytest.fixture(autouse=True)
def environment(monkeypatch, server, project_id):
    """Environment that the platform sets for a job, and a user for a script."""
    monkeypatch.setenv("SH_APIKEY", server.platform_key)
    monkeypatch.setenv("PROJECT_ID", str(project_id))
    monkeypatch.setenv("SHUB_APIURL", f"{server.url}/api/")
    for name in ("SHUB_STORAGE", "SHUB_JOBQ"):
        monkeypatch.setenv(name, f"{server.url}/")
    addresses = {name: url.replace(HOSTED, server.url) for name, url in HCFPal.HCF_API_URLS.items()}
    monkeypatch.setattr(HCFPal, "HCF_API_URLS", addresses)


@pytest.fixture
def manager():
    manager = HCFManager("crawl", batch_size=50)
    yield manager
    manager.close()


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs ``hcfpal.py`` with arguments; returns what it prints."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hcfpal.py", *arguments])
        HCFPalScript().run()
        return capsys.readouterr().out

    return run


def fill(manager, **slots):
    for slot, number in slots.items():
        for n in range(number):
            manager.add_request(slot, {"fp": f"{slot}/{n}", "qdata": {"n": n}})
    manager.flush()


def read(manager, slot):
    return [fp for batch in manager.read(slot) for fp, _ in batch["requests"]]


def frontera(**settings):
    """Frontera with the backend, as its scheduler makes it."""
    given = Settings(attributes={"BACKEND": "hcf_backend.HCFBackend", "STATS_MANAGER": Stats(), **settings})
    return FrontierManager.from_settings(given)


def test_the_manager_adds_in_batches_reads_and_deletes(manager):
    flushed = [manager.add_request("0", {"fp": f"/{n}", "qdata": {"n": n}}) for n in range(120)]
    assert [count for count in flushed if count] == [50, 50]
    assert manager.flush() == 20
    assert (manager.new_links_count(), manager.get_number_of_links("0")) == (120, 120)
    manager.add_request("0", {"fp": "/0"})
    manager.flush("0")
    assert manager.new_links_count() == 120
    (first,) = manager.read("0", mincount=100)
    assert first["requests"] == [[f"/{n}", {"n": n}] for n in range(100)]
    assert list(manager.read("0", mincount=1)) == [first]
    manager.delete("0", [first["id"]])
    assert read(manager, "0") == [f"/{n}" for n in range(100, 120)]
    manager.delete_slot("0")
    assert read(manager, "0") == []


def test_what_a_producer_queues_a_consumer_crawls(project_id):
    """Both ends of the backend, as two crawls use them: links are spread over slots, and read slot by slot."""
    urls = [f"http://example.com/{n}" for n in range(300)]
    producer = frontera(
        HCF_PRODUCER_FRONTIER="crawl", HCF_PRODUCER_SLOT_PREFIX="s", HCF_PRODUCER_NUMBER_OF_SLOTS=2, TEST_MODE=False
    )
    page = Request(urls[0], meta={b"frontier_fingerprint": "start"})
    links = [Request(url, headers={b"A": b"b"}, meta={b"frontier_fingerprint": url, b"k": "v"}) for url in urls]
    producer.backend.links_extracted(page, links)
    producer.stop()
    assert producer.settings.get("STATS_MANAGER").values["hcf/producer/crawl/new_links"] == 300

    crawled = {}
    for number in (0, 1):
        consumer = frontera(HCF_CONSUMER_FRONTIER="crawl", HCF_CONSUMER_SLOT=f"s{number}", HCF_CONSUMER_MAX_BATCHES=5)
        found = []
        while requests := consumer.get_next_requests(100):
            found += requests
        consumer.stop()
        assert consumer.backend.finished()
        crawled[f"s{number}"] = [request.url for request in found]
        assert all(request.headers == {b"A": b"b"} for request in found)
    expected = {f"s{number}": [url for url in urls if assign_slotno(url, 2) == str(number)] for number in (0, 1)}
    assert crawled == expected
    assert HCFPal(project_id).get_slots_count("crawl", "s")["total"] == 0


def test_a_consumer_that_deletes_when_it_stops_sees_its_batches_again(manager):
    for n in range(150):
        qdata = {"url": f"http://a/{n}", "request": {"method": "GET", "headers": {}, "cookies": {}, "meta": {}}}
        manager.add_request("0", {"fp": f"/{n}", "qdata": qdata})
    manager.flush()
    settings = {"HCF_CONSUMER_FRONTIER": "crawl", "HCF_CONSUMER_SLOT": "0"}
    killed = frontera(**settings, HCF_CONSUMER_DELETE_BATCHES_ON_STOP=True)
    assert len(killed.get_next_requests(100)) == 100
    again = frontera(**settings, HCF_CONSUMER_DELETE_BATCHES_ON_STOP=True)
    assert len(again.get_next_requests(150)) == 150
    again.stop()
    assert read(manager, "0") == []


def test_hcfpal_lists_counts_and_dumps(manager, command):
    fill(manager, s0=130, s1=2, other=1)
    assert "crawl" in command("list").splitlines()[-1]
    assert [line.strip() for line in command("list", "crawl").splitlines()[1:]] == ["other", "s0", "s1"]
    assert "{'crawl': ['other', 's0', 's1']}" in command("list", "--all")
    counted = command("count", "crawl", "--prefix", "s")
    for shown in ("s0: 130", "s1: 2", "Total count: 132", "Not-empty slots: 2"):
        assert shown in counted
    assert "Total count: 130" in command("count", "crawl", "--prefix", "s", "--num-slots", "1")
    dumped = command("dump", "crawl", "s0", "--num-requests", "105").splitlines()
    assert sum(line.startswith("Batch id:") for line in dumped) == 2
    assert sum(line.startswith("['s0/") for line in dumped) == 105


def test_hcfpal_moves_and_deletes(manager, command, project_id):
    fill(manager, s0=130, s1=20)
    assert command("move", "crawl", "s", "t", "3", "--uniform").count("Moved batch") == 3
    counted = HCFPal(project_id).get_slots_count("crawl", "")
    assert counted["slots"] == {"t0": 50, "t1": 50, "t2": 50}
    batch = next(iter(manager.read("t0")))
    command("move_batch", "crawl", "t0", batch["id"], "u")
    assert read(manager, "u") == [fp for fp, _ in batch["requests"]]
    command("delete", "crawl", "t")
    assert HCFPal(project_id).get_slots("crawl") == ["u"]


def test_the_crawl_manager_schedules_a_job_for_each_slot(client, manager, project_id, monkeypatch, tmp_path):
    fill(manager, s0=3, s1=2)
    pipe = _PipeWriter(str(tmp_path / "pipe"))  # where a job of the platform leaves its stats
    pipe.open()
    monkeypatch.setattr("sh_scrapy.stats.pipe_writer", pipe)
    arguments = ["--flow-id", "f1", "m", "consumer", "crawl", "s", "--max-running-jobs", "2"]
    for expected in (2, 2):  # the second time both slots have their job
        monkeypatch.setattr(sys, "argv", ["crawlmanager.py", *arguments])
        HCFCrawlManager().run()
        jobs = client.get_project(project_id).jobs.list(state="pending", meta=["spider_args", "tags"])
        assert len(jobs) == expected
    assert sorted(job["spider_args"]["frontera_settings_json"] for job in jobs) == [
        f'{{"HCF_CONSUMER_SLOT": "{slot}", "HCF_CONSUMER_FRONTIER": "crawl"}}' for slot in ("s0", "s1")
    ]
    assert all("FLOW_ID=f1" in job["tags"] for job in jobs)
    pipe.close()
