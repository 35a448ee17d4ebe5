"""Commands about a store, in a project whose platform is elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ext.commands.platform import load, parser_of

REMOTE = "https://platform.example"


async def run(name: str, *arguments: str, settings: dict[str, str]) -> int:
    """A subcommand, as Scrapy runs it."""
    chosen = load(name)
    return await asyncio.to_thread(chosen.run, Settings(settings), parser_of(chosen).parse_args([*arguments]))


@pytest.mark.parametrize("setting", ["PLATFORM_URL", "PLATFORM_APP_URL", "PLATFORM_STORAGE_URL"])
@pytest.mark.parametrize(
    "command", [("backup", "b.db"), ("restore", "b.db"), ("vacuum",), ("keys", "add", "x"), ("keys", "list")]
)
async def test_they_refuse_and_touch_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str, command: tuple[str, ...]
) -> None:
    settings = {setting: REMOTE, "SERVER_DATA": str(tmp_path / "own")}
    assert await run(*command, settings=settings) == 1
    said = capsys.readouterr()
    assert f"{setting} is set, and `scrapy platform {command[0]}` is about a store on this machine" in said.err
    assert "--local" in said.err
    assert (said.out, [*tmp_path.iterdir()]) == ("", [])


@pytest.mark.parametrize("chosen", ["--local", "--data"])
async def test_they_work_on_the_store_that_is_named(tmp_path: Path, chosen: str) -> None:
    own = tmp_path / "own"
    named = [chosen] if chosen == "--local" else [chosen, str(own)]
    settings = {"PLATFORM_URL": REMOTE, "SERVER_DATA": str(own if chosen == "--local" else tmp_path / "other")}
    assert await run("keys", "add", "reports", *named, settings=settings) == 0
    assert await run("backup", str(tmp_path / "b.db"), *named, settings=settings) == 0
    assert await run("vacuum", *named, settings=settings) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"own", "b.db"}
