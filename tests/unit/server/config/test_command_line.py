"""The table of options: command line, environment, settings, help and documentation."""

from __future__ import annotations

import argparse
import re
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest

from scrapy_ext.server.config.command_line import OPTIONS, SuggestingParser, add_options, config_from, table
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.config.option import Option, Role, listen_address
from scrapy_ext.server.net.guard import Guard, GuardRuleError
from tests.support.docs_tables import DOCS

UNITS = {
    "--memory": "a whole number of MiB from 32 to 1000000",
    "--unit-memory": "a whole number of MiB from 1 to 1000000",
    "--connections": "a whole number of connections from 1 to 1000000",
    "--connections-per-address": "a whole number of connections from 1 to 1000000",
    "--client-timeout": "a number of seconds over 0 and below 1000000000",
    "--slow-request": "a number of seconds over 0 and below 1000000000",
    "--job-timeout": "a number of seconds over 0 and below 1000000000",
    "--stop-grace": "a number of seconds over 0 and below 1000000000",
    "--domain-delay": "a number of seconds over 0 and below 1000000000",
    "--rate-limit": "a number of requests per second over 0 and below 1000000000",
    "--extract-rate": "a number of requests per second over 0 and below 1000000000",
    "--domain-rate": "a number of requests per second over 0 and below 1000000000",
    "--key-domain-rate": "a number of requests per second over 0 and below 1000000000",
    "--rate-burst": "a whole number of requests from 1 to 1000000",
    "--domain-requests": "a whole number of requests from 1 to 1000000",
    "--browser-pages": "a whole number of pages from 1 to 1000000",
    "--extraction-processes": "a whole number of processes from 1 to 1000000",
    "--keep-deleted": "a whole number of days from 0 to 1000000",
    "--keep-activity": "a whole number of days from 0 to 1000000",
    "--keep-activity-messages": "a whole number of messages from 1 to 1000000",
    "--keep-deliveries": "a whole number of days from 0 to 1000000",
    "--keep-monitor-results": "a whole number of days from 0 to 1000000",
    "--keep-dead-letters": "a whole number of days from 0 to 1000000",
    "--units": "a whole number of units from 0 to 1000000",
    "--local-project-id": "a whole number from 1 to 1000000",
    "--port": "0 to 65535",
}


def parser_of_server() -> argparse.ArgumentParser:
    parser = SuggestingParser(prog="scrapy platform serve")
    add_options(parser)
    return parser


def test_the_error_of_every_number_names_its_unit_and_its_range(capsys: pytest.CaptureFixture[str]) -> None:
    parser = parser_of_server()
    numbers = {option.options[0]: option.roles for option in OPTIONS if option.options and _is_number(option)}
    assert {name for name, roles in numbers.items() if roles & Role.SERVER} == UNITS.keys()
    assert {name for name, roles in numbers.items() if roles & Role.WORKER} < UNITS.keys()
    for option, message in UNITS.items():
        for wrong in ("banana", "512MB", "65536" if option == "--port" else "-1" if " from 0 " in message else "0"):
            with pytest.raises(SystemExit):
                parser.parse_args([option, wrong])
            said = capsys.readouterr().err.splitlines()
            assert said[-1].startswith(f"scrapy platform serve: error: argument {option}: must be {message}")
            assert said[-1].endswith(f", got '{wrong}'")
            assert len(said) == 2  # not a screenful of options
            assert "see scrapy platform serve --help" in said[0]


def _is_number(option: Option) -> bool:
    """Return True if an option takes a number and not a word."""
    if option.type is bool:
        return False
    try:
        return isinstance(option.reader("100"), int | float)
    except (ValueError, argparse.ArgumentTypeError):
        return False


class _Longer(ServerConfig):
    """A configuration with one option more."""

    cups: Annotated[int, Option(meaning="cups of tea", roles=Role.SERVER, unit="cups", variable="SERVER_CUPS")] = 3


def test_an_entry_of_the_table_is_all_that_an_option_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scrapy_ext.server.config.command_line.OPTIONS", table(_Longer))
    monkeypatch.setattr("scrapy_ext.server.config.command_line.ServerConfig", _Longer)
    parser = parser_of_server()
    assert "--cups N cups of tea (default: 3; environment variable: SERVER_CUPS)" in " ".join(
        parser.format_help().split()
    )
    assert config_from(parser.parse_args([]), {}) == _Longer()
    assert config_from(parser.parse_args([]), {"SERVER_CUPS": "5"}) == _Longer(cups=5)
    assert config_from(parser.parse_args(["--cups", "4"]), {"SERVER_CUPS": "5"}) == _Longer(cups=4)
    with pytest.raises(ConfigError, match=r"SERVER_CUPS: must be a whole number of cups from 1 to 1000000, got 'x'"):
        config_from(parser.parse_args([]), {"SERVER_CUPS": "x"})
    with pytest.raises(SystemExit):
        parser.parse_args(["--cups", "x"])
    assert "argument --cups: must be a whole number of cups from 1 to 1000000, got 'x'" in capsys.readouterr().err


@cache
def help_of(role: Role) -> str:
    parser = argparse.ArgumentParser()
    add_options(parser, role)
    return parser.format_help()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.field)
