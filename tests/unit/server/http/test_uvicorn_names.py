"""The names of uvicorn that are not public: each is listed, and checked before the server starts."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import uvicorn
from packaging.requirements import Requirement
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.server.config.config import ServerConfig
from scrapy_ext.server.http import uvicorn_names
from scrapy_ext.server.http.protocol import BoundedProtocol, _Flow
from scrapy_ext.server.http.uvicorn_names import NAMES, SUPPORTED, unsupported
from scrapy_ext.server.launch import start

ROOT = Path(__file__).parents[4]
#: The methods of a protocol of asyncio.
ASYNCIO = {"connection_lost", "connection_made", "data_received", "pause_writing", "resume_writing"}


def of(name: str) -> set[str]:
    (path,) = (path for path in NAMES if path.endswith(f".{name}"))
    return set(NAMES[path])


def used_by(inspected: type) -> Iterator[tuple[str, str]]:
    """Yield each attribute that a class uses, with the name of its object; ``self`` also for those of ``super()``."""
    for node in ast.walk(ast.parse(inspect.getsource(inspected))):
        if isinstance(node, ast.Attribute):
            match node.value:
                case ast.Name(id="self") | ast.Call(func=ast.Name(id="super")):
                    yield "self", node.attr
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name, node.attr


def test_this_release_has_all_names() -> None:
    assert unsupported() == ""


@pytest.mark.parametrize(("extended", "base"), [(BoundedProtocol, HttpToolsProtocol), (_Flow, FlowControl)])
def test_each_name_that_is_used_is_listed(extended: type, base: type) -> None:
    used = set(used_by(extended))
    own = {*vars(extended), *extended.__annotations__, "_protocol"} - set(vars(base))
    replaced = {name for name in {*vars(extended)} & {*vars(base)} if not name.startswith("__")}
    inherited = {name for owner, name in used if owner == "self"} - own - {"__init__"}
    assert inherited | replaced <= of(base.__name__) | ASYNCIO
    assert {name for owner, name in used if owner == "cycle"} <= of("RequestResponseCycle")
    assert {name for owner, name in used if owner == "flow"} <= of("FlowControl")


@pytest.mark.parametrize(
    ("owner", "name", "lost"),
    [
        (HttpToolsProtocol, "on_response_complete", "HttpToolsProtocol.on_response_complete"),
        (FlowControl, "resume_reading", "FlowControl.resume_reading"),
        (uvicorn.Server, "startup", "Server.startup"),
        (uvicorn.protocols.http.httptools_impl, "RequestResponseCycle", "httptools_impl.RequestResponseCycle"),
    ],
)
def test_a_server_does_not_start_on_a_release_without_a_name(
    owner: object, name: str, lost: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(owner, name)
    assert start(ServerConfig()) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: uvicorn {version('uvicorn')} has no ")
    assert f"{lost}; the server needs {SUPPORTED}" in error


def test_an_attribute_that_is_set_later_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        uvicorn_names, "NAMES", {"uvicorn.protocols.http.httptools_impl.HttpToolsProtocol": ("cycle", "url", "gone")}
    )
    assert "has no HttpToolsProtocol.gone;" in unsupported()


def test_the_checked_releases_are_the_declared_and_the_tested_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert SUPPORTED in project["optional-dependencies"]["server"]
    oldest, above = sorted(Requirement(SUPPORTED).specifier, key=lambda each: each.operator, reverse=True)
    assert f'"uvicorn=={oldest.version}.0"' in (ROOT / "noxfile.py").read_text("utf-8")
    assert above.operator == "<"
