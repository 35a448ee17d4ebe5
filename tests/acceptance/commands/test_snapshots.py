"""Snapshots from the command line: as a list, and as files that hostile records cannot put elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.platform.snapshots import Content, Part, Snapshot
from tests.support.terminal_commands import Platform

PNG = b"\x89PNG\r\n\x1a\n" + b"a screenshot"
HTML = "<h1>Lämp</h1>".encode()
ID = "1700000000000-0a1b2c3d"


@pytest.fixture
def job(platform: Platform) -> JobKey:
    """A job with a snapshot."""
    pushed = platform.call(lambda client: client.jobq.push(platform.project, "lamps", state="running"))
    keep(platform, key := JobKey.parse(pushed.key))
    return key


def keep(platform: Platform, job: JobKey, name: str = ID, **fields: str) -> None:
    given = {"url": "https://shop.example/lamp", "error": "KeyError", "callback": "parse_lamp", "format": "html"}
    content = {"page": Content(len(HTML)), "screenshot": Content(len(PNG))}
    snapshot = Snapshot(time=int(name[:13]), status=200, **{**given, **fields}, **content)  # type: ignore[arg-type]
    parts = {Part.PAGE: HTML, Part.SCREENSHOT: PNG}
    platform.call(lambda client: client.snapshots.write(job, name, snapshot, parts))


def test_snapshots_are_listed(platform: Platform, job: JobKey) -> None:
    (listed,) = platform.lines("snapshots", str(job))
    assert listed["id"] == ID
    assert (listed["error"], listed["page"]["bytes"], listed["screenshot"]["bytes"]) == ("KeyError", 14, len(PNG))
    assert platform.lines("snapshots") == [listed], "the newest job"


def test_they_are_saved_as_files(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    assert "1 snapshot in " in platform.run("snapshots", str(job), "--output", str(tmp_path / "pages")).stderr
    files = {path.name: path.read_bytes() for path in (tmp_path / "pages").iterdir()}
    name = "20231114-221320-KeyError-0a1b2c3d"
    described = json.loads(files.pop(f"{name}.snapshot.json"))
    assert files == {f"{name}.html": HTML, f"{name}.png": PNG}
    assert (described["page"], described["screenshot"]) == (f"{name}.html", f"{name}.png")


def test_a_hostile_record_writes_into_the_folder_alone(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    keep(platform, job, "1700000000001-0a1b2c3d", error="../../../x\x1b[2J", format="../../x")
    assert "\x1b[2J" not in platform.run("snapshots").stdout
    platform.run("snapshots", "--output", str(tmp_path / "a" / "b"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_dir()] == ["a", "b"]
    assert len(list((tmp_path / "a" / "b").iterdir())) == 6


def test_a_damaged_part_is_named_and_the_rest_is_saved(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    piece = f"job-{job.spider}-{job.job}/parts/{ID}/page.0"
    platform.call(lambda client: client.collections.delete_keys(job.project, "cs", "scrapy_snapshots", [piece]))
    done = platform.run("snapshots", "--output", str(tmp_path))
    assert done.returncode == 1
    assert "a piece of the page is missing" in done.stderr
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".png", ".json"]