def test_every_option_is_in_the_help_of_its_commands_and_in_the_documentation(option: Option) -> None:
    page = (DOCS / "reference" / "server-options.rst").read_text("utf-8")
    for role in Role:
        assert all((name in help_of(role)) == bool(option.roles & role) for name in option.options)
    assert all(f"``{name}``" in page for name in (*option.options, option.variable, option.setting) if name)


#: Values of options that do not take any text.
_VALUES = {
    "database": "postgresql://me@host/there",
    "archive_targets": "s3://crawls/archive",
    "public_url": "https://crawls.example",
    "oidc_issuer": "https://login.example",
    "oidc_allowed": "@example.com",
    "oidc_roles": "ops=7:run",
}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SERVER_DATABSE", "SERVER_DATABASE"),
        ("SERVER_PROXYES", "SERVER_PROXIES"),
        ("SERVER_ALLOWED_HOSTS", "SERVER_ALLOW_HOSTS"),
        ("SERVER_OIDC_CLIENT_SECRET_FIL", "SERVER_OIDC_CLIENT_SECRET_FILE"),
    ],
)
def test_a_misspelt_variable_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} is no variable of the server; did you mean '{meant}'\? Rename it"):
        config_from(argparse.Namespace(), {name: "postgresql://crawler@db/crawls"})


@pytest.mark.parametrize("name", ["SERVER_PROXY", "SERVER_PUBLIC_URL_FILE", "SERVER_DATABASE_URL", "SERVER_PUBLIC_IP"])
def test_a_variable_that_may_be_misspelt_is_named(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert config_from(argparse.Namespace(), {name: "x"}) == config_from(argparse.Namespace(), {})
    assert f"{name} is no variable of the server and has no effect here. Rename it" in caplog.text
    assert caplog.text.count("did you mean 'SERVER_") == 1


def test_a_variable_of_another_program_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    environ = dict.fromkeys(("SERVER_NAME", "SERVER_PORT", "SERVER_HOST", "SERVER_SOFTWARE", "SERVER_URL"), "8000")
    assert config_from(argparse.Namespace(), environ) == config_from(argparse.Namespace(), {})
    assert not caplog.text


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.variable], ids=lambda option: option.field)
def test_a_variable_of_the_environment_gives_the_value_of_its_option(option: Option) -> None:
    text = _VALUES.get(option.field, "value")
    config = config_from(argparse.Namespace(), {option.variable: text})
    assert getattr(config, option.field) in (option.reader(text), (text,))


def test_a_target_with_credentials_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match=r"SERVER_ARCHIVE_TARGETS: must have no credentials") as caught:
        config_from(argparse.Namespace(), {"SERVER_ARCHIVE_TARGETS": "s3://crawls,s3://key:secret@crawls"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.setting], ids=lambda option: option.field)
def test_a_setting_comes_before_the_environment(option: Option) -> None:
    wrong = "postgresql://me@host/other" if option.field == "database" else "other"
    value = option.value if option.value else option.reader("postgresql://me@host/there")
    given = [value] if option.repeatable else value
    config = config_from(
        argparse.Namespace(), {option.variable: wrong} if option.variable else {}, {option.setting: given}
    )
    expected = (str(value), wrong) if option.secret else (str(value),)  # secrets of the environment are added
    assert getattr(config, option.field) == (expected if option.repeatable else value)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"allow_hosts": ["banana"]}, "--allow-host 'banana' must"), ({"connect_to": ["x"]}, "--connect-to 'x' must")],
)
def test_rules_that_cannot_be_read_are_named_as_their_options(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(GuardRuleError, match=re.escape(message)):
        Guard(**options)  # type: ignore[arg-type]


SECRET = [option for option in OPTIONS if option.secret]


@pytest.mark.parametrize("option", SECRET, ids=lambda option: option.field)
def test_a_secret_may_come_from_a_file(option: Option, tmp_path: Path) -> None:
    text = "postgresql://me@host/there" if option.field == "database" else "sesame"
    file = tmp_path / "secret"
    file.write_text(f"{text}\n")  # as editors and echo end it
    named = {f"{option.variable}_FILE": str(file)}
    given = getattr(config_from(argparse.Namespace(), named), option.field)
    assert given in (option.reader(text), (text,))
    # The variable itself comes first: the processes of jobs get their own keys.
    first = {**named, option.variable: f"{text}2"}
    assert getattr(config_from(argparse.Namespace(), first), option.field) != given


def test_the_password_of_the_database_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sesame")
    given = {"SERVER_DATABASE": "postgresql://me@host/there", "PGPASSWORD_FILE": str(tmp_path / "secret")}
    database = config_from(argparse.Namespace(), given).database
    assert database is not None
    assert database.secret == "postgresql://me@host/there?password=sesame"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read"), (b" \n", "is empty"), (b"\xff", "is not text"), (b"x" * 70_000, "is longer than")],
)
def test_a_file_without_a_secret_is_named(content: bytes | None, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"PLATFORM_API_KEY_FILE names {file}, which {reason}.*set PLATFORM_API_KEY"):
        config_from(argparse.Namespace(), {"PLATFORM_API_KEY_FILE": str(file)})


@pytest.mark.parametrize("text", ["8700", ":8700", "host:", "host:70000", "::1:8700", "[::1:8700"])
def test_an_address_to_listen_on_has_a_host_and_a_port(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be HOST:PORT"):
        listen_address(text)
    assert listen_address("0.0.0.0:0") == "0.0.0.0:0"
    assert listen_address("[::1]:8700") == "[::1]:8700"
