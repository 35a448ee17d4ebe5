"""Every use of a thread is in the table of architecture/security.rst; the default executor is for the server alone."""

from __future__ import annotations

import re
from pathlib import Path

import scrapy_ext
from tests.support.docs_tables import DOCS

SERVER = Path(scrapy_ext.__file__).parent / "server"
_USES = re.compile(r"asyncio\.to_thread|run_in_executor|\.getaddrinfo\(|\bin_(?:data|slow)_thread\b|\bin_thread\(")
_DEFAULT = re.compile(r"asyncio\.to_thread|run_in_executor\(None|get_running_loop\(\)\.getaddrinfo")


def table() -> list[list[str]]:
    """The cells of each row."""
    text = (DOCS / "architecture" / "security.rst").read_text("utf-8")
    section = text[text.index("\nThreads\n=======") : text.index("\nStrangers\n=======")]
    rows = re.split(r"\n {3}\* - ", section)[2:]
    return [[" ".join(cell.split()) for cell in row.split("\n     - ")] for row in rows]


def named(cell: str) -> list[str]:
    return re.findall(r"``([\w/]+)``", cell)


def files(use: re.Pattern[str]) -> list[str]:
    found = (path for path in SERVER.rglob("*.py") if use.search(path.read_text("utf-8")))
    return sorted(str(path.relative_to(SERVER).with_suffix("")) for path in found)


def is_named(file: str, rows: list[list[str]]) -> bool:
    return any(file == name or file.startswith(f"{name}/") for row in rows for name in named(row[0]))


def test_every_use_of_a_thread_is_in_the_table() -> None:
    own = ("computing/threads",)
    assert [file for file in files(_USES) if file not in own and not is_named(file, table())] == []


def test_the_default_executor_has_the_server_s_own_work_alone() -> None:
    rows = [row for row in table() if row[1] in ("the default executor", "threads of its own")]
    assert len(rows) == 2
    # An archive's bytes are flushed to its file, and browsers and clients are imported.
    others = {"jobs/versions/inspection", "extraction/service"}
    assert [file for file in files(_DEFAULT) if file not in others and not is_named(file, rows)] == []


def test_what_the_table_names_exists() -> None:
    for row in table():
        for name in named(row[0]):
            assert (SERVER / name).is_dir() or (SERVER / f"{name}.py").is_file(), name
