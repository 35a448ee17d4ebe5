from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ext.server.computing.environment import clean_environment
from scrapy_ext.server.extraction.browser import BrowserNotFoundError, find_browser

NOWHERE = Path("/nonexistent/ms-playwright/chromium-99/chrome-linux/chrome")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_configured_browser_wins_then_the_environments(tmp_path: Path) -> None:
    first, second = program(tmp_path / "a"), program(tmp_path / "b")
    environ = {"SCRAPY_EXT_BROWSER": str(second), "PATH": str(tmp_path)}
    assert find_browser(str(first), environ, NOWHERE) == first
    assert find_browser(None, environ, NOWHERE) == second


def test_playwrights_own_shell_is_preferred_to_its_whole_browser_and_to_the_systems(tmp_path: Path) -> None:
    system = program(tmp_path / "bin/chromium-headless-shell")
    environ = {"PATH": str(system.parent)}
    own = tmp_path / "ms-playwright/chromium-99/chrome-linux64/chrome"
    assert find_browser(None, environ, own) == system
    program(own)
    assert find_browser(None, environ, own) == own
    shell = program(tmp_path / "ms-playwright/chromium_headless_shell-99/linux/chrome-headless-shell")
    assert find_browser(None, environ, own) == shell


def test_the_headless_shell_is_preferred_to_the_whole_browser_on_path(tmp_path: Path) -> None:
    for name in ("google-chrome", "chromium", "chromium-headless-shell"):
        found = program(tmp_path / name)
        assert find_browser(None, {"PATH": str(tmp_path)}, NOWHERE) == found


def test_without_a_browser_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(BrowserNotFoundError, match=r"playwright install chromium.*SCRAPY_EXT_BROWSER"):
        find_browser(None, {"PATH": str(tmp_path)}, NOWHERE)


@pytest.mark.parametrize("named", ["missing", ".", "text"])
def test_a_named_browser_that_is_no_program_is_an_error_that_names_it(tmp_path: Path, named: str) -> None:
    (tmp_path / "text").write_text("not a program")
    with pytest.raises(BrowserNotFoundError, match="--browser names"):
        find_browser(str(tmp_path / named), {"PATH": "/usr/bin"}, NOWHERE)


def test_keys_do_not_reach_other_processes() -> None:
    environ = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "EXTRACT_API_KEY": "s", "AWS_SECRET_ACCESS_KEY": "s"}
    assert clean_environment(environ) == {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C"}
