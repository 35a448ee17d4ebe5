"""Order of the hosts in a slot."""

import heapq
import random
from types import SimpleNamespace

import pytest

from scrapy_ext.crawl.frontier.hosts import HostQueue


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def queue(capacity=0, clock=None):
    return HostQueue(lambda host, out: not capacity or out < capacity, *([clock] if clock else []))


def pops(queue, count):
    return [queue.pop() for _ in range(count)]


def test_hosts_take_turns():
    hosts = queue()
    for name in "aaabbbccc":
        hosts.push(0, name, name)
    assert [host for host, _ in pops(hosts, 9)] == list("abcabcabc")
    assert hosts.pop() is None


def test_the_host_with_the_fewest_requests_out_comes_first_and_then_the_next_by_name():
    hosts = queue()
    for name in "cabbbb":
        hosts.push(0, name, name)
    assert [host for host, _ in pops(hosts, 4)] == ["a", "b", "c", "b"]
    hosts.push(0, "a", "again")
    hosts.release("b")
    assert [host for host, _ in pops(hosts, 2)] == ["a", "b"]


def test_priority_decides_within_a_host_and_not_among_hosts():
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
    assert [host for host, _ in pops(hosts, 3)] == ["busy", "free", "busy"]
    assert hosts.pop() is None
    assert len(hosts) == 3
    hosts.release("busy")
    assert hosts.pop() == ("busy", 2)
    assert hosts.pop() is None


def test_a_host_that_got_room_is_served_when_the_queue_is_notified():
    limited = {"a"}
    hosts = HostQueue(lambda host, out: host not in limited)
    hosts.push(0, "a", "x")
    assert hosts.pop() is None
    assert not hosts.look_again("a")
    limited.clear()
    assert hosts.look_again("a")
    assert hosts.pop() == ("a", "x")


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


def test_a_host_that_is_parked_is_not_served_before_its_time_and_holds_nobody_up(clock):
    hosts = queue(clock=clock)
    hosts.push(9, "a", "a1")
    hosts.push(0, "b", "b1")
    hosts.park("a", 110.0)
    hosts.push(9, "a", "a2")
    assert (hosts.next_due, len(hosts)) == (110.0, 3)
    assert hosts.pop() == ("b", "b1")
    assert hosts.pop() is None
    clock.now = 109.9
    assert hosts.pop() is None
    clock.now = 110.0
    assert pops(hosts, 3) == [("a", "a1"), ("a", "a2"), None]
    assert hosts.next_due is None


def test_the_longest_of_several_times_counts(clock):
    hosts = queue(clock=clock)
    hosts.push(0, "a", 1)
    for until in (110.0, 130.0, 120.0, 90.0):
        hosts.park("a", until)
    for now, served in ((115.0, None), (125.0, None), (130.0, ("a", 1))):
        clock.now = now
        assert hosts.pop() == served


def test_a_host_without_requests_can_be_parked_too(clock):
    hosts = queue(capacity=1, clock=clock)
    hosts.park("a", 110.0)
    hosts.push(0, "a", 1)
    assert hosts.pop() is None
    clock.now = 110.0
    assert hosts.pop() == ("a", 1)
    hosts.park("a", 120.0)  # While one is out.
    hosts.push(0, "a", 2)
    hosts.release("a")
    assert hosts.pop() is None
    clock.now = 120.0
    assert hosts.pop() == ("a", 2)


def test_a_host_that_was_parked_is_forgotten_when_its_time_is_over_and_it_has_nothing(clock):
    hosts = queue(clock=clock)
    for number in range(100):
        hosts.park(str(number), 110.0)
    clock.now = 110.0
    assert hosts.pop() is None
    assert not hosts._hosts


def test_a_request_that_must_wait_comes_at_its_time_with_its_priority(clock):
    hosts = queue(clock=clock)
    hosts.push(9, "a", "later", not_before=110.0)
    hosts.push(9, "a", "past", not_before=99.0)
    hosts.push(0, "a", "now")
    assert len(hosts) == 3
    assert pops(hosts, 3) == [("a", "past"), ("a", "now"), None]
    hosts.push(0, "a", "low")
    clock.now = 110.0
    assert pops(hosts, 2) == [("a", "later"), ("a", "low")]
    assert len(hosts) == 0


def test_a_request_that_waits_in_a_parked_host_waits_for_both(clock):
    hosts = queue(clock=clock)
    hosts.push(0, "a", 1, not_before=110.0)
    hosts.park("a", 120.0)
    clock.now = 115.0
    assert hosts.pop() is None
    clock.now = 120.0
    assert hosts.pop() == ("a", 1)


