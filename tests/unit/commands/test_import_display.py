"""Lines that a long import writes into a pipe."""

from __future__ import annotations

from scrapy_ext.commands.importing.context import Row
from scrapy_ext.commands.importing.display import LineDisplay


def test_no_project_is_named_before_the_source_has_responded():
    lines = LineDisplay()
    assert lines.line() == "waiting for the source; nothing is copied yet"
    lines.jobs(7, 0, 12)
    assert lines.line() == "project 7: 0 of 12 finished jobs compared; copied so far: nothing new"
    lines.show(7, [Row(7, 7, "jobs", copied=3)])
    lines.jobs(7, 3, None)
    assert lines.line() == "project 7: 3 of 12 finished jobs compared; copied so far: 3 jobs"
