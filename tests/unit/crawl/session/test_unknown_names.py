"""Warnings of names in a project's ``.env`` that nothing reads."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ext.crawl.session.unknown_names import UnknownNames, of_dotenv


def test_a_typo_in_any_part_of_a_name_is_reported_and_names_of_others_are_not() -> None:
    found = list(
        of_dotenv(["PLATFROM_URL", "EXTRACT_API_KYE", "PLATFORM_API_KEY_FILE", "DATABASE_URL", "AWS_SECRET_KEY"])
    )
    assert [each.rpartition(" ")[2] for each in found] == ["PLATFORM_URL?", "EXTRACT_API_KEY?"]


def test_a_setting_among_the_meta_of_a_request_is_named_as_one(caplog: pytest.LogCaptureFixture) -> None:
    UnknownNames(Settings()).check_meta({"extract_api_params": {}, "frontier_max_attempts": 2, "depth": 1})
    assert [record.getMessage() for record in caplog.records] == [
        "The meta key extract_api_params is not read by scrapy-ext. EXTRACT_API_PARAMS is a setting, for all requests."
    ]


def test_a_crawl_warns_of_the_file_and_of_a_key_without_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".env").write_text("PLATFROM_URL=http://127.0.0.1:1\nPLATFORM_API_KEY=secret\n")
    monkeypatch.chdir(tmp_path)
    for name in ("PLATFORM_URL", "PLATFORM_API_KEY", "EXTRACT_API_URL", "EXTRACT_API_KEY", "SHUB_JOBKEY"):
        monkeypatch.delenv(name, raising=False)
    with caplog.at_level(logging.WARNING):
        names = UnknownNames(Settings())
        names.check_dotenv()
        names.check_settings()
    assert [record.getMessage() for record in caplog.records] == [
        "The variable PLATFROM_URL in .env is not read by scrapy-ext. Did you mean PLATFORM_URL?",
        "PLATFORM_API_KEY has no effect without PLATFORM_URL: the embedded service is used.",
    ]