def test_what_is_removed_does_not_come_whatever_it_waits_for(clock):
    hosts = queue(capacity=1, clock=clock)
    for number in range(10):
        hosts.push(number, f"h{number % 3}", number)
    hosts.push(0, "h0", 10, not_before=110.0)
    hosts.push(0, "h0", 11, not_before=110.0)
    hosts.park("h1", 120.0)
    assert hosts.pop() == ("h0", 9)
    assert sorted(hosts.remove(lambda number: number % 2 == 0)) == [0, 2, 4, 6, 8, 10]
    assert hosts.remove(lambda number: number % 2 == 0) == []
    assert len(hosts) == 5
    hosts.release("h0")
    assert hosts.pop() == ("h2", 5)
    assert hosts.pop() == ("h0", 3)
    clock.now = 120.0
    assert hosts.pop() == ("h1", 7)
    for host in ("h0", "h1", "h2"):
        hosts.release(host)
    assert sorted(value for _, value in pops(hosts, 2)) == [1, 11]
    assert len(hosts) == 0


def test_a_host_of_which_all_was_removed_is_forgotten_and_can_come_again():
    hosts = queue(capacity=1)
    hosts.push(0, "a", 1)
    hosts.push(0, "b", 2)
    assert hosts.remove(lambda value: value == 1) == [1]
    assert list(hosts._hosts) == ["b"]
    hosts.push(0, "a", 3)
    assert pops(hosts, 3) == [("a", 3), ("b", 2), None]


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_or_early_or_over_capacity_with_hosts_and_requests_that_wait(clock, seed):
    order = random.Random(seed)
    hosts = queue(capacity=2, clock=clock)
    waits, parked, here, out = {}, {}, set(), []
    for number in range(3000):
        clock.now += order.random()
        chance = order.random()
        if chance < 0.45:
            host = f"h{order.randrange(12)}"
            waits[number] = clock.now + 10 if order.random() < 0.3 else 0.0
            hosts.push(order.randrange(3), host, number, not_before=waits[number])
            here.add(number)
        elif chance < 0.5:
            host = f"h{order.randrange(12)}"
            parked[host] = max(parked.get(host, 0.0), until := clock.now + 20 * order.random())
            hosts.park(host, until)
        elif chance < 0.52:
            gone = hosts.remove(lambda value: value % 7 == 0)
            assert set(gone) == {value for value in here if value % 7 == 0}
            here.difference_update(gone)
        elif chance < 0.8 and (popped := hosts.pop()):
            host, value = popped
            assert clock.now >= max(waits[value], parked.get(host, 0.0))
            here.remove(value)
            out.append(host)
            assert out.count(host) <= 2
        elif out:
            hosts.release(out.pop(order.randrange(len(out))))
        assert len(hosts) == len(here)
    clock.now += 100.0
    while out or here:
        popped = hosts.pop()
        if popped is None:
            hosts.release(out.pop())
        else:
            here.remove(popped[1])
            out.append(popped[0])
    assert len(hosts) == 0
    assert not hosts._hosts


@pytest.mark.parametrize("count", [100, 10_000])
def test_a_pop_costs_the_same_however_many_must_wait(monkeypatch, clock, count):
    """Counted in operations on heaps, of which each is O(log n)."""
    hosts = queue(capacity=1, clock=clock)
    for number in range(count):
        hosts.push(9, f"busy{number}", number)
    for _ in range(count):
        hosts.pop()
    for number in range(count):
        hosts.push(9, f"busy{number}", number)
        hosts.push(9, f"parked{number}", number)
        hosts.park(f"parked{number}", 200.0)
        hosts.push(9, "late", number, not_before=300.0)
    while hosts.pop():  # What is left in the heap of those that were parked.
        pass

    operations = 0

    def counted(operation):
        def run(*arguments):
            nonlocal operations
            operations += 1
            return operation(*arguments)

        return run

    names = ("heappush", "heappop")
    counting = SimpleNamespace(**{name: counted(getattr(heapq, name)) for name in names})
    monkeypatch.setattr("scrapy_ext.crawl.frontier.hosts.heapq", counting)
    for number in range(100):
        hosts.push(0, f"free{number % 10}", number)
        assert hosts.pop() == (f"free{number % 10}", number)
        assert hosts.pop() is None
        hosts.release(f"free{number % 10}")
    assert operations <= 600


def test_what_must_wait_is_counted_apart(clock):
    queue = HostQueue(lambda host, out: out < 1, clock)
    queue.push(0, "a", 1)
    queue.push(0, "b", 2, clock.now + 5)
    assert (len(queue), queue.parked) == (2, 1)
    queue.park("a", clock.now + 10)
    queue.push(0, "a", 3)
    assert (len(queue), queue.parked) == (3, 3)
    clock.now += 6
    assert queue.pop() == ("b", 2)
    assert (len(queue), queue.parked) == (2, 2)
    assert queue.remove(lambda value: value == 3) == [3]
    assert (len(queue), queue.parked) == (1, 1)
    clock.now += 6
    assert queue.pop() == ("a", 1)
    assert (len(queue), queue.parked) == (0, 0)
