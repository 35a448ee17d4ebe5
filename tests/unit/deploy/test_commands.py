"""The commands in ``deploy/`` and in the guide: valid options, known variables, and time for jobs to end."""

from __future__ import annotations

import argparse
import configparser
import re
import shlex

import pytest

from scrapy_ext.server.config.command_line import DATABASE_PASSWORD, OPTIONS, SuggestingParser, add_options
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.config.option import Role
from tests.support.deploy_files import COMPOSE, DEPLOY, UNITS, Command, commands, unit

COMMANDS = list(commands())
#: Seconds of a worker after the grace of its jobs (``nodes.node``), and of a server for requests in progress.
LAST_STEPS = 20
#: Files with the address of the database, or with a password beside an address.
DATABASE = {"SERVER_DATABASE_FILE", "SERVER_DATABASE"}


def parsed(words: list[str]) -> argparse.Namespace:
    name, *options = words
    parser = SuggestingParser(prog=name)
    add_options(parser, Role.WORKER if name == "worker" else Role.SERVER)
    return parser.parse_args(options)


def test_all_files_have_commands() -> None:
    assert len(COMMANDS) == 7
    assert {each.words[0] for each in COMMANDS} == {"serve", "worker"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.where)
def test_each_command_is_taken_and_ends_after_its_jobs(command: Command) -> None:
    options = parsed(command.words)
    if command.seconds is not None:
        units = ServerConfig().units if options.units is None else options.units
        grace = (options.stop_grace or ServerConfig().stop_grace) + LAST_STEPS if units else 10
        assert command.seconds >= grace + 5


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.where)
def test_each_variable_is_read_and_no_secret_is_in_the_environment(command: Command) -> None:
    secrets = {option.variable for option in OPTIONS if option.secret} | {DATABASE_PASSWORD}
    files = {f"{name}_FILE" for name in secrets}
    ours = {name for name in command.variables if name not in ("HOME", "XDG_CACHE_HOME")}
    assert ours <= files | {"SERVER_DATABASE"}
    assert "@" not in command.variables.get("SERVER_DATABASE", "").partition(":")[2].replace("scrapy@", "", 1)
    if command.where != "Containerfile":
        assert ours & DATABASE
        keys = {"EXTRACT_API_KEY_FILE", "PLATFORM_API_KEY_FILE"}
        assert ours & keys == (keys if command.words[0] == "serve" else set())  # a worker needs none


def test_the_commands_of_the_guide_are_taken() -> None:
    pages = [DEPLOY.parent / "docs" / "howto" / f"{name}.rst" for name in ("many-machines", "containers", "kubernetes")]
    found = [
        shlex.split(line)
        for page in pages
        for line in re.findall(
            r"(?:scrapy platform|localhost/scrapy-ext) ((?:serve|worker) --[^\n`\\]*)", page.read_text()
        )
    ]
    assert len(found) >= 2
    for words in found:
        parsed(words)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_confined(path: str) -> None:
    parser = configparser.RawConfigParser(strict=False)
    parser.read(path)
    assert set(parser.sections()) == {"Unit", "Service", "Install"}
    read = unit(path)
    for option in ("NoNewPrivileges", "DynamicUser", "PrivateTmp", "ProtectHome"):
        assert read[option] == ["yes"]
    assert read["ProtectSystem"] == ["strict"]
    assert read["CapabilityBoundingSet"] == [""]
    assert read["KillMode"] == ["mixed"]  # else jobs would get SIGTERM, too
    assert "169.254.169.254" in read["IPAddressDeny"][0]


@pytest.mark.parametrize("name", ["server", "worker"])
def test_services_of_compose_are_confined(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert set(service["secrets"]) <= COMPOSE["secrets"].keys()
    named = {value for value in service["environment"].values() if value.startswith("/run/secrets/")}
    assert named == {f"/run/secrets/{secret}" for secret in service["secrets"]}
    assert service["volumes"] == ["/data"]
    assert service["build"]["dockerfile"] == "deploy/Containerfile"
    assert COMPOSE["services"]["database"]["healthcheck"]
    assert service["depends_on"] == {"database": {"condition": "service_healthy"}}


def test_compose_refers_to_what_it_declares() -> None:
    known = {
        "image",
        "build",
        "command",
        "environment",
        "secrets",
        "volumes",
        "networks",
        "shm_size",
        "restart",
        "ports",
    }
    known |= {"stop_grace_period", "healthcheck", "read_only", "cap_drop", "security_opt", "tmpfs", "depends_on"}
    known |= {"mem_limit", "pids_limit"}
    for service in COMPOSE["services"].values():
        assert service.keys() <= known
        assert set(service["networks"]) <= COMPOSE["networks"].keys()
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
        volumes = {volume.partition(":")[0] for volume in service["volumes"] if not volume.startswith("/")}
        assert volumes <= COMPOSE["volumes"].keys()
