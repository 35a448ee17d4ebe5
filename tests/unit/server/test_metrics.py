"""Metrics as text."""

from scrapy_ext.server.metrics import counter, distribution, gauge, lines


def test_families_become_the_text_of_prometheus() -> None:
    families = [
        *counter("tagged_total", "Tags.", [({"tag": 'a"b\n\\c'}, 2)]),
        *gauge("process_open_fds", "Files.", 7),
        *distribution("seconds", "Time.", (0.5, 1.0), (1, 2, 3), 9.5),
    ]
    assert list(lines(families)) == [
        "# HELP scrapy_ext_tagged_total Tags.",
        "# TYPE scrapy_ext_tagged_total counter",
        'scrapy_ext_tagged_total{tag="a\\"b\\n\\\\c"} 2',
        "# HELP process_open_fds Files.",
        "# TYPE process_open_fds gauge",
        "process_open_fds 7",
        "# HELP scrapy_ext_seconds Time.",
        "# TYPE scrapy_ext_seconds histogram",
        'scrapy_ext_seconds_bucket{le="0.5"} 1',
        'scrapy_ext_seconds_bucket{le="1"} 3',
        'scrapy_ext_seconds_bucket{le="+Inf"} 6',
        "scrapy_ext_seconds_sum 9.5",
        "scrapy_ext_seconds_count 6",
    ]
