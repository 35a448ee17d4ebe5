"""The folders of automatic extraction stand on floors, and no module imports from a floor above its own."""

import ast
from pathlib import Path

import pytest

from scrapy_ext.server.extraction import auto

FOLDER = Path(auto.__file__).parent
#: From the ground up. Folders of one floor do not know each other.
FLOORS = (
    {"ground"},
    {"fields"},
    {"labelled", "articles", "navigation", "forum", "search"},
    {"products", "jobs", "content", "attributes"},
    {"lists"},
    {"kinds"},
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def imported_by(module: Path) -> set[str]:
    """The folders of automatic extraction that a module imports from."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    inside = f"{auto.__name__}."
    return {name.removeprefix(inside).split(".")[0] for name in names if name.startswith(inside)}


def test_every_folder_has_a_floor() -> None:
    found = {path.stem for path in FOLDER.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert found - {"__init__", "__pycache__"} == set(FLOOR_OF)


@pytest.mark.parametrize("name", FLOOR_OF)
def test_modules_import_from_their_own_folder_and_from_floors_below(name: str) -> None:
    modules = list((FOLDER / name).rglob("*.py")) or [FOLDER / f"{name}.py"]
    wrong = {
        f"{module.relative_to(FOLDER)} imports {other}"
        for module in modules
        for other in imported_by(module) - {name}
        if FLOOR_OF.get(other, len(FLOORS)) >= FLOOR_OF[name]
    }
    assert not wrong
