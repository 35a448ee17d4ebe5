"""Checks of what is installed, of the project's settings, and of its ``.env``."""

from __future__ import annotations

import logging
import os
import platform
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ext import environment
from scrapy_ext import settings as names
from scrapy_ext.commands.doctor.checking import Check, Finding, in_thread, ok, problem, warning
from scrapy_ext.crawl.session import unknown_names
from scrapy_ext.crawl.session.project import project_folder
from scrapy_ext.server.config.secret_files import SUFFIX
from scrapy_ext.settings import SETTINGS, VARIABLES, Setting, SettingError

_PACKAGE: Final = "scrapy-ext"
_ADDONS: Final = ("scrapy_ext.Addon", "scrapy_ext.addon.Addon")
#: Prefix of the modules of components that are set by hand.
_COMPONENTS: Final = "scrapy_ext."
_COMPONENT_SETTINGS: Final = ("DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS", "SPIDER_MIDDLEWARES")
_REACTOR: Final = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
_KEYS: Final = (names.EXTRACT_API_KEY, names.PLATFORM_API_KEY)


def checks(settings: BaseSettings, *, server: bool, wrong: Sequence[SettingError] = ()) -> list[Check]:
    """Return the checks. ``server``: the libraries of the server are needed. ``wrong``: settings that those who read
    them together cannot use."""
    return [
        in_thread("versions", lambda: _versions(server=server)),
        in_thread("project", lambda: _project(settings)),
        in_thread("settings", lambda: _settings(settings, wrong)),
        in_thread(".env", _dotenv),
    ]


def _versions(*, server: bool) -> Iterator[Finding]:
    yield ok(
        "versions",
        f"Python {platform.python_version()} on {platform.system()}, {_installed(_PACKAGE, 'Scrapy', 'Twisted')}",
    )
    try:
        required = requires(_PACKAGE) or []
        python = SpecifierSet(metadata(_PACKAGE)["Requires-Python"] or "")
    except PackageNotFoundError:
        yield problem("versions", f"{_PACKAGE} is not installed, only imported", f"pip install {_PACKAGE}")
        return
    if not python.contains(platform.python_version(), prereleases=True):
        yield problem("versions", f"Python {platform.python_version()} is not supported", f"Use Python {python}.")
    yield from _unmet([Requirement(text) for text in required], "server" if server else "")


def _installed(*packages: str) -> str:
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _unmet(required: Sequence[Requirement], extra: str) -> Iterator[Finding]:
    """Yield a problem for each package that is missing or has another version."""
    for each in required:
        if each.marker is not None and not each.marker.evaluate({"extra": extra}):
            continue
        of_extra = each.marker is not None and "extra" in str(each.marker)
        install = (
            f'pip install "{_PACKAGE}[{extra}]"'
            if of_extra
            else f"pip install {shlex.quote(f'{each.name}{each.specifier}')}"
        )
        try:
            found = version(each.name)
        except PackageNotFoundError:
            yield problem("versions", f"{each.name} is not installed", install)
            continue
        if not each.specifier.contains(found, prereleases=True):
            yield problem("versions", f"{each.name} {found} is installed, and {each.specifier} is needed", install)


def _project(settings: BaseSettings) -> Iterator[Finding]:
    folder = project_folder()
    if folder is None:
        yield ok("project", "no Scrapy project in this folder or above; settings are those of the command line")
        return
    addons = {_path(each) for each in settings.getdict("ADDONS")}
    parts = {_path(each) for name in _COMPONENT_SETTINGS for each in settings.getdict(name)} | {
        _path(settings.get("SCHEDULER"))
    }
    if addons & set(_ADDONS):
        yield ok("project", f"{folder}, with the add-on")
    elif any(each.startswith(_COMPONENTS) for each in parts):
        yield ok("project", f"{folder}, with components of its own choice and without the add-on")
    else:
        yield warning(
            "project", f"{folder} does not use the add-on: its crawls store nothing on the platform",
            f'Add ADDONS = {{"{_ADDONS[0]}": 500}} to its settings.',
        )  # fmt: skip
    reactor = settings.get("TWISTED_REACTOR")
    if reactor is not None and _path(reactor) != _REACTOR and settings.getbool("TWISTED_REACTOR_ENABLED", True):
        yield problem(
            "project",
            f"TWISTED_REACTOR is {_path(reactor)}, and asyncio is needed",
            f'Set TWISTED_REACTOR = "{_REACTOR}".',
        )


def _path(value: object) -> str:
    return (
        value if isinstance(value, str) else f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    )


def _settings(settings: BaseSettings, of_services: Sequence[SettingError]) -> Iterator[Finding]:
    errors = [*_unreadable(settings), *of_services]
    # What is wrong with .env has a check of its own. A setting is read more than once.
    wrong = {str(error): error for error in errors if error.name.removesuffix(SUFFIX) in SETTINGS}
    for error in wrong.values():
        yield problem("settings", f"{error.name} {error.rule}", error.remedy)
    log = _Messages()
    unknown_names.logger.addHandler(log)
    try:
        unknown_names.UnknownNames(settings).check_settings()
    finally:
        unknown_names.logger.removeHandler(log)
    for message in log.messages:
        yield warning("settings", message, "Correct or remove the name where it is set.")
    for key in _KEYS:
        yield from _source(settings, key)
    if not wrong and not log.messages:
        yield ok("settings", "all have valid values")


def _unreadable(settings: BaseSettings) -> Iterator[SettingError]:
    for setting in SETTINGS.values():
        try:
            setting.read(settings)
        except SettingError as error:
            yield error


def _source(settings: BaseSettings, key: Setting) -> Iterator[Finding]:
    """Yield the source of a key, and never the key."""
    if settings.get(key.name):
        if settings.getpriority(key.name) == SETTINGS_PRIORITIES["project"]:
            yield warning(
                "settings",
                f"{key.name} is in the project's settings",
                f"Move it to {environment.NAME} or to the environment, so that it is not in the repository.",
            )
        else:
            yield warning(
                "settings",
                f"{key.name} is on the command line",
                f"Move it to {environment.NAME} or to the environment, since other users see command lines.",
            )
    elif os.environ.get(key.name):
        yield ok("settings", f"{key.name} comes from the environment")
    elif path := os.environ.get(key.name + SUFFIX):
        yield ok("settings", f"{key.name} comes from the file {path}, which {key.name + SUFFIX} names")


class _Messages(logging.Handler):
    """Collects log messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _dotenv() -> Iterator[Finding]:
    path = environment.dotenv_file()
    if path is None:
        yield ok(environment.NAME, "there is none")
        return
    try:
        found = environment.from_dotenv(VARIABLES)
    except environment.DotenvError as error:
        yield problem(environment.NAME, f"{error.path} {error.rule}", error.remedy)
        return
    hidden = [name for name in found if name in os.environ or name + SUFFIX in os.environ]
    used = [name for name in found if name not in hidden]
    texts = [f"sets {', '.join(used)}" if used else "sets nothing"]
    if hidden:
        texts.append(f"the environment hides {', '.join(hidden)}")
    yield ok(environment.NAME, f"{path} {'; '.join(texts)}")
    for message in unknown_names.of_dotenv(environment.names_in(path)):
        yield warning(environment.NAME, message, f"Correct the name in {path}.")
    secrets = [name for name in found if (name in SETTINGS and SETTINGS[name].secret) or name.endswith("_KEY")]
    if secrets and sys.platform != "win32" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield warning(
            environment.NAME, "other users of this machine may read its keys", f"chmod 600 {shlex.quote(str(path))}"
        )
