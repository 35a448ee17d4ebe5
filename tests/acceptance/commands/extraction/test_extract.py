"""``scrapy extract`` as its user types it, against the real server."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.eventually import TIMEOUT, eventually
from tests.support.pdfs import lines, pdf
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Answer, ListeningSite
from tests.support.terminal_commands import Done, scrapy

SCRAPY = [sys.executable, "-m", "scrapy", "extract"]
#: Variables that would point the command elsewhere.
_OURS = re.compile(r"(EXTRACT_API|PLATFORM|FRONTIER|SCRAPY)_\w+")
HOSTILE = "\x9b31m\x85name\u202e"


class Pages(ListeningSite):
    """``/page/N`` is a page; ``/report``, ``/latin``, ``/binary`` and ``/hostile`` are as named; none has a type."""

    content_type = ""

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        if path == "/latin":
            return Answer(200, '<html><meta charset="latin-1"><p>café'.encode("latin-1"))
        if path == "/binary":
            return Answer(200, bytes(range(256)))
        if path == "/report":
            return Answer(200, pdf(lines(["A report of one line."])))
        if path == "/hostile":
            return Answer(200, f"<html><p>{HOSTILE}".encode())
        return Answer(404 if path == "/gone" else 200, f"<html><title>{path}</title><p>{path}".encode())


@dataclass
class Desk:
    """A folder to work in, a site, and a server that fetches it."""

    folder: Path
    site: Pages
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.site.port}"

    def write(self, name: str, lines: Sequence[str]) -> list[str]:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))
        return list(lines)

    def pages(self, count: int, name: str = "urls.txt") -> list[str]:
        return self.write(name, [f"{self.url}/page/{number}" for number in range(count)])

    def run(self, *arguments: str, typed: str = "", **environment: str) -> Done:
        """Run the command to its end."""
        done = forked.run([*SCRAPY, *arguments], cwd=self.folder, env={**self.environment, **environment}, input=typed)
        return Done(done.returncode, done.stdout, done.stderr)

    def here(self, *arguments: str, **environment: str) -> Done:
        """The same in this process, for what writes to a file: starting Python takes most of the time."""
        return scrapy("extract", *arguments, folder=self.folder, environment={**self.environment, **environment})

    def records(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def site() -> Iterator[Pages]:
    site = Pages()
    yield site
    site.close()


@pytest.fixture(scope="module")
def server(site: Pages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("data"), allow_hosts=[f"localhost:{site.port}"]) as server:
        yield server


@pytest.fixture
def desk(site: Pages, server: RunningServer, tmp_path: Path) -> Desk:
    site.hits.clear()
    return Desk(
        tmp_path,
        site,
        {
            **{name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)},
            "EXTRACT_API_URL": f"{server.url}/v1",
            "EXTRACT_API_KEY": server.extract_key,
        },
    )


# ── one page ──


def test_a_url_gives_a_record_with_the_services_answer(desk: Desk) -> None:
    done = desk.run(f"{desk.url}/page/1")
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = done.records
    assert (record["line"], record["url"]) == (1, f"{desk.url}/page/1")
    assert record["result"]["statusCode"] == 200
    assert b"<title>/page/1" in base64.b64decode(record["result"]["httpResponseBody"])
    assert record["result"]["httpResponseHeaders"]


def test_a_page_that_fails_is_reported_and_recorded(desk: Desk) -> None:
    done = desk.run("http://localhost:1/")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "421 /website/domain-unreachable" in done.stderr
    (record,) = done.records
    assert {name: record["error"][name] for name in ("status", "type", "title")} == {
        "status": 421, "type": "/website/domain-unreachable", "title": "Domain Unreachable",
    }  # fmt: skip
    assert record["error"]["detail"]


@pytest.mark.long
def test_fields_are_named_on_the_command_line(desk: Desk) -> None:
    done = desk.run(
        f"{desk.url}/page/1", "--field", "pageContent", "--params", '{"extractFrom": "httpResponseBody", "echoData": 7}'
    )
    assert done.returncode == 0, done.stderr
    (record,) = done.records
    assert record["result"]["pageContent"]["url"] == f"{desk.url}/page/1"
    assert record["result"]["echoData"] == 7
    assert "httpResponseBody" not in record["result"]


@pytest.mark.long
def test_the_text_of_a_pdf_is_a_field_like_that_of_a_page(desk: Desk) -> None:
    done = desk.run(f"{desk.url}/report", "--field", "pageContent")
    assert done.returncode == 0, done.stderr
    (record,) = done.records
    assert record["result"]["pageContent"]["itemMain"] == "A report of one line."


@pytest.mark.long
def test_what_a_site_sent_cannot_touch_the_terminal(desk: Desk) -> None:
    text = terminal(desk, f"{desk.url}/hostile", "--decode")
    record = json.loads(text[text.index("{") :])
    assert HOSTILE in record["result"]["httpResponseBody"]
    assert not set(text[text.index("{") :]) & set("\x1b\x9b\x85\u202e")


# ── many ──


def test_every_line_of_a_file_gets_a_record(desk: Desk) -> None:
    desk.write(
        "mixed.jsonl",
        [
            f"{desk.url}/page/1",
            "",
            json.dumps({"url": f"{desk.url}/page/2", "httpResponseHeaders": True}),
            f"{desk.url}/gone",
            '{"url": ',
            json.dumps({"url": f"{desk.url}/page/3", "browserHtml": True, "httpResponseBody": True}),
            "http://localhost:1/",
        ],
    )
    done = desk.run("--input", "mixed.jsonl")
    assert done.returncode == 1
    records = {record["line"]: record for record in done.records}
    assert sorted(records) == [1, 3, 4, 5, 6, 7]
    assert [line for line in records if "result" in records[line]] == [
        line for line in records if "error" not in records[line]
    ]
    assert "httpResponseBody" not in records[3]["result"]
    assert records[4]["result"]["statusCode"] == 404
    assert records[5]["url"] is None
    assert records[5]["error"]["type"] == records[6]["error"]["type"] == "not-sent"
    assert records[6]["error"]["violations"][0]["field"] == "browserHtml"
    assert set(records[6]["error"]["violations"][0]) == {"field", "rule", "remedy"}
    assert records[7]["error"]["status"] == 421
    assert desk.site.hits.keys() == {"/page/1", "/page/2", "/gone"}
    assert "6 lines: 3 answered, 3 failed (2 not-sent, 1 /website/domain-unreachable)" in done.stderr


@pytest.mark.long
def test_lines_come_from_standard_input(desk: Desk) -> None:
    done = desk.run("--input", "-", "--decode", typed=f"{desk.url}/page/1\n{desk.url}/page/2")
    assert done.returncode == 0, done.stderr
    bodies = {record["line"]: record["result"]["httpResponseBody"] for record in done.records}
    assert bodies.keys() == {1, 2}
    assert "<p>/page/2" in bodies[2]


@pytest.mark.long
def test_decode_writes_text_as_text_and_reports_what_is_left(desk: Desk) -> None:
    desk.write("urls.txt", [f"{desk.url}/latin", f"{desk.url}/binary"])
    text, binary = sorted(desk.run("-i", "urls.txt", "--decode").records, key=lambda record: record["line"])
    assert text["forms"] == {"httpResponseBody": "text"}
    assert text["result"]["httpResponseBody"] == '<html><meta charset="latin-1"><p>café'
    assert binary["forms"] == {"httpResponseBody": "base64"}
    assert base64.b64decode(binary["result"]["httpResponseBody"]) == bytes(range(256))


@pytest.mark.long
def test_bodies_and_screenshots_become_files(desk: Desk) -> None:
    browser = {"url": f"{desk.url}/page/9", "browserHtml": True, "screenshot": True}
    desk.write("urls.txt", [f"{desk.url}/latin", f"{desk.url}/binary", json.dumps(browser)])
    done = desk.run("-i", "urls.txt", "--bodies", "a/bodies", "--screenshots", "pictures")
    assert done.returncode == 0, done.stderr
    latin, binary, page = sorted(done.records, key=lambda record: record["line"])
    assert latin["forms"] == {"httpResponseBody": "file"}
    assert latin["result"]["httpResponseBody"] == "a/bodies/0000001.html"
    assert (desk.folder / "a/bodies/0000001.html").read_bytes().endswith("café".encode("latin-1"))
    assert (desk.folder / binary["result"]["httpResponseBody"]).read_bytes() == bytes(range(256))
    assert page["forms"] == {"browserHtml": "file", "screenshot": "file"}
    assert "/page/9" in (desk.folder / page["result"]["browserHtml"]).read_text()
    assert page["result"]["screenshot"] == "pictures/0000003.jpg"
    assert (desk.folder / "pictures/0000003.jpg").read_bytes().startswith(b"\xff\xd8")


def test_pages_become_files_of_markdown(desk: Desk) -> None:
    desk.pages(2)
    by_http = ("--params", '{"extractFrom": "httpResponseBody"}')
    assert desk.here("-i", "urls.txt", "-o", "a.jsonl", "--markdown", "pages", *by_http).returncode == 0
    records = sorted(desk.records("a.jsonl"), key=lambda record: record["line"])
    assert [record["result"]["markdown"] for record in records] == ["pages/0000001.md", "pages/0000002.md"]
    assert records[0]["forms"] == {"markdown": "file"}
    # Without the field, files are made of the HTML of the answers.
    own = desk.write("own.txt", [f"{desk.url}/page/0", f"{desk.url}/binary"])
    assert (
        desk.here("-i", "own.txt", "-o", "b.jsonl", "--field", "httpResponseBody", "--markdown", "own").returncode == 0
    )
    page, binary = sorted(desk.records("b.jsonl"), key=lambda record: record["line"])
    assert page["result"]["markdown"] == "own/0000001.md"
    assert (desk.folder / "own/0000001.md").read_text() == (desk.folder / "pages/0000001.md").read_text()
    assert "markdown" not in binary["result"]
    assert [path.name for path in (desk.folder / "own").iterdir()] == ["0000001.md"]
    assert len(own) == 2


@pytest.mark.long
def test_settings_hold_as_in_a_crawl(desk: Desk) -> None:
    (desk.folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (desk.folder / "shop").mkdir()
    (desk.folder / "shop" / "settings.py").write_text(
        "ADDONS = {'scrapy_ext.Addon': 500}\nEXTRACT_API_PARAMS = {'tags': {'run': 'nightly'}, 'echoData': 'setting'}\n"
        "EXTRACT_API_RETRY_POLICY = {'no-connection': 1}\n"
    )
    assert desk.run(f"{desk.url}/page/1").records[0]["result"]["echoData"] == "setting"
    wrong = desk.run(f"{desk.url}/page/1", "-s", "EXTRACT_API_RETRY_POLICY={'typo': 1}")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
    assert "EXTRACT_API_RETRY_POLICY" in wrong.stderr


def test_a_price_that_is_missing_stops_the_run(desk: Desk) -> None:
    desk.pages(30)
    prices = 'EXTRACT_API_PRICES={"browser": 1}'
    done = desk.here("-i", "urls.txt", "-o", "out.jsonl", "-s", "EXTRACT_API_MAX_COST=1", "-s", prices)
    assert (done.returncode, done.stdout) == (1, "")
    assert "EXTRACT_API_PRICES: has no price for http requests" in done.stderr
    assert not desk.site.hits


def test_without_an_address_the_embedded_server_is_used_also_outside_a_project(desk: Desk) -> None:
    done = desk.run(
        f"{desk.url}/page/1", "-s", f"SERVER_ALLOW_HOSTS=localhost:{desk.site.port}",
        EXTRACT_API_URL="", EXTRACT_API_KEY="",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.records[0]["result"]["statusCode"] == 200


# ── going on ──


def budgeted(desk: Desk, most: int) -> Done:
    return desk.here("-i", "urls.txt", "-o", "out.jsonl", "-s", f"EXTRACT_API_MAX_REQUESTS={most}")


def test_a_run_that_was_stopped_goes_on_and_asks_for_nothing_twice(desk: Desk) -> None:
    urls = desk.pages(50)
    stopped = budgeted(desk, 20)
    assert stopped.returncode == 1
    assert "EXTRACT_API_MAX_REQUESTS" in stopped.stderr
    assert "Stopped with 20 of 50 lines done; the same command continues from here." in stopped.stderr
    assert len(desk.records("out.jsonl")) == 20
    finished = desk.here("-i", "urls.txt", "-o", "out.jsonl")
    assert finished.returncode == 0
    assert "50 lines, 20 of them before: 50 answered, 0 failed" in finished.stderr
    assert sorted(record["url"] for record in desk.records("out.jsonl")) == sorted(urls)
    assert set(desk.site.hits.values()) == {1}
    nothing = desk.here("-i", "urls.txt", "-o", "out.jsonl", EXTRACT_API_URL="http://localhost:1/v1")
    assert (nothing.returncode, "all of them before" in nothing.stderr) == (0, True)


@pytest.mark.long
def test_a_run_that_was_killed_goes_on_and_each_line_has_one_record(desk: Desk) -> None:
    desk.pages(400)
    output = desk.folder / "out.jsonl"
    with forked.start(
        [*SCRAPY, "-i", "urls.txt", "-o", "out.jsonl", "-q"], cwd=desk.folder, env=desk.environment
    ) as process:
        eventually(lambda: output.exists() and output.read_bytes().count(b"\n") > 30)
        process.kill()
    killed = len(desk.records("out.jsonl"))
    assert killed < 400
    assert desk.run("-i", "urls.txt", "-o", "out.jsonl").returncode == 0
    assert Counter(record["line"] for record in desk.records("out.jsonl")) == Counter(range(1, 401))
    # What was in flight is asked for again; what had its record is not.
    assert sum(desk.site.hits.values()) <= 400 + 16


def test_a_torn_last_record_is_done_again_and_nothing_else(desk: Desk) -> None:
    desk.pages(3)
    assert desk.here("-i", "urls.txt", "-o", "out.jsonl").returncode == 0
    output = desk.folder / "out.jsonl"
    torn = desk.records("out.jsonl")[-1]["url"]
    output.write_bytes(output.read_bytes()[:-20])
    desk.site.hits.clear()
    assert desk.here("-i", "urls.txt", "-o", "out.jsonl").returncode == 0
    assert sorted(record["line"] for record in desk.records("out.jsonl")) == [1, 2, 3]
    assert [f"{desk.url}{path}" for path in desk.site.hits] == [torn]


@pytest.mark.long
def test_failed_lines_are_done_again_when_that_is_asked_for(desk: Desk) -> None:
    desk.write("urls.txt", [f"{desk.url}/page/1", '{"url": ', "http://localhost:1/"])
    assert desk.here("-i", "urls.txt", "-o", "out.jsonl").returncode == 1
    again = desk.here("-i", "urls.txt", "-o", "out.jsonl")
    assert (again.returncode, "2 failed, all of them before" in again.stderr) == (1, True)
    desk.write("urls.txt", [f"{desk.url}/page/1", f"{desk.url}/page/2", "http://localhost:1/"])
    changed = desk.here("-i", "urls.txt", "-o", "out.jsonl")
    assert (changed.returncode, "do not belong together: line 2" in changed.stderr) == (2, True)
    retried = desk.here("-i", "urls.txt", "-o", "out.jsonl", "--retry-failed")
    assert retried.returncode == 1
    assert {record["line"]: "result" in record for record in desk.records("out.jsonl")} == {1: True, 2: True, 3: False}
    assert desk.site.hits == {"/page/1": 1, "/page/2": 1}


@pytest.mark.long
def test_an_input_that_has_changed_is_reported_and_nothing_is_sent(desk: Desk) -> None:
    urls = desk.pages(5)
    assert desk.here("-i", "urls.txt", "-o", "out.jsonl").returncode == 0
    before = (desk.folder / "out.jsonl").read_bytes()
    desk.site.hits.clear()
    desk.write("urls.txt", [f"{desk.url}/new", *urls])
    moved = desk.here("-i", "urls.txt", "-o", "out.jsonl")
    assert f"line 1 was {urls[0]} and is {desk.url}/new now" in moved.stderr
    desk.write("urls.txt", urls[:3])
    shorter = desk.here("-i", "urls.txt", "-o", "out.jsonl")
    assert "line 5 is done, and there are 3 lines now" in shorter.stderr
    desk.write("urls.txt", urls)
    other = desk.here("-i", "urls.txt", "-o", "out.jsonl", "--browser")
    assert "has other fields now" in other.stderr
    piped = desk.run("-i", "-", "-o", "out.jsonl", typed=f"{desk.url}/new\n")
    assert f"line 1 was {urls[0]} and is {desk.url}/new now" in piped.stderr
    for done in (moved, shorter, other, piped):
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert "give another --output" in done.stderr
    assert (desk.folder / "out.jsonl").read_bytes() == before
    assert not desk.site.hits
    # More lines behind those that are done are no change of them.
    desk.write("urls.txt", [*urls, f"{desk.url}/page/5"])
    assert desk.here("-i", "urls.txt", "-o", "out.jsonl").returncode == 0
    assert desk.site.hits == {"/page/5": 1}


def test_a_file_that_holds_something_else_is_left_alone(desk: Desk) -> None:
    desk.pages(2)
    (desk.folder / "prices.csv").write_text("name,price\nKettle,3")
    done = desk.here("-i", "urls.txt", "-o", "prices.csv")
    assert (done.returncode, "line 1 of prices.csv is not a record" in done.stderr) == (2, True)
    assert (desk.folder / "prices.csv").read_text() == "name,price\nKettle,3"


def test_two_runs_do_not_write_to_one_file(desk: Desk) -> None:
    desk.pages(2)
    with (desk.folder / "out.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = desk.here("-i", "urls.txt", "-o", "out.jsonl")
    assert (done.returncode, "another scrapy extract is writing to out.jsonl" in done.stderr) == (2, True)


# ── the call ──


def test_check_reports_every_fault_and_sends_nothing(desk: Desk) -> None:
    broken = {"url": "http://127.0.0.1/", "geolocation": "us", "browserHtm": True}
    desk.write("urls.txt", [f"{desk.url}/page/1", json.dumps(broken), "", "nowhere", '{"url": '])
    (desk.folder / "out.jsonl").write_text("something else")
    nowhere = {"EXTRACT_API_URL": "", "EXTRACT_API_KEY": ""}
    done = desk.here("-i", "urls.txt", "-o", "out.jsonl", "--check", **nowhere)
    assert done.returncode == 1
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [
        ["line 2", "browserHtm"], ["line 2", "url"], ["line 2", "geolocation"], ["line 4", "url"], ["line 5", "input"],
    ]  # fmt: skip
    assert "3 of 4 lines cannot be sent" in done.stderr
    assert (desk.folder / "out.jsonl").read_text() == "something else"
    fine = desk.here("-i", "urls.txt", f"{desk.url}/page/1", "--check")
    assert fine.returncode == 2
    fine = desk.here(f"{desk.url}/page/1", f"{desk.url}/page/2", "--check", **nowhere)
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "scrapy extract: 2 lines, all valid\n")
    assert not desk.site.hits
    assert not (desk.folder / ".scrapy").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give URLs, or a file of them"),
        (["https://example.com/", "--input", "-"], "give URLs, or a file of them"),
        (["https://example.com/", "--unknown"], "unknown option --unknown"),
        (["https://example.com/", "--params", "{"], "--params is not JSON"),
        (["https://example.com/", "--params", "[]"], "--params must be an object of fields"),
        (["https://example.com/", "--params", '{"url": "https://example.org/"}'], "--params must be an object"),
        (["https://example.com/", "--field", "browserHtm"], "Did you mean browserHtml?"),
        (["https://example.com/", "--field", "geolocation"], "geolocation: must be a string"),
        (["https://example.com/", "--field", "browserHtml=true"], "use --field browserHtml"),
        (["https://example.com/", "--field", "javascript=false"], """use --params '{"javascript": false}' """.strip()),
        (["https://example.com/", "--field", "geolocation=US"], """use --params '{"geolocation": "US"}' """.strip()),
        (["https://example.com/", "--screenshots", "d"], "add --field screenshot"),
        (["https://example.com/", "--decode", "--bodies", "b"], "--decode and --bodies cannot be combined"),
        (["https://example.com/", "--retry-failed"], "--retry-failed needs the results of the previous run"),
        (["https://example.com/", "--concurrency", "0"], "must be a whole number from 1"),
        (["https://example.com/", "--output", "nowhere/out.jsonl"], "nowhere/out.jsonl cannot be written"),
        (["https://example.com/", "-s", "EXTRACT_API_PARAMS={'browserHtm': True}"], "EXTRACT_API_PARAMS"),
        (["https://example.com/", "-s", "EXTRACT_API_URL=http://localhost:1/"], "EXTRACT_API_URL must end in /v1"),
        (["https://example.com/", "-s", "EXTRACT_API_MAX_COST=1"], "EXTRACT_API_MAX_COST needs prices"),
        (["--input", "nothing.txt"], "nothing.txt cannot be read: No such file"),
        (["--input", "."], ". is a folder"),
        (["--input", "urls.txt", "--output", "urls.txt"], "--input and --output are the same file"),
    ],
)
def test_a_wrong_call_is_reported_and_nothing_is_done(desk: Desk, arguments: list[str], message: str) -> None:
    (desk.folder / "urls.txt").write_text("https://example.com/\n")
    done = desk.here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in desk.folder.iterdir()] == ["urls.txt"]


def test_a_wrong_address_is_reported_at_once(desk: Desk) -> None:
    desk.pages(30)
    done = desk.here("-i", "urls.txt", "-o", "out.jsonl", EXTRACT_API_URL="http://localhost:1/v1")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "EXTRACT_API_URL" in done.stderr
    assert desk.records("out.jsonl") == []


def test_a_full_disk_is_reported(desk: Desk) -> None:
    desk.pages(30)
    done = desk.here("-i", "urls.txt", "-o", "/dev/full")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "scrapy extract: /dev/full: No space left on device\n"


def test_a_device_is_written_to_by_any_number_at_once(desk: Desk) -> None:
    master, slave = pty.openpty()
    fcntl.flock(slave, fcntl.LOCK_EX)  # as another run would hold a file
    done = desk.here(f"{desk.url}/page/1", "-o", os.ttyname(slave))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert b"/page/1" in os.read(master, 65536)
    os.close(slave)
    os.close(master)


@pytest.mark.long
def test_a_reader_that_stops_early_ends_the_run_without_a_word(desk: Desk) -> None:
    desk.pages(200)
    command = f"{' '.join(SCRAPY)} -i urls.txt | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=desk.folder, env=desk.environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    first, status = done.stdout.splitlines()
    assert "result" in json.loads(first)
    assert (status, done.stderr) == ("1", "")
    assert len(desk.site.hits) < 200


def test_the_key_is_never_shown(desk: Desk) -> None:
    desk.pages(2)
    done = desk.run("-i", "urls.txt", "-L", "DEBUG", "-s", "EXTRACT_API_LOG_REQUESTS=1", EXTRACT_API_KEY="wrong-key")
    assert done.returncode == 1
    assert "EXTRACT_API_KEY" in done.stderr
    assert "wrong-key" not in done.stderr + done.stdout


# ── the terminal ──


def terminal(desk: Desk, *arguments: str, columns: int = 80) -> str:
    """Output of the command in a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in desk.environment.items() if name != "COLUMNS"}
    with forked.start(
        [*SCRAPY, *arguments],
        cwd=desk.folder,
        env={**environment, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        pieces = []
        while piece := _read(ours):
            pieces.append(piece)
        os.close(ours)
        process.wait(timeout=TIMEOUT)
    return b"".join(pieces).decode()


def _read(file: int) -> bytes:
    try:
        return os.read(file, 65536)
    except OSError:
        # Linux reports a terminal whose other end is closed as an error, others as the end of the file.
        return b""


@pytest.mark.long
def test_a_terminal_gets_a_bar_of_one_line_and_a_pipe_gets_none(desk: Desk) -> None:
    desk.pages(60)
    prices = '{"http": 0.001, "browser": 0.01}'
    shown = terminal(desk, "-i", "urls.txt", "-o", "out.jsonl", "-s", f"EXTRACT_API_PRICES={prices}")
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    bars = [line for line in lines if "━" in line]
    assert bars
    assert all(len(line) <= 80 for line in bars)
    assert re.search(r"60/60  [0-9.]+/s  cost 0.06", bars[-1])
    assert lines[-2:] == [lines[-2], ""]
    assert lines[-2].startswith("scrapy extract: 60 lines: 60 answered, 0 failed, in ")
    assert lines[-2].endswith(", cost 0.06")
    piped = desk.run("-i", "urls.txt", "-o", "other.jsonl")
    assert piped.stdout == ""
    assert len(piped.stderr.splitlines()) == 1
    quiet = desk.here("-i", "urls.txt", "-o", "third.jsonl", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_help_fits_a_terminal_and_has_examples(desk: Desk) -> None:
    done = desk.here("--help", COLUMNS="80")
    assert done.returncode == 0
    assert "examples:\n  scrapy extract https://example.com" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


# ── signals ──


@pytest.mark.long
def test_ctrl_c_while_nothing_is_in_flight_ends_at_once(desk: Desk) -> None:
    output = desk.folder / "out.jsonl"
    with subprocess.Popen(
        [*SCRAPY, "-i", "-", "-o", "out.jsonl"], cwd=desk.folder, env=desk.environment, stdin=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(f"{desk.url}/page/1\n")
        process.stdin.flush()
        # A line is done as it comes: the input is still open.
        eventually(lambda: output.exists() and output.read_bytes().endswith(b"\n"))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=TIMEOUT) == 130
        message = process.stderr.read()
    assert "Stopped with 1 line done; the same command with the same input continues from here." in message
    assert "Traceback" not in message
