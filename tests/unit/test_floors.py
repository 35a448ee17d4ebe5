"""The package stands on floors: no module imports from a floor above its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import scrapy_ext
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.server import extraction

PACKAGE = Path(scrapy_ext.__file__).parent

#: From the ground up, by folder of the package.
FLOORS: dict[str, list[list[str]]] = tomllib.loads(
    (Path(__file__).parents[2] / "docs" / "architecture" / "floors.toml").read_text("utf-8")
)
#: What starts a program may know all of it.
ABOVE = {"__init__", "__main__"}
#: Words that only a module with SQL has, as it is written here: in capitals.
SQL = re.compile(r"\b(SELECT \S+ FROM|SELECT \*|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\b")


#: The module of an import, and the names; much faster than Python's parser.
IMPORT = re.compile(r"^[ \t]*(?:from (\S+) )?import (\([^)]*\)|[^(\n]+)", re.MULTILINE)
COMMENT = re.compile("#.*")


@cache
def imported_by(module: Path) -> frozenset[str]:
    """All that a module imports, with the names that it takes from there."""
    found = IMPORT.findall(COMMENT.sub("", module.read_text("utf-8")))
    return frozenset(
        ".".join(filter(None, (origin, name.split()[0])))
        for origin, names in found
        for name in names.strip("() \n").split(",")
        if name.strip()
    )


def modules(folder: str) -> Iterator[Path]:
    """The modules below a folder of the package, or the one of that name."""
    path = PACKAGE / folder
    yield from sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


@pytest.mark.parametrize("folder", FLOORS)
def test_everything_has_a_floor(folder: str) -> None:
    found = {
        path.stem for path in (PACKAGE / folder).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found - ABOVE == set().union(*map(set, FLOORS[folder]))


@pytest.mark.parametrize("folder", FLOORS)
def test_modules_import_from_floors_below_their_own(folder: str) -> None:
    floor_of = {name: floor for floor, names in enumerate(FLOORS[folder]) for name in names}
    inside = ".".join(filter(None, ["scrapy_ext", *folder.split("/")])) + "."
    wrong = {
        f"{module.relative_to(PACKAGE)} imports {other}"
        for name in floor_of
        for module in modules(f"{folder}/{name}".strip("/"))
        for other in (
            each.removeprefix(inside).split(".")[0] for each in imported_by(module) if each.startswith(inside)
        )
        if other != name and floor_of.get(other, len(floor_of)) >= floor_of[name]
    }
    assert not wrong


@pytest.mark.parametrize(
    ("folder", "foreign"),
    [
        # The contracts are data and rules: whoever reads them opens nothing.
        ("api", {"aiohttp", "asyncio", "asyncpg", "scrapy", "socket", "sqlite3", "starlette", "subprocess", "twisted"}),
        ("client", {"asyncpg", "scrapy", "starlette", "twisted", "uvicorn"}),
        # State machines without I/O, event loop and clock.
        *(
            (f"crawl/commit/{module}", {"aiohttp", "asyncio", "logging", "random", "scrapy", "time", "twisted"})
            for module in ("assignment", "events", "protocol")
        ),
        ("server/jobs", {"starlette", "uvicorn"}),
        ("server/platform", {"asyncpg", "sqlite3"}),
        ("server/store", {"starlette", "uvicorn", "h11", "httpx"}),
        ("server/ui", {"asyncpg", "sqlite3"}),
    ],
)
def test_what_a_folder_knows_nothing_of(folder: str, foreign: set[str]) -> None:
    found = {(module.name, name) for module in modules(folder) for name in imported_by(module)}
    assert not {(module, name) for module, name in found if name.split(".")[0] in foreign}


#: The folders of the server that extraction stands on.
BELOW_EXTRACTION = {"auth", "computing", "config", "extraction", "http", "logs", "metrics", "net"}


def test_extraction_knows_nothing_of_the_platform() -> None:
    """So that it could be shipped alone."""
    found = {name.split(".")[2] for name in _of_extraction("scrapy_ext.server.") if name.count(".") > 2}
    assert found <= BELOW_EXTRACTION
    assert not set(_of_extraction("scrapy_ext.api.platform"))


def _of_extraction(beginning: str) -> Iterator[str]:
    for module in modules("server/extraction"):
        yield from (name for name in imported_by(module) if name.startswith(beginning))


@pytest.mark.parametrize("folder", ["server/computing", "server/net", "server/logs", "server/metrics"])
def test_nothing_of_the_platform_is_below_extraction(folder: str) -> None:
    found = {name for module in modules(folder) for name in imported_by(module)}
    assert not {name for name in found if name.startswith(("scrapy_ext.api.platform.", "scrapy_ext.server.store"))}


def test_the_server_does_not_need_scrapy() -> None:
    needs = {module.name for module in modules("server") if any(n.startswith("scrapy.") for n in imported_by(module))}
    assert needs <= {"spider_list.py"}  # which runs in a project's own environment


def test_nothing_outside_the_extraction_service_knows_its_inside() -> None:
    inside = "scrapy_ext.server.extraction."
    outside = (module for module in modules("") if PACKAGE / "server/extraction" not in module.parents)
    known = {name.removeprefix(inside) for module in outside for name in imported_by(module) if name.startswith(inside)}
    assert known == set(extraction.__all__)


def test_the_tools_of_agents_stand_on_the_api_alone() -> None:
    found = {name for module in modules("server/mcp/tools") for name in imported_by(module)}
    beside = {name for name in found if name.startswith("scrapy_ext.") and not name.startswith("scrapy_ext.api.")}
    assert all(name.startswith("scrapy_ext.server.mcp.") for name in beside)
    assert beside < found


def test_sql_is_written_in_the_store_alone() -> None:
    """Apart from the answers that a crawl has paid for, which the client keeps in a file of its own."""
    written = {module.relative_to(PACKAGE) for module in modules("") if SQL.search(module.read_text("utf-8"))}
    elsewhere = {module for module in written if Path("server/store") not in module.parents}
    assert elsewhere == {Path("client/extraction/ledger_file.py")}
    assert elsewhere < written
