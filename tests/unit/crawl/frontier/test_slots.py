"""Slot of a request."""

from scrapy import Request

from scrapy_ext.crawl.frontier.identity import host_of, slot_of


def test_a_host_is_always_in_one_slot():
    slots = {slot_of(Request(f"https://Example.com/{n}?x={n}"), 8) for n in range(50)}
    assert len(slots) == 1
    addresses = ("http://example.com:8080/", "https://me:secret@example.COM/", "http://example.com")
    assert {slot_of(Request(address), 8) for address in addresses} == slots
    assert {host_of(Request(address)) for address in addresses} == {"example.com"}


def test_a_request_without_a_host_has_a_slot():
    assert host_of(Request("data:text/plain,1")) == ""
    assert slot_of(Request("data:text/plain,1"), 8) == slot_of(Request("data:text/plain,2"), 8)


def test_hosts_spread_over_the_slots():
    assert {slot_of(Request(f"https://h{n}.example/"), 8) for n in range(200)} == set(range(8))


def test_the_slot_does_not_change_between_versions():
    # A change would lose the fingerprints of every frontier that lives.
    assert [slot_of(Request(f"https://{host}/"), 8) for host in ("example.com", "a.test", "www.example.org")] == [
        1,
        1,
        5,
    ]


def test_meta_chooses_the_slot_by_number_or_by_text():
    assert slot_of(Request("https://a.example/", meta={"frontier_slot": 3}), 8) == 3
    one = slot_of(Request("https://a.example/", meta={"frontier_slot": "news"}), 8)
    assert one == slot_of(Request("https://b.example/", meta={"frontier_slot": "news"}), 8)


def test_download_slot_is_the_host_to_be_polite_to():
    assert host_of(Request("https://a.example/", meta={"download_slot": "shared"})) == "shared"
    assert host_of(Request("https://a.example/")) == "a.example"
