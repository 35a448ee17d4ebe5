"""``scrapy platform doctor`` against real services, databases and browsers, well and ill."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch

import pytest

from scrapy_ext.commands.doctor import browser, services
from scrapy_ext.commands.doctor.checking import Finding
from scrapy_ext.server.store.engine.opening import FILE
from scrapy_ext.settings import VARIABLES
from tests.support.h2_site import H2Site
from tests.support.postgresql import Cluster
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Site
from tests.support.terminal_commands import Done, scrapy


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("data"), options=["--no-runner"]) as running:
        yield running


def given(server: RunningServer, **other: str) -> dict[str, str]:
    return {
        "EXTRACT_API_URL": f"{server.url}/v1",
        "EXTRACT_API_KEY": server.extract_key,
        "PLATFORM_URL": server.url,
        "PLATFORM_API_KEY": server.platform_key,
        **other,
    }


def doctor(folder: Path, *arguments: str, **environment: str) -> Done:
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return scrapy("platform", "doctor", *arguments, folder=folder, environment={**clean, **environment})


def doctor_of_others(folder: Path, *arguments: str, **environment: str) -> Done:
    """The same without the check of the browser, where another of the server's machine is meant."""

    async def nothing(_path: str | None) -> list[Finding]:
        return []

    with patch.object(browser, "_browser", nothing):
        return doctor(folder, *arguments, **environment)


def found(done: Done, check: str) -> list[tuple[str, str, str]]:
    """Status, finding and remedy of a check."""
    assert done.stderr == ""
    return [(each["status"], each["finding"], each["remedy"]) for each in done.records if each["check"] == check]


def wrong(done: Done, check: str) -> tuple[str, str]:
    """Finding and remedy of the one problem of a check."""
    assert done.returncode == 1
    ((_, text, remedy),) = [each for each in found(done, check) if each[0] == "problem"]
    assert remedy
    return text, remedy


def test_all_is_well(server: RunningServer, tmp_path: Path) -> None:
    done = doctor(tmp_path, **given(server))
    assert done.returncode == 0, done
    assert {each["status"] for each in done.records} == {"ok"}
    assert {"versions", "settings", "extraction", "platform", "clock", "disk"} <= {
        each["check"] for each in done.records
    }
    assert "browser" not in {each["check"] for each in done.records}
    assert server.extract_key not in done.stdout
    assert server.platform_key not in done.stdout


def test_wrong_keys_are_told_apart_from_wrong_addresses(server: RunningServer, site: Site, tmp_path: Path) -> None:
    swapped = doctor(
        tmp_path, **given(server, EXTRACT_API_KEY=server.platform_key + "x", PLATFORM_API_KEY=server.extract_key)
    )
    assert "refuses the key" in wrong(swapped, "extraction")[0]
    assert "PLATFORM_API_KEY" in wrong(swapped, "platform")[1]
    elsewhere = doctor(tmp_path, **given(server, EXTRACT_API_URL=f"{site.url}/v1", PLATFORM_URL=site.url))
    for check, setting in (("extraction", "EXTRACT_API_URL"), ("platform", "PLATFORM_URL")):
        text, remedy = wrong(elsewhere, check)
        assert "this is not the service" in text
        assert setting in remedy
    unset = doctor_of_others(tmp_path, PLATFORM_URL=server.url)
    assert wrong(unset, "settings")[0] == "PLATFORM_API_KEY is not set, but PLATFORM_URL is"


def test_a_wrong_address_hides_no_other_check(server: RunningServer, tmp_path: Path) -> None:
    both = doctor(tmp_path, EXTRACT_API_URL="notaurl", PLATFORM_URL="ftp://a", PLATFORM_API_KEY="k")
    assert both.returncode == 1
    assert [text for status, text, _ in found(both, "settings") if status == "problem"] == [
        "EXTRACT_API_URL must be an http or https URL, got 'notaurl'",
        "EXTRACT_API_KEY is not set, but EXTRACT_API_URL is",
        "PLATFORM_URL must be an http or https URL, got 'ftp://a'",
    ]
    one = doctor(tmp_path, **given(server, EXTRACT_API_URL="notaurl"))
    assert "EXTRACT_API_URL" in wrong(one, "settings")[0]
    assert "all have valid values" not in one.stdout
    assert found(one, "platform")[0][0] == "ok"


