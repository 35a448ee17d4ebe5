"""``scrapy platform keys`` as its user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_ext.server.auth.api_keys import key_hash
from tests.support.postgresql import Cluster
from tests.support.terminal_commands import scrapy


def run(where: Path | str, *arguments: str) -> tuple[int, str, str]:
    """Exit code and output of the command, run in this process."""
    store = ["--data" if isinstance(where, Path) else "--database", str(where)]
    folder = where.parent if isinstance(where, Path) else None
    done = scrapy("platform", "keys", *arguments, *store, folder=folder)
    return done.returncode, done.stdout, done.stderr


def test_keys_are_added_shown_once_listed_and_removed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    code, out, _ = run(data, "add", "reports", "--project", "7", "--project", "12", "--read-only")
    assert (code, bool(re.fullmatch("[0-9a-f]{32}\n", out))) == (0, True)
    key = out.strip()
    _, out, error = run(data, "list", "--json")
    (line,) = [json.loads(line) for line in out.splitlines()]
    assert line.pop("created") > 0
    assert line == {
        "name": "reports",
        "projects": [7, 12],
        "write": False,
        "extraction": False,
        "organisation": None,
        "suspended": False,
    }
    assert key not in out + error
    assert key_hash(key) not in out
    assert run(data, "remove", "reports") == (0, "", "")
    assert run(data, "list", "--json")[1] == ""


def test_keys_of_the_extraction_service_are_suspended_and_go_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run(data, "add", "shop", "--opens", "extraction", "--organisation", "acme")[0] == 0
    assert run(data, "add", "crawls", "--opens", "both", "--project", "7")[0] == 0

    def listed() -> list[tuple[object, ...]]:
        lines = [json.loads(line) for line in run(data, "list", "--json")[1].splitlines()]
        names = ("name", "projects", "extraction", "organisation", "suspended")
        return [tuple(line[name] for name in names) for line in lines]

    assert listed() == [("crawls", [7], True, None, False), ("shop", [], True, "acme", False)]
    assert run(data, "suspend", "shop") == (0, "", "")
    assert listed()[1] == ("shop", [], True, "acme", True)
    assert run(data, "resume", "shop") == (0, "", "")
    assert listed()[1] == ("shop", [], True, "acme", False)


@pytest.mark.long
def test_keys_of_a_postgresql_database(postgresql: Cluster) -> None:
    database, other = postgresql.database(), postgresql.database()
    assert run(database, "add", "reports", "--project", "7")[0] == 0
    code, out, error = run(database, "add", "reports")
    assert (code, out) == (1, "")
    assert "Choose another name" in error
    assert [json.loads(line)["name"] for line in run(database, "list", "--json")[1].splitlines()] == ["reports"]
    assert run(other, "list", "--json")[:2] == (0, "")
    for action in ("suspend", "resume", "remove"):
        assert run(database, action, "reports") == (0, "", "")


def test_mistakes_are_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run(data, "add", "taken")[0] == 0
    for arguments, message in (
        (["add"], "needs a name"),
        (["add", "taken"], "Choose another name"),
        (["add", "api"], "Choose another name"),
        (["add", "a b"], "letters, digits"),
        (["remove", "nobody"], "there is no key nobody"),
        (["list", "taken"], "lists all keys"),
        (["list", "--read-only"], "are options of add"),
        (["suspend", "nobody"], "there is no key nobody"),
        (["resume"], "needs a name"),
        (["suspend", "taken", "--opens", "both"], "are options of add"),
        (["add", "b", "--opens", "extraction", "--read-only"], "for the platform"),
        (["add", "b", "--organisation", "acme"], "--opens extraction"),
        (["add", "b", "--opens", "both", "--organisation", "a b"], "organisation: must be"),
    ):
        code, out, error = run(data, *arguments)
        assert (code, out, error.count("\n")) == (1, "", 1)
        assert error.startswith("scrapy platform keys: ")
        assert message in error


def test_looking_at_keys_makes_no_store(tmp_path: Path) -> None:
    for arguments in (["list"], ["remove", "reports"]):
        code, out, error = run(tmp_path / "data", *arguments)
        assert (code, out) == (1, "")
        assert "There is no store" in error
    assert not (tmp_path / "data").exists()


def test_a_full_disk_and_a_closed_pipe_are_no_traceback(tmp_path: Path) -> None:
    assert run(tmp_path / "data", "add", "reports")[0] == 0
    command = f"{sys.executable} -m scrapy platform keys list --json --data {tmp_path / 'data'}"

    def ended(shell: str) -> tuple[int, str]:
        done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    code, error = ended(f"{command} >/dev/full")
    assert (code, error.count("\n"), "No space left on device" in error) == (1, 1, True)
    assert ended(f"{command} | true") == (0, "")
