"""Wrong options of the server's commands, and weak keys, with a real server."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

import pytest

from scrapy_ext.server.auth.api_keys import weak_keys
from scrapy_ext.server.config.config import MIN_MEMORY
from tests.support import packed_projects as packed
from tests.support.http import Http
from tests.support.servers import RunningServer, command, without_keys


@pytest.mark.parametrize("words", [["--units", "none"], ["worker", "--units", "none"], ["worker"], ["--porte", "1"]])
@pytest.mark.long(keep=1)
def test_a_wrong_call_of_the_server_alone_is_answered_in_two_lines(words: list[str]) -> None:
    done = subprocess.run(command(*words), capture_output=True, text=True, env=without_keys(), timeout=300, check=False)
    usage, error = done.stderr.splitlines()
    assert done.returncode == 2
    assert usage.startswith("usage: python -m scrapy_ext.server")
    assert usage.endswith("--help")
    assert ": error: " in error


@pytest.mark.long
async def test_a_version_can_be_deployed_with_the_least_memory_that_may_be_given(tmp_path: Path) -> None:
    with RunningServer(tmp_path, options=["--memory", str(MIN_MEMORY), "--no-runner"]) as server:
        part = b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
        body = part % (b"version", b"", b"1.0") + part % (b"archive", b'; filename="a"', packed.folder()) + b"--b--\r\n"
        async with Http(server.url, server.platform_key) as http:
            answer = await http.post("/api/projects/1/versions", body, Content_Type="multipart/form-data; boundary=b")
            assert answer.status == 201, answer.text
            answer = await http.post("/jobs/1/1/1", b"[" + b"[]," * 300_000 + b"0]")
            assert answer.status == 413
            assert "start the server with a larger --memory" in answer.text


@pytest.mark.long
def test_a_short_key_and_one_of_two_services_are_reported_at_the_start(tmp_path: Path) -> None:
    assert weak_keys("a" * 16, "b" * 16) == weak_keys(None, None) == weak_keys(secrets.token_hex(8), None) == ""
    with RunningServer(
        tmp_path, keys=False, environment={"EXTRACT_API_KEY": "guessable", "PLATFORM_API_KEY": "guessable"}
    ) as server:
        warnings = [line for line in server.log().splitlines() if "WARNING" in line]
    assert len(warnings) == 1
    assert "EXTRACT_API_KEY is shorter than 16 characters" in warnings[0]
    assert "are the same" in warnings[0]
    assert "guessable" not in server.log()
