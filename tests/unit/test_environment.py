"""Variables of the project's ``.env``."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.crawl.session.services import Configured
from scrapy_ext.settings import SettingError

FILE = """\
# keys of this project
EXTRACT_API_URL="https://extract.example/v1"
EXTRACT_API_KEY='key of the service' # not that of the platform
export PLATFORM_URL=https://platform.example
PLATFORM_API_KEY=abc
PLATFORM_PROJECT=7
SERVER_ALLOW_HOSTS=a:1,b:2
OTHER=of something else
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project with a file, which is the current folder."""
    for name in {*names.VARIABLES, "SHUB_JOBKEY"} & set(os.environ):
        monkeypatch.delenv(name)
    folder = tmp_path / "project"
    (folder / "shop").mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (folder / ".env").write_text(FILE)
    monkeypatch.chdir(folder)
    return folder


def test_keys_and_addresses_come_from_the_file(project: Path) -> None:
    (project / ".env").write_text(FILE.replace("'key of the service'", "'key'"))
    found = Configured.read(BaseSettings())
    assert (found.extract_url, found.extract_key) == ("https://extract.example/v1", "key")
    assert (found.platform_key, found.project) == ("abc", 7)
    assert found.platform_urls is not None
    assert found.platform_urls.storage == "https://platform.example"
    assert names.SETTINGS["SERVER_ALLOW_HOSTS"].read(BaseSettings()) == ["a:1", "b:2"]
    assert "PLATFORM_API_KEY" not in os.environ
    assert "OTHER" not in names.variables()


def test_settings_win_over_the_environment_and_that_over_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_PROJECT", "8")
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 8
    assert names.PLATFORM_PROJECT.read(BaseSettings({"PLATFORM_PROJECT": 9})) == 9
    monkeypatch.setenv("PLATFORM_URL", "")
    assert names.PLATFORM_URL.read(BaseSettings()) is None


def test_the_file_of_the_project_counts_in_its_folders_and_none_above(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "shop")
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 7
    (project / ".env").rename(project.parent / ".env")
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 1
    monkeypatch.chdir(project.parent)
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 7


def test_the_file_of_another_user_counts_in_a_project_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 7
    (project / ".env").rename(project.parent / ".env")
    monkeypatch.chdir(project.parent)
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 1


def test_a_removed_folder_has_no_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 1
    monkeypatch.chdir(project)


def test_a_change_of_the_file_is_seen_and_a_folder_is_none(project: Path) -> None:
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 7
    (project / ".env").write_text("PLATFORM_PROJECT=123")
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 123
    (project / ".env").unlink()
    (project / ".env").mkdir()
    assert names.PLATFORM_PROJECT.read(BaseSettings()) == 1


def test_the_job_of_a_platform_does_not_read_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHUB_JOBKEY", "1/2/3")
    assert names.PLATFORM_API_KEY.read(BaseSettings()) is None


@pytest.mark.parametrize("text", ["A=1\n\n# keys\nPLATFORM_API_KEY 'secret\n", 'B="x"\n\n\nPLATFORM_API_KEY="secret\n'])
def test_a_malformed_line_is_named_without_its_value(project: Path, text: str) -> None:
    (project / ".env").write_text(text)
    with pytest.raises(SettingError, match=r"/\.env has a malformed line 4\. Write NAME=VALUE") as raised:
        names.PLATFORM_API_KEY.read(BaseSettings())
    assert "secret" not in str(raised.value)


def test_a_malformed_line_of_something_else_is_ignored(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    (project / ".env").write_text("hello 'there\nPLATFORM_API_KEY=abc\n")
    with caplog.at_level(logging.WARNING):
        assert names.PLATFORM_API_KEY.read(BaseSettings()) == "abc"
    assert [record.name for record in caplog.records] == ["scrapy_ext.environment"]
    assert "malformed line 1, which is ignored" in caplog.text
    assert "there" not in caplog.text


@pytest.mark.parametrize(
    ("data", "rule"), [(b"PLATFORM_URL=\xff\xfe\n", "is not UTF-8 text"), (b"#" * 2**21, "has over 1048576 bytes")]
)
def test_another_kind_of_file_is_refused(project: Path, data: bytes, rule: str) -> None:
    (project / ".env").write_bytes(data)
    with pytest.raises(SettingError, match=rule):
        names.PLATFORM_URL.read(BaseSettings())


def test_a_value_may_name_another(project: Path) -> None:
    (project / ".env").write_text("PLATFORM_URL=http://h:1\nEXTRACT_API_URL=${PLATFORM_URL}/v1\n")
    assert names.EXTRACT_API_URL.read(BaseSettings()) == "http://h:1/v1"