def test_a_key_that_may_only_read_is_doubtful(server: RunningServer, tmp_path: Path) -> None:
    add = ("keys", "add", "reader", "--project", "7", "--read-only", "--data", str(server.data))
    key = scrapy("platform", *add, folder=tmp_path).stdout.strip()
    done = doctor(tmp_path, **given(server, PLATFORM_API_KEY=key, PLATFORM_PROJECT="7"))
    assert done.returncode == 0
    assert ("warning", "the key may only read project 7; crawls cannot store anything") in [
        each[:2] for each in found(done, "platform")
    ]
    foreign = doctor(tmp_path, **given(server, PLATFORM_API_KEY=key, PLATFORM_PROJECT="8"))
    assert "no access to project 8" in wrong(foreign, "platform")[0]


@pytest.mark.long
def test_services_that_cannot_be_reached_say_why(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = doctor(
        tmp_path, **given(server, EXTRACT_API_URL="http://127.0.0.1:1/v1", PLATFORM_URL="http://nobody.invalid")
    )
    assert "Connection refused" in wrong(nobody, "extraction")[0]
    assert "the host nobody.invalid is not known" in wrong(nobody, "platform")[0]
    (tmp_path / "site").mkdir()
    with H2Site(tmp_path / "site") as site, socket.create_server(("127.0.0.1", 0)) as silent:
        secured = doctor(
            tmp_path,
            **given(server, EXTRACT_API_URL=f"{site.url}/v1", PLATFORM_URL=server.url.replace("http:", "https:")),
        )
        assert "its certificate is not valid (self-signed certificate)" in wrong(secured, "extraction")[0]
        assert "it does not speak TLS there" in wrong(secured, "platform")[0]
        monkeypatch.setattr(services, "SECONDS", 1.0)
        late = doctor(tmp_path, **given(server, PLATFORM_URL=f"http://127.0.0.1:{silent.getsockname()[1]}"))
        assert "no answer within 1 s" in wrong(late, "platform")[0]
        assert found(late, "extraction")[0][0] == "ok"


class _Behind(BaseHTTPRequestHandler):
    """Both services on a machine whose clock is an hour behind, which no real one here is."""

    def do_GET(self) -> None:
        known = {"/system/ts": str(int((time.time() - 3600) * 1000)), "/jobq/1/count": "0", "/items/1/stats": "{}"}
        self._answer(200 if self.path in known else 404, known.get(self.path, ""))

    def do_POST(self) -> None:
        self._answer(400, '{"type": "/request/invalid", "title": "", "status": 400, "detail": ""}')

    def _answer(self, status: int, body: str) -> None:
        self.send_response_only(status)
        self.send_header("Date", formatdate(time.time() - 3600, usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_a_clock_that_differs_is_reported(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Behind) as fake:
        threading.Thread(target=fake.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{fake.server_port}"
        done = doctor(
            tmp_path, EXTRACT_API_URL=f"{url}/v1", EXTRACT_API_KEY="a", PLATFORM_URL=url, PLATFORM_API_KEY="b"
        )
        fake.shutdown()
    clocks = found(done, "clock")
    assert [status for status, _, _ in clocks] == ["problem", "problem"]
    assert all(
        text.startswith(("this machine is 3600 s ahead", "this machine is 3599 s ahead")) for _, text, _ in clocks
    )
    assert all("timedatectl" in remedy for _, _, remedy in clocks)


@pytest.mark.long
def test_the_browser_is_started(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    done = doctor(tmp_path, "--data", "data")
    status, text, _ = found(done, "browser")[0]
    assert (status, text.split()[0], text.split()[-1]) == ("ok", "Chromium", "starts")
    text, remedy = wrong(doctor(tmp_path, "--data", "data", "--browser", sys.executable + "-not"), "browser")
    assert "is not a program" in text
    assert "playwright install" in remedy
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\necho I am no browser >&2\nexit 127\n")
    program.chmod(0o755)
    text, remedy = wrong(doctor(tmp_path, "--data", "data", "--browser", str(program)), "browser")
    assert text == f"{program} does not start: I am no browser"
    assert "--browser" in remedy
    assert "install-deps" not in remedy
    assert list((tmp_path / "data").iterdir()) == []


def test_the_database_of_a_data_folder(tmp_path: Path) -> None:
    def database(*arguments: str) -> tuple[str, str, str]:
        (one,) = found(doctor_of_others(tmp_path, *arguments), "database")
        return one

    data = tmp_path / "data"
    assert database("--data", str(data))[0] == "ok"
    assert scrapy("platform", "keys", "add", "me", "--data", str(data), folder=tmp_path).returncode == 0
    status, text, _ = database("--data", str(data))
    assert (status, text.endswith("the newest")) == ("ok", True)
    newest = _set_version(data, 100)
    status, text, remedy = database("--data", str(data))
    assert (status, f"migrates it to {newest}" in text) == ("warning", True)
    assert remedy == f"Before that: scrapy platform backup --data {data} FILE"
    _set_version(data, 1)
    assert "cannot be migrated" in database("--data", str(data))[1]
    _set_version(data, newest + 1)
    assert database("--data", str(data))[2] == "pip install --upgrade scrapy-ext"
    (data / FILE).write_bytes(b"something else" * 1000)
    status, text, _ = database("--data", str(data))
    assert (status, "cannot be read" in text) == ("problem", True)
    (data / FILE).unlink()
    with sqlite3.connect(data / FILE) as other:
        other.execute("CREATE TABLE theirs (a)")
    assert "another program" in database("--data", str(data))[1]


def _set_version(data: Path, version: int) -> int:
    """Set the version of the schema; returns the one before."""
    with sqlite3.connect(data / FILE) as connection:
        before: int = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0]
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version (version) VALUES (?)", (version,))
    return before


@pytest.mark.long
def test_a_postgresql_database(postgresql: Cluster, tmp_path: Path) -> None:
    def database(url: str, **environment: str) -> tuple[str, str, str]:
        return found(doctor_of_others(tmp_path, "--database", url, **environment), "database")[0]

    url = postgresql.database()
    status, text, _ = database(url)
    assert (status, text.startswith("PostgreSQL 1"), text.endswith("the server makes them")) == ("ok", True, True)
    absent = postgresql.url("absent")
    assert database(absent)[2] == "Create it: createdb absent."
    dead = "postgresql://me:secret@127.0.0.1:1/x"
    status, text, remedy = database(dead)
    assert status == "problem"
    assert "cannot be reached" in text
    assert "Check that PostgreSQL runs there" in remedy
    assert "secret" not in text + remedy


@pytest.mark.long
def test_the_primary_among_several_servers(postgresql: Cluster, tmp_path: Path) -> None:
    url = postgresql.database().replace("127.0.0.1:", "127.0.0.1:1,127.0.0.1:")
    done = doctor_of_others(tmp_path, "--database", url)
    ((status, text, remedy),) = found(done, "standby")
    assert status == "warning"
    assert f"127.0.0.1:{postgresql.port} is the primary" in text
    assert "synchronous_standby_names" in remedy


def test_a_table_in_a_terminal(server: RunningServer, tmp_path: Path) -> None:
    from tests.support.terminal_commands import Platform, plain

    clean: Mapping[str, str] = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    shown = plain(Platform({**clean, **given(server)}, tmp_path, 1).terminal("doctor", columns=150))
    assert "0 warnings, 0 problems" in shown
    assert json.dumps(server.platform_key) not in shown
