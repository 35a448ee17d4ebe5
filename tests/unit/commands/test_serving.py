"""The settings and options that ``scrapy platform serve`` and ``worker`` pass on to the server's code."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.cmdline import execute

from scrapy_ext.server.config.config import ServerConfig

DATABASE = ("--database", "postgresql://nobody@127.0.0.1:9/nothing")


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ServerConfig]:
    """The configurations that were to be run."""
    configs: list[ServerConfig] = []

    def serve(config: ServerConfig) -> int:
        configs.append(config)
        return 0

    monkeypatch.setattr("scrapy_ext.server.serve.serve", serve)
    monkeypatch.chdir(tmp_path)
    return configs


@pytest.mark.parametrize("command", ["serve", "worker"])
@pytest.mark.parametrize(
    ("arguments", "environment", "allowed"),
    [
        (("-s", "SERVER_ALLOW_HOSTS=shop.internal:80,localhost:8610"), "", ("shop.internal:80", "localhost:8610")),
        (("--allow-host", "localhost:1"), "", ("localhost:1",)),
        ((), "shop.internal:80,localhost:8610", ("shop.internal:80", "localhost:8610")),
        (("-s", "SERVER_ALLOW_HOSTS=localhost:1"), "localhost:2", ("localhost:1",)),
        ((), "", ()),
    ],
    ids=["setting", "option", "environment", "setting over environment", "nothing"],
)
def test_hosts_that_may_be_fetched_come_from_settings_options_and_environment(
    configured, monkeypatch, command, arguments, environment, allowed
) -> None:
    monkeypatch.setenv("SERVER_ALLOW_HOSTS", environment)
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "platform", command, *DATABASE, *arguments])
    assert not ended.value.code
    assert configured[0].allow_hosts == allowed
    assert configured[0].worker == (command == "worker")


def test_a_server_takes_keys_from_the_file_of_the_project(configured, monkeypatch, tmp_path) -> None:
    for name in ("EXTRACT_API_KEY", "PLATFORM_API_KEY", "SERVER_DATABASE", "SHUB_JOBKEY"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / ".env"
    file.write_text("EXTRACT_API_KEY=one\nPLATFORM_API_KEY=two\nSERVER_DATABASE=postgresql://nobody@127.0.0.1:9/x\n")
    with pytest.raises(SystemExit):
        execute(["scrapy", "platform", "serve", "--port", "0"])
    assert (configured[0].extract_key, configured[0].platform_key) == ("one", "two")
    assert str(configured[0].database) == "postgresql://nobody@127.0.0.1:9/x"
    with pytest.raises(SystemExit):
        execute(["scrapy", "platform", "serve", "--data", "here", "--platform-key", "three"])
    assert (configured[1].platform_key, configured[1].database) == ("three", None)
    file.write_text("EXTRACT_API_KEY 'one\n")
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "platform", "serve"])
    assert ended.value.code == 1


def test_a_worker_takes_all_that_the_project_sets_for_extraction(configured) -> None:
    wanted = {
        "SERVER_CONNECT_TO": "*:443=127.0.0.1:1",
        "SERVER_PROXIES": "*:*=http://proxy:1",
        "SERVER_VERIFY_TLS": "0",
    }
    settings = [word for name, value in wanted.items() for word in ("-s", f"{name}={value}")]
    with pytest.raises(SystemExit):
        execute(["scrapy", "platform", "worker", *DATABASE, *settings])
    config = configured[0]
    assert (config.connect_to, config.proxies, config.verify_tls) == (
        ("*:443=127.0.0.1:1",),
        ("*:*=http://proxy:1",),
        False,
    )
