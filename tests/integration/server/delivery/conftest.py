from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archives import S3, s3_server


@pytest.fixture(scope="session")
def s3_of_run() -> Iterator[S3]:
    with s3_server() as s3:
        yield s3


@pytest.fixture
def s3(s3_of_run: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An empty bucket, whose credentials are in the environment."""
    s3_of_run.empty()
    for name, value in s3_of_run.environment.items():
        monkeypatch.setenv(name, value)
    return s3_of_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"
