"""Recent fingerprints are known, and old ones are forgotten."""

from scrapy_ext.crawl.frontier.fingerprint_set import Recent


def test_at_least_the_last_are_known_and_at_most_twice_as_many_kept():
    recent = Recent(100)
    for number in range(1000):
        recent.add(b"%d" % number)
        assert all(b"%d" % known in recent for known in range(max(0, number - 99), number + 1))
        assert sum(b"%d" % known in recent for known in range(number + 1)) <= 200
    assert b"0" not in recent
    assert b"never" not in recent


def test_what_is_added_twice_is_there():
    recent = Recent(2)
    for _ in range(10):
        recent.add(b"x")
    assert b"x" in recent
