"""Users of deployed code, and files that pip is configured with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.jobs.confining import Confining, Policy, paths_of_pip


def test_a_user_that_there_is_not_is_named() -> None:
    with pytest.raises(ConfigError, match="no such user"):
        Confining(Policy(user="nobody-like-this"))


def test_projects_have_users_of_their_own_where_the_server_is_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    first, second = Confining().user(1), Confining().user(2)
    assert None not in (first, second)
    assert first != second
    assert Confining(Policy(user="none")).user(1) is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Confining().user(1) is None


def test_files_and_folders_that_pip_is_configured_with_are_readable(tmp_path: Path) -> None:
    wheels, index, configuration = tmp_path / "wheels", tmp_path / "index", tmp_path / "pip.conf"
    wheels.mkdir()
    index.mkdir()
    configuration.write_text(
        f"[global]\nextra-index-url =\n    https://u:p@pypi.example/simple\n    file://{index}\ncache-dir = /\n"
    )
    environment = {"PIP_FIND_LINKS": f"{wheels} /nothing/there", "PIP_CACHE_DIR": "/", "HOME": "/root"}
    missing = tmp_path / "none.conf"
    assert paths_of_pip(environment, [configuration, missing]) == [str(wheels), str(index)]
