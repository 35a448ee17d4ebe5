"""Whose turn it is among hosts."""

import random

from scrapy_ext.crawl.hosts import HostQueue


def queue(capacity=0):
    return HostQueue(lambda host: capacity)


def pops(queue, count):
    return [queue.pop() for _ in range(count)]


def test_hosts_take_turns():
    hosts = queue()
    for name in "aaabbbccc":
        hosts.push(0, name, name)
    assert [host for host, _ in pops(hosts, 9)] == list("abcabcabc")
    assert hosts.pop() is None


def test_higher_priority_comes_first_whatever_the_host():
    hosts = queue()
    hosts.push(0, "a", "low")
    hosts.push(5, "b", "high")
    hosts.push(7, "a", "highest")
    assert [value for _, value in pops(hosts, 3)] == ["highest", "high", "low"]


def test_a_host_at_its_capacity_waits_and_holds_nobody_up():
    hosts = queue(capacity=2)
    for number in range(5):
        hosts.push(9, "busy", number)
    hosts.push(0, "free", "x")
    assert [host for host, _ in pops(hosts, 3)] == ["busy", "busy", "free"]
    assert hosts.pop() is None
    assert len(hosts) == 3
    hosts.release("busy")
    assert hosts.pop() == ("busy", 2)
    assert hosts.pop() is None


def test_a_later_request_of_higher_priority_overtakes_within_its_host():
    hosts = queue()
    hosts.push(0, "a", "first")
    hosts.push(3, "a", "second")
    assert [value for _, value in pops(hosts, 2)] == ["second", "first"]


def test_nothing_is_lost_or_doubled_and_capacity_holds_in_any_order():
    order = random.Random(7)
    hosts = queue(capacity=3)
    pushed, popped, out = [], [], []
    for number in range(4000):
        if order.random() < 0.5:
            host = f"h{order.randrange(20)}"
            hosts.push(order.randrange(3), host, number)
            pushed.append(number)
        elif order.random() < 0.6:
            taken = hosts.pop()
            if taken is not None:
                popped.append(taken[1])
                out.append(taken[0])
                assert out.count(taken[0]) <= 3
        elif out:
            hosts.release(out.pop(order.randrange(len(out))))
    while out or len(hosts):
        taken = hosts.pop()
        if taken is not None:
            popped.append(taken[1])
            out.append(taken[0])
        else:
            hosts.release(out.pop())
    assert sorted(popped) == pushed


def test_drain_takes_what_was_not_popped():
    hosts = queue(capacity=1)
    for number in range(3):
        hosts.push(0, "a", number)
    hosts.pop()
    assert hosts.drain() == [1, 2]
    assert len(hosts) == 0
    hosts.release("a")
    assert hosts.pop() is None
