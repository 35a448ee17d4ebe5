"""Switches the add-on on in each process of the environment that runs Scrapy's tests.

A ``.pth`` file of that environment imports this module when an interpreter starts: commands and scripts that the tests
start are wired as the tests themselves are. Nothing of Scrapy is imported here, because a test may look at what is;
a module is changed when it is loaded.

``SCRAPY_SUITE_WIRING`` names the wiring, and ``SCRAPY_SUITE_NOTES`` the folder for what the processes note. Without the
first, Scrapy is left as it is: that is the run to compare with.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

# Read at the start, for some tests clear the environment.
WIRING: Final = os.environ.get("SCRAPY_SUITE_WIRING")
_NOTES: Final = os.environ.get("SCRAPY_SUITE_NOTES")
_COMMAND_SECONDS: Final = 120
_TEST: Final = "PYTEST_CURRENT_TEST"


def _switch_on(defaults: ModuleType) -> None:
    defaults.ADDONS = {"scrapy_suite_addon.Addon": 500}


def _note_crawlers(module: ModuleType) -> None:
    """Note which tests have a crawler: nothing else can see an add-on."""
    construct = module.Crawler.__init__

    def noted(self: Any, *arguments: Any, **named: Any) -> None:
        _note("crawlers")
        construct(self, *arguments, **named)

    module.Crawler.__init__ = noted


def _note_stats(module: ModuleType) -> None:
    """Note what the add-on did in each crawl."""
    close = module.StatsCollector.close_spider

    def noted(self: Any, *arguments: Any, **named: Any) -> None:
        _note("stats", stats={name: value for name, value in self._stats.items() if isinstance(value, int)})
        close(self, *arguments, **named)

    module.StatsCollector.close_spider = noted


def _name_host(module: ModuleType) -> None:
    """Let mock servers be known by name, for the extraction API takes no addresses for hosts."""
    construct = module.BaseMockServer.__init__

    def named(self: Any) -> None:
        construct(self)
        self.host = "localhost"

    module.BaseMockServer.__init__ = named


def _wait_longer(module: ModuleType) -> None:
    """Let commands take longer than the 15 seconds that they have there: the machine may be busy."""
    import subprocess

    def run(*arguments: Any, **named: Any) -> Any:
        return subprocess.run(*arguments, **{**named, "timeout": _COMMAND_SECONDS})  # noqa: PLW1510  # by the caller

    module.subprocess = SimpleNamespace(**{**vars(subprocess), "run": run})


def _note(kind: str, **what: Any) -> None:
    # Of a process that has no such test any more, the mock servers for example, nobody needs notes.
    test = os.environ.get(_TEST, "").rpartition(" ")[0]
    if not test or _NOTES is None:
        return
    line = json.dumps({"test": test, **what}) + "\n"
    with Path(_NOTES, f"{kind}-{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line)


_CHANGES: Final[dict[str, Callable[[ModuleType], None]]] = {"tests.utils.cmdline": _wait_longer}
if _NOTES:
    _CHANGES["scrapy.crawler"] = _note_crawlers
    _CHANGES["scrapy.statscollectors"] = _note_stats
if WIRING:
    _CHANGES["scrapy.settings.default_settings"] = _switch_on
if WIRING in ("extraction", "everything"):
    _CHANGES["tests.mockserver.http_base"] = _name_host


class _Loader(importlib.abc.Loader):
    """The loader of a module, with the change afterwards."""

    def __init__(self, loader: importlib.abc.Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)

    def __getattr__(self, name: str) -> Any:
        # Such as get_data and get_filename, by which tests and linecache read sources.
        return getattr(self._loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = _CHANGES.get(name)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, change)
        return spec


sys.meta_path.insert(0, _Finder())
