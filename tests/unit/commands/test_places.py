"""Places that cannot be written, and parts that are not installed, are reported with a remedy."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from scrapy_ext.api.violations import ContractError
from scrapy_ext.crawl.session import project
from scrapy_ext.server.monitors import sending
from scrapy_ext.server.store import StoreError
from scrapy_ext.server.store.engine.opening import open_engine


def refused(path: Path, *_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system", str(path))


def test_the_data_directory_of_a_project_that_cannot_be_written_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr("os.makedirs", refused)
    assert project.project_data("platform") == tmp_path / ".scrapy" / "platform"


async def test_a_data_directory_that_cannot_be_written_is_named_with_two_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(StoreError) as error:
        await open_engine(tmp_path / "data")
    message = str(error.value)
    assert "\n" not in message
    assert all(part in message for part in (str(tmp_path / "data"), "--data", "SERVER_DATA", "PLATFORM_URL"))


def test_a_receiver_of_alerts_is_refused_without_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    sending.check_installed()
    monkeypatch.setattr(sending, "find_spec", lambda _: None)
    with pytest.raises(ContractError, match=r"pip install .scrapy-ext\[alerts\]"):
        sending.check_installed()
