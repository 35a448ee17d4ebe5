"""A folder that cannot be written is named, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ext.crawl.session.embedded import EmbeddedServer, EmbeddedServerError


def test_a_data_folder_that_cannot_be_written_is_one_line_with_two_remedies(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "platform"
    with pytest.raises(EmbeddedServerError) as raised:
        EmbeddedServer(Settings({"SERVER_DATA": str(folder)}))
    message = str(raised.value)
    assert str(folder) in message
    assert "SERVER_DATA" in message
    assert "PLATFORM_URL" in message
    assert "\n" not in message


def test_no_folder_is_needed_with_a_database(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    EmbeddedServer(
        Settings({"SERVER_DATA": str(tmp_path / "file" / "platform"), "SERVER_DATABASE": "postgresql://u@localhost/a"})
    )
