"""Names of spiders and jobs for completion in shells: ``python -m scrapy_ext.commands.shells.names KIND``.

A shell waits for the output, so the module imports no large library and no code of the project. Spiders are found in
the source of their modules, jobs by one request to the platform of PLATFORM_URL. A failure gives no names.
"""

from __future__ import annotations

import ast
import base64
import configparser
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: Maximum files read, and seconds to wait for the platform.
_MOST_FILES: Final = 500
_TIMEOUT: Final = 2.0
_MOST_JOBS: Final = 50


def spiders(folder: Path) -> list[str]:
    """Return the names of the spiders of the project that contains a folder."""
    names: set[str] = set()
    root, settings = _project(folder)
    if root is None:
        return []
    for module in _strings(settings.get("SPIDER_MODULES")):
        path = root / Path(*module.split("."))
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for file in files[:_MOST_FILES]:
            names |= set(_named(file))
    return sorted(names)


def _named(file: Path) -> Iterator[str]:
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.Assign | ast.AnnAssign):
                    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                    value = statement.value
                    if any(isinstance(target, ast.Name) and target.id == "name" for target in targets) and isinstance(
                        value, ast.Constant
                    ):
                        yield from (str(value.value),) if isinstance(value.value, str) else ()


def jobs(folder: Path) -> list[str]:
    """Return the keys of the newest jobs on the platform of the environment or of the project's settings."""
    import json
    from urllib.request import Request, urlopen

    from dotenv import dotenv_values

    root, settings = _project(folder)
    file = dotenv_values((root or folder) / ".env")
    found = {
        name: settings.get(name) or os.environ.get(name, file.get(name))
        for name in ("PLATFORM_URL", "PLATFORM_APP_URL", "PLATFORM_API_KEY", "PLATFORM_PROJECT")
    }
    url = found["PLATFORM_APP_URL"] or found["PLATFORM_URL"]
    if not url or not str(url).startswith(("http://", "https://")):
        return []
    project = int(found["PLATFORM_PROJECT"] or 1)
    address = f"{str(url).rstrip('/')}/api/jobs/list.json?project={project}&count={_MOST_JOBS}"
    key = base64.b64encode(f"{found['PLATFORM_API_KEY'] or ''}:".encode()).decode()
    with urlopen(Request(address, headers={"Authorization": f"Basic {key}"}), timeout=_TIMEOUT) as answer:  # noqa: S310
        listed = json.load(answer)
    return [str(job["id"]) for job in listed["jobs"]]


def _project(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the folder of the project, and its settings that are literals."""
    for root in (folder, *folder.parents):
        file = root / "scrapy.cfg"
        if file.is_file():
            config = configparser.ConfigParser()
            config.read(file)
            name = config.get("settings", os.environ.get("SCRAPY_PROJECT") or "default", fallback="")
            path = root / Path(*name.split("."))
            return root, _literals(path.with_suffix(".py"))
    return None, {}


def _literals(file: Path) -> dict[str, Any]:
    values = {}
    for statement in _parsed(file).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                values[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                continue  # Computed at run time.
    return values


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _strings(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []


def main(kind: str) -> None:
    """Print the names of a kind, one per line."""
    names = {"spiders": spiders, "jobs": jobs}[kind](Path.cwd())
    # A shell would interpret other characters.
    sys.stdout.write("".join(f"{name}\n" for name in names if re.fullmatch(r"[\w./:+-]+", name)))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception:
        sys.exit(1)
