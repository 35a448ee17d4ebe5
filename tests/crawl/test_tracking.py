"""When a batch is finished."""

from scrapy import Request

from scrapy_ext.crawl.tracking import Tracker


class Finished(list):
    def __call__(self, batch):
        self.append(batch.id)


def opened(tracker, id, *urls):
    return tracker.open_batch(0, id, [(url, Request(f"http://a.example/{url}"), "a.example") for url in urls])


def test_a_batch_is_finished_once_when_its_last_request_is():
    finished = Finished()
    tracker = Tracker(finished)
    one, two = opened(tracker, "b", "1", "2")
    first, second = tracker.handed_out(one), tracker.handed_out(two)
    tracker.finished(first)
    assert finished == []
    tracker.finished(second)
    tracker.finished(second)
    assert finished == ["b"]
    assert tracker.unfinished == 0


def test_a_request_that_was_never_of_a_batch_changes_nothing():
    finished = Finished()
    tracker = Tracker(finished)
    opened(tracker, "b", "1")
    tracker.finished(Request("http://a.example/robots.txt"))
    assert finished == []


def test_a_retry_carries_on_for_its_origin():
    finished = Finished()
    tracker = Tracker(finished)
    (entry,) = opened(tracker, "b", "1")
    request = tracker.handed_out(entry)
    retry = request.replace(dont_filter=True)
    assert tracker.entry_of(retry) is entry
    tracker.carry_on(entry, retry)
    tracker.finished(request)
    assert finished == []
    tracker.finished(tracker.handed_out(entry))
    assert finished == ["b"]


def test_a_child_that_copies_meta_is_known_by_its_parents_entry_and_holds_nothing_back():
    finished = Finished()
    tracker = Tracker(finished)
    (entry,) = opened(tracker, "b", "1")
    request = tracker.handed_out(entry)
    child = Request("http://a.example/child", meta=request.meta)
    assert tracker.entry_of(child) is entry
    tracker.finished(request)
    assert finished == ["b"]
    assert tracker.entry_of(child) is None


def test_a_request_that_cannot_be_stored_holds_back_every_open_batch():
    finished = Finished()
    tracker = Tracker(finished)
    (one,), (two,) = opened(tracker, "b1", "1"), opened(tracker, "b2", "2")
    first, second = tracker.handed_out(one), tracker.handed_out(two)
    local = tracker.local("x", Request("http://a.example/local"), "a.example")
    tracker.finished(first)
    tracker.finished(second)
    assert finished == []
    tracker.finished(tracker.handed_out(local))
    assert sorted(finished) == ["b1", "b2"]


def test_a_batch_without_a_request_that_can_be_run_is_finished_at_once():
    finished = Finished()
    Tracker(finished).open_batch(0, "b", [])
    assert finished == ["b"]
