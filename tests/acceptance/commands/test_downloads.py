"""``--output FILE``: records in files, whatever interrupts the command."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

from scrapy_ext.api.platform import JobKey
from tests.support.terminal_commands import Platform, lines

NUMBER = 3000


@pytest.fixture
def job(platform: Platform) -> JobKey:
    """A job with items of several shapes, requests and a log."""
    key = platform.job()
    items = [
        {"n": n, "name": f"=item {n}", **({"price": n / 2} if n % 2 else {"tags": ["a", n]})} for n in range(NUMBER)
    ]
    log = [{"time": n, "level": 20 + 10 * (n % 2), "message": f"line {n}"} for n in range(10)]
    requests = [
        {"time": 1, "method": "GET", "url": f"http://a.example/{n}", "status": 200, "duration": 1, "rs": 1}
        for n in range(5)
    ]
    platform.call(lambda client: client.items.write(key, lines(items), 0))
    platform.call(lambda client: client.logs.write(key, lines(log), 0))
    platform.call(lambda client: client.requests.write(key, lines(requests), 0))
    platform.ends(key)
    return key


def saved(platform: Platform, file: Path, *arguments: str) -> Path:
    """The file that a command has written; nothing of its work is left."""
    done = platform.run(*arguments, "--output", str(file))
    assert (done.returncode, done.stdout) == (0, ""), done
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(f"{file.name}.")] == []
    return file


def test_the_suffix_names_the_format(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    printed = platform.run("items", str(job)).stdout.encode()
    assert saved(platform, tmp_path / "items.jl", "items", str(job)).read_bytes() == printed
    assert gzip.decompress(saved(platform, tmp_path / "items.jl.gz", "items", str(job)).read_bytes()) == printed
    records = [json.loads(line) for line in printed.splitlines()]
    assert json.loads(saved(platform, tmp_path / "items.json", "items", str(job)).read_bytes()) == records
    table = pq.read_table(saved(platform, tmp_path / "items.parquet", "items", str(job)))
    assert table.column("name").to_pylist() == [record["name"] for record in records]
    rows = list(openpyxl.load_workbook(saved(platform, tmp_path / "items.xlsx", "items", str(job))).active.values)
    assert rows[0] == ("n", "name", "tags", "price")
    assert [row[3] for row in rows[1:]] == [record.get("price") for record in records]
    with saved(platform, tmp_path / "items.csv", "items", str(job)).open(newline="") as stream:
        assert [row["name"] for row in csv.DictReader(stream)] == [record["name"] for record in records]
    assert saved(platform, tmp_path / "plain", "items", str(job), "--format", "jl").read_bytes() == printed


def test_options_choose_records_and_fields(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    chosen = ("items", str(job), "--fields", "price,n", "--start", "10", "--count", "3")
    file = saved(platform, tmp_path / "items.csv", *chosen)
    assert file.read_bytes() == b"price,n\r\n,10\r\n5.5,11\r\n,12\r\n"
    file = saved(platform, tmp_path / "items.jl", *chosen)
    assert file.read_text() == platform.run(*chosen).stdout
    log = ("logs", str(job), "--level", "warning", "--start", "1", "--count", "2")
    file = saved(platform, tmp_path / "log.jl", *log)
    assert file.read_text() == platform.run(*log).stdout
    file = saved(platform, tmp_path / "requests.parquet", "requests", str(job))
    assert pq.read_table(file).column("url").to_pylist() == [f"http://a.example/{n}" for n in range(5)]


def test_a_collection_goes_to_a_file(platform: Platform, tmp_path: Path) -> None:
    records = [{"_key": f"k{n:03}", "n": n} for n in range(120)]
    platform.call(lambda client: client.collections.write(platform.project, "s", "seen", lines(records)))
    command = ("collections", "get", "seen", "--prefix", "k0")
    file = saved(platform, tmp_path / "seen.jl", *command)
    assert file.read_text() == platform.run(*command).stdout
    assert pq.read_table(saved(platform, tmp_path / "seen.parquet", *command)).num_rows == 100


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["items.jl", "items.csv", "items.parquet", "items.xlsx"])
def test_a_repeated_command_continues_after_the_complete_lines(
    platform: Platform, job: JobKey, tmp_path: Path, name: str
) -> None:
    whole = saved(platform, tmp_path / name, "items", str(job)).read_bytes()
    printed = platform.run("items", str(job)).stdout.encode().splitlines(keepends=True)
    file = tmp_path / "again" / name
    file.parent.mkdir()
    part, about = file.with_name(f"{name}.part"), file.with_name(f"{name}.part.json")
    part.write_bytes(b"".join(printed[:700]) + printed[700][:9])
    about.write_text(json.dumps(selection(job, platform.environment["PLATFORM_URL"]), separators=(",", ":")))
    assert saved(platform, file, "items", str(job)).read_bytes() == whole
    # The lines that were there are kept, not read again.
    part.write_bytes(b'{"n":-1}\n' + b"".join(printed[1:700]))
    about.write_text(json.dumps(selection(job, platform.environment["PLATFORM_URL"]), separators=(",", ":")))
    changed = saved(platform, file, "items", str(job), "--format", "jl").read_bytes().splitlines(keepends=True)
    assert changed == [b'{"n":-1}\n', *printed[1:]]


def selection(job: JobKey, server: str) -> dict[str, Any]:
    return {"server": server, "records": "items", "job": str(job), "start": 0, "count": None, "meta": []}


@pytest.mark.parametrize("other_job", [True, False])
def test_a_part_of_other_records_is_not_continued(
    platform: Platform, job: JobKey, tmp_path: Path, other_job: bool
) -> None:
    file = tmp_path / "items.jl"
    file.with_name("items.jl.part").write_bytes(b'{"n":-1}\n')
    here = platform.environment["PLATFORM_URL"]
    about = selection(JobKey(1, 1, 1), here) if other_job else selection(job, "http://a")
    file.with_name("items.jl.part.json").write_text(json.dumps(about, separators=(",", ":")))
    assert saved(platform, file, "items", str(job)).read_text() == platform.run("items", str(job)).stdout


@pytest.mark.long
def test_a_killed_download_that_is_repeated_gives_the_same_file(
    platform: Platform, job: JobKey, tmp_path: Path
) -> None:
    more = [{"n": n, "text": "x" * 900} for n in range(20_000)]
    key = platform.job()
    for first in range(0, len(more), 5000):
        platform.call(lambda client, first=first: client.items.write(key, lines(more[first : first + 5000]), first))
    whole = saved(platform, tmp_path / "items.csv", "items", str(key)).read_bytes()
    file = tmp_path / "killed.csv"
    part = tmp_path / "killed.csv.part"
    with platform.start("items", str(key), "--output", str(file)) as going:
        going.until(lambda: file.exists() or (part.exists() and part.stat().st_size))
        going.process.kill()
    assert not file.exists() or file.read_bytes() == whole
    assert saved(platform, file, "items", str(key)).read_bytes() == whole


def test_what_cannot_be_saved_is_refused(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    assert "names no format; add --format" in platform.refused("items", str(job), "--output", str(tmp_path / "items"))
    assert "--format needs --output" in platform.refused("items", str(job), "--format", "csv")
    assert "--follow cannot" in platform.refused("items", str(job), "-f", "--output", str(tmp_path / "items.jl"))
    assert "No such file" in platform.refused("items", str(job), "--output", str(tmp_path / "absent" / "items.jl"))
    assert "is a folder" in platform.refused("items", str(job), "--output", str(tmp_path), "--format", "jl")
    assert list(tmp_path.iterdir()) == []
