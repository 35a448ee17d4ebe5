"""Requests of one host and priority follow each other as in Scrapy, or as FRONTIER_ORDER says."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.settings import Settings

from scrapy_ext.crawl.frontier.hosts import HostQueue, Order, warn_of_own_queues
from scrapy_ext.settings import SettingError

START = {"is_start_request": True}


def served(order, requests):
    queue = HostQueue(
        lambda host, out: True, newest_first=order.newest_first, last_newest_first=order.start_newest_first
    )
    for request in requests:
        queue.push(request.priority, "a.example", request, last=order.is_last(request))
    return [queue.pop()[1].url[-1] for _ in requests]


def requests():
    made = [("1", START), ("2", START), ("a", {}), ("b", {}), ("3", START), ("c", {})]
    return [Request(f"http://a.example/{name}", meta=dict(meta)) for name, meta in made]


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({}, "cba123"),
        ({"FRONTIER_ORDER": "depth-first"}, "cba123"),
        ({"FRONTIER_ORDER": "breadth-first"}, "12ab3c"),
        ({"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}, "abc123"),
        ({"SCHEDULER_START_MEMORY_QUEUE": None}, "c3ba21"),
        ({"SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.LifoMemoryQueue"}, "cba321"),
        ({"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue", "FRONTIER_ORDER": "depth-first"}, "cba123"),
    ],
    ids=["default", "depth", "breadth", "fifo queue", "no start queue", "lifo start queue", "both"],
)
def test_the_order_is_that_of_the_settings(settings, order):
    assert "".join(served(Order.of(Settings(settings)), requests())) == order


def test_another_order_is_refused():
    with pytest.raises(SettingError, match="FRONTIER_ORDER must be 'depth-first' or 'breadth-first', got 'random'"):
        Order.of(Settings({"FRONTIER_ORDER": "random"}))


def test_priority_comes_before_order():
    order = Order.of(Settings())
    made = requests()
    made[1] = made[1].replace(priority=1)
    assert served(order, made)[0] == "2"


class OwnQueue(ScrapyPriorityQueue):
    """As a project may have one."""


def test_queue_classes_of_the_project_that_are_not_used_are_reported(caplog):
    warn_of_own_queues(Settings())
    warn_of_own_queues(Settings({"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}))
    warn_of_own_queues(Settings({"SCHEDULER_PRIORITY_QUEUE": "scrapy_ext.pqueues.DomainPriorityQueue"}))
    assert caplog.messages == []
    warn_of_own_queues(Settings({"SCHEDULER_PRIORITY_QUEUE": OwnQueue, "SCHEDULER_MEMORY_QUEUE": OwnQueue}))
    assert [message.split()[0] for message in caplog.messages] == ["SCHEDULER_PRIORITY_QUEUE", "SCHEDULER_MEMORY_QUEUE"]
