"""``scrapy platform items --where … --search …``: items that meet conditions, in a list, a stream and a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ext.api.platform import JobKey
from tests.support.terminal_commands import Platform, lines


@pytest.fixture
def job(platform: Platform) -> JobKey:
    key = platform.job()
    items = [
        {"n": n, "name": "Kettle" if n % 3 else "Lamp", "price": f"{n / 2:.2f}", **({"color": "red"} if n % 10 else {})}
        for n in range(1200)
    ]
    platform.call(lambda client: client.items.write(key, lines(items), 0))
    platform.ends(key)
    return key


def numbers(platform: Platform, job: JobKey, *options: str) -> list[int]:
    return [item["n"] for item in platform.lines("items", str(job), *options)]


def test_items_are_chosen_by_conditions_and_text(platform: Platform, job: JobKey) -> None:
    assert numbers(platform, job, "--where", "price > 598 and name ~ kettle") == [1198, 1199]
    assert numbers(platform, job, "--where", "color is missing", "--where", "price < 10") == [0, 10]
    assert numbers(platform, job, "--search", "LAMP", "--where", "n >= 1190") == [1191, 1194, 1197]
    assert numbers(platform, job, "--where", "n > 5", "--start", "100", "--count", "2") == [100, 101]
    chosen = platform.lines("items", str(job), "--where", "n = 7", "--fields", "name", "--meta")
    assert chosen == [{"name": "Kettle"}]
    # More than the page of a listing.
    assert len(numbers(platform, job, "--where", "n > 3")) == 1196


def test_following_and_files_have_the_same_items(platform: Platform, job: JobKey, tmp_path: Path) -> None:
    where = ("--where", "color is missing", "--search", "kettle")
    listed = platform.run("items", str(job), *where).stdout
    assert platform.run("items", str(job), *where, "--follow").stdout == listed
    first = "".join(listed.splitlines(keepends=True)[:5])
    assert platform.run("items", str(job), *where, "--follow", "--count", "5").stdout == first
    file = tmp_path / "items.jl"
    done = platform.run("items", str(job), *where, "--output", str(file))
    assert (done.returncode, file.read_text()) == (0, listed)
    platform.run("items", str(job), *where, "--count", "5", "--output", str(tmp_path / "first.jl"))
    assert (tmp_path / "first.jl").read_text() == first
    platform.run("items", str(job), *where, "--fields", "n", "--output", str(tmp_path / "n.csv"))
    assert (tmp_path / "n.csv").read_bytes().split() == [b"n"] + [
        str(n).encode() for n in numbers(platform, job, *where)
    ]


def test_requests_are_chosen_in_the_same_way(platform: Platform, tmp_path: Path) -> None:
    key = platform.job()
    records = [
        {"time": 1000 + n, "method": "GET", "url": f"https://shop.example/{'kettle' if n % 2 else 'lamp'}/{n}",
         "status": 404 if n % 10 == 3 else 200, "duration": n, "rs": 10, "fp": f"{n:040x}"}
        for n in range(300)
    ]  # fmt: skip
    platform.call(lambda client: client.requests.write(key, lines(records), 0))
    platform.ends(key)
    where = ("--where", "status >= 400 and url ~ KETTLE")
    found = [record["duration"] for record in platform.lines("requests", str(key), *where)]
    assert found == list(range(3, 300, 10))
    assert platform.lines("requests", str(key), "--search", "/lamp/298")[0]["duration"] == 298
    listed = platform.run("requests", str(key), *where).stdout
    assert platform.run("requests", str(key), *where, "--follow").stdout == listed
    assert platform.run("requests", str(key), "--follow").stdout == platform.run("requests", str(key)).stdout
    some = platform.lines("requests", str(key), *where, "--start", "10", "--count", "2")
    assert [record["duration"] for record in some] == [13, 23]
    file = tmp_path / "requests.jl"
    done = platform.run("requests", str(key), *where, "--output", str(file))
    assert (done.returncode, file.read_text()) == (0, listed)


def test_a_wrong_condition_is_an_error_in_one_line(platform: Platform, job: JobKey) -> None:
    done = platform.run("items", str(job), "--where", "price >")
    assert (done.returncode, done.stdout) == (2, "")
    assert "argument --where: must have a value after > (at character 8). Write price > 20 and" in done.stderr
