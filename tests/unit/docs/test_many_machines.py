"""Files of docs/howto/many-machines for other programs: valid commands, and units that give jobs time to end."""

from __future__ import annotations

import argparse
import configparser
import json
import re
import shlex
from pathlib import Path

import pytest

from scrapy_ext.server.config.command_line import add_options
from scrapy_ext.server.config.option import Role

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "howto" / "many-machines"


def commands() -> list[list[str]]:
    """Arguments of each ``scrapy platform`` in the files."""
    page = FOLDER.with_suffix(".rst").read_text()
    found = [shlex.split(line) for line in re.findall(r"scrapy platform ((?:serve|worker) --[^\n`]*)", page)]
    for unit in FOLDER.glob("*.service"):
        found += [shlex.split(line) for line in re.findall(r"ExecStart=\S+/scrapy platform (.*)", unit.read_text())]
    dockerfile, compose = (FOLDER / name for name in ("Dockerfile", "compose.yaml"))
    found += [json.loads(words) for words in re.findall(r"^CMD (\[.*\])", dockerfile.read_text(), re.MULTILINE)]
    listed = re.findall(r"command: (\[\"(?:serve|worker).*\])", compose.read_text())
    return found + [json.loads(words) for words in listed]


def test_each_command_is_taken() -> None:
    found = commands()
    assert len(found) == 7
    for name, *words in found:
        parser = argparse.ArgumentParser(prog=name)
        add_options(parser, Role.WORKER if name == "worker" else Role.SERVER)
        parser.parse_args(words)


@pytest.mark.parametrize("unit", ["scrapy-serve", "scrapy-worker"])
def test_units_end_after_their_jobs(unit: str) -> None:
    read = configparser.ConfigParser(interpolation=None, strict=True)
    read.optionxform = str  # type: ignore[assignment]
    read.read(FOLDER / f"{unit}.service")
    service = read["Service"]
    grace = re.search(r"--stop-grace (\d+)", service["ExecStart"])
    assert int(service["TimeoutStopSec"]) > int(grace[1] if grace else 30)
    assert {"Unit", "Service", "Install"} == set(read.sections())
