"""A machine on which Playwright's driver cannot run: an answer that says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ext.server.extraction.browser import BrowserNotFoundError
from scrapy_ext.server.extraction.browser.launcher import driver_fault, driver_program, start_driver

#: The words of Linux's loader on an image without the library.
LOADER = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file: No such file"


def program(folder: Path, text: str) -> Path:
    path = folder / "node"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def test_a_server_without_the_driver_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(tmp_path / "nothing"))
    with pytest.raises(BrowserNotFoundError, match=r"has no browser, and Playwright's driver has no Node\.js"):
        await start_driver()


async def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(program(tmp_path, f"echo '{LOADER}' >&2; exit 127")))
    with pytest.raises(BrowserNotFoundError, match=r"needs the library libatomic\.so\.1\. .* apt install libatomic1"):
        await start_driver()


def test_a_driver_that_runs_has_no_fault(tmp_path: Path) -> None:
    assert driver_fault(driver_program()) is None
    assert driver_fault(program(tmp_path, "exit 1")) is None  # not the machine's fault: Playwright's error is reported
