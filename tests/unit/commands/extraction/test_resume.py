"""State of an earlier run, read from its output alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.commands.extraction.input_lines import CallError
from scrapy_ext.commands.extraction.resume import OutputFile


def record(line: int, *, failed: bool = False, **more: Any) -> bytes:
    outcome = {"error": {"type": "x"}} if failed else {"result": {"url": "http://a/", "httpResponseBody": "eA=="}}
    line_fields = {"line": line, "url": f"http://a/{line}", "fingerprint": f"{line:08x}", **outcome, **more}
    return json.dumps(line_fields, separators=(",", ":")).encode() + b"\n"


def looked(path: Path, content: bytes, *, again: bool = False) -> OutputFile:
    path.write_bytes(content)
    output = OutputFile(str(path))
    try:
        output.read_done(drop_failed=again)
    finally:
        output.close()
    return output


def test_lines_with_a_record_are_done(tmp_path: Path) -> None:
    output = looked(tmp_path / "out", record(7) + record(2, failed=True) + record(300_000))
    assert [number for number in (1, 2, 7, 300_000, 300_001) if number in output.done] == [2, 7, 300_000]
    assert (output.done.answered, output.done.failed, output.done.last) == (2, 1, 300_000)
    assert output.url_of(2) == "http://a/2"


@pytest.mark.parametrize("size", range(1, len(record(2)) - 1, 7))
def test_a_record_that_was_cut_off_is_removed(tmp_path: Path, size: int) -> None:
    whole, path = record(1), tmp_path / "out"
    assert len(looked(path, whole + record(2)[:size]).done) == 1
    assert path.read_bytes() == whole


def test_a_record_that_lacks_only_its_line_break_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for content in (record(1), record(1) + record(2)):
        output = looked(path, content[:-1])
        assert len(output.done) == content.count(b"\n")
        assert path.read_bytes() == content


def test_what_a_power_cut_leaves_behind_the_last_record_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert len(looked(path, record(1) + bytes(5000)).done) == 1
    assert path.read_bytes() == record(1)


def test_the_first_record_may_be_the_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert len(looked(path, record(1)[:30]).done) == 0
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "content",
    [
        b"name,price\nKettle,3\n",
        b"one line without an end",
        b"[]\n",
        b"\n",
        b'{"line":1,"url":"http://a/","result":{}}\n',
        b'{"line":0,"url":"http://a/","fingerprint":"00000000","result":{}}\n',
        b'{"line":1,"url":"http://a/","fingerprint":"0x","result":{}}\n',
        b'{"line":1,"url":"http://a/","fingerprint":"00000000"}\n',
        record(1) + b"something\n" + record(2),
        record(1) + record(2, fingerprint=None),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes, again: bool) -> None:
    path = tmp_path / "out"
    with pytest.raises(CallError, match="is not a record of scrapy extract"):
        looked(path, content, again=again)
    assert path.read_bytes() == content


def test_records_of_failed_lines_are_dropped_when_they_are_to_be_done_again(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    output = looked(link, record(1) + record(2, failed=True) + record(3) + record(4)[:20], again=True)
    assert path.read_bytes() == record(1) + record(3)
    assert path.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "out"]
    assert (output.done.answered, output.done.failed, 2 in output.done) == (2, 0, False)


def test_an_output_belongs_to_one_run_also_when_it_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(record(1, failed=True))
    output = OutputFile(str(path))
    with pytest.raises(CallError, match="another scrapy extract is writing"):
        OutputFile(str(path))
    output.read_done(drop_failed=True)
    with pytest.raises(CallError, match="another scrapy extract is writing"):
        OutputFile(str(path))
    output.close()
    OutputFile(str(path)).close()


def test_a_pipe_is_written_to_and_nothing_is_known_of_it() -> None:
    output = OutputFile("/dev/null")
    output.read_done(drop_failed=False)
    assert (output.is_kept, len(output.done)) == (False, 0)
    output.close()
