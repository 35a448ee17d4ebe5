"""Virtual environment with an empty HOME: the package is installed into it as a new user does, and crawls there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from distributions import ROOT, tracked

#: Variables that a new user has as well. Nothing else of the caller's environment reaches the commands.
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_KEPT += tuple(name.lower() for name in _KEPT if name.endswith("_PROXY"))
#: Timeout of a command in seconds. An installation takes a minute, the crawls of the example likewise.
_TIMEOUT = 1800

_INSTALL_WHEELS = ("-m", "pip", "install", "--quiet", "--only-binary", ":all:")

#: Prints version and place of the package, with the add-on and all that it imports loaded.
_PLACE = """
import importlib.metadata, scrapy_ext
scrapy_ext.Addon
print(importlib.metadata.version("scrapy-ext"), scrapy_ext.__file__)
"""


class CommandError(Exception):
    """Failure of a command, with the end of its output."""


class EmptyEnvironment:
    """Environment of one Python below ``folder``. pip's cache is the caller's, which saves most downloads."""

    def __init__(self, python: Path | str, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.bin = folder / "venv" / "bin"
        self.python = self.bin / "python"
        self._variables = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._variables |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self._variables |= {"HOME": str(self.home), "PIP_CACHE_DIR": _pip_cache(), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self._variables["PATH"] = f"{self.bin}{os.pathsep}{self._variables['PATH']}"
        self._creator = python

    def create(self) -> str:
        """Create the environment, with the pip that comes with this Python."""
        self.run(self._creator, "-m", "venv", self.folder / "venv")
        return ""

    def run(self, *command: object, cwd: Path | None = None) -> str:
        """Run a command in an empty folder, or in ``cwd``; return its output, or raise CommandError."""
        return _run(command, cwd or self.home, self._variables)

    def install(self, *requirements: str, index: str) -> None:
        """Install wheels from an index, and check that all requirements fit each other."""
        self.run(self.python, *_INSTALL_WHEELS, "--index-url", index, *requirements)
        self.run(self.python, "-m", "pip", "check")

    def find_wheels(self, requirement: str, *, index: str, python: str) -> None:
        """Check that an index has wheels of all that a requirement needs on another version of Python.

        By uv: pip takes the markers of its own Python, and would look for what another version does not need.
        """
        source = self.folder / "requirement.in"
        source.write_text(f"{requirement}\n")
        found = ("--quiet", "--no-config", "--no-build", "--python-version", python, "--default-index", index)
        self.run(sys.executable, "-m", "uv", "pip", "compile", *found, "--cache-dir", self.folder / "uv", source)

    def size(self) -> int:
        """Return the size of all installed packages in bytes."""
        (packages,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        return sum(path.lstat().st_size for path in packages.rglob("*") if not path.is_dir())

    def check_commands(self) -> str:
        """Start what users start first; return the version that was installed."""
        for command in ("platform", "extract"):
            if f"scrapy {command}" not in self.run(self.bin / "scrapy", command, "--help"):
                raise CommandError(f"scrapy {command} --help does not show its usage")
        version, place = self.run(self.python, "-c", _PLACE).split()
        if not place.startswith(str(self.folder)):
            raise CommandError(f"scrapy_ext is imported from {place}, not from the environment")
        return version

    def crawl_example(self) -> str:
        """Crawl the example site with the example project, browser included; return the table of its jobs."""
        self._variables["SCRAPY_EXT_BROWSER"] = self._browser()
        project = self.folder / "example"
        for name in tracked("example_project"):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, project / name)
        # Exits with an error unless each job has stored all items of the site.
        return self.run(self.python, "-m", "example_project.demo", cwd=project)

    def _browser(self) -> str:
        """Return the path of a browser, which belongs to the machine, so the caller's HOME is searched too."""
        variables = {**os.environ, "PATH": self._variables["PATH"]}
        _run(["sh", ROOT / "tools/get_browser.sh", self.bin], ROOT, variables)
        return _run([self.python, ROOT / "tools/find_browser.py"], self.home, variables).strip()


def _run(command: Sequence[object], cwd: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
    )
    if done.returncode:
        shown = " ".join(map(str, command))
        raise CommandError(f"{shown}: exit code {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def _pip_cache() -> str:
    command = [sys.executable, "-m", "pip", "cache", "dir"]
    return _run(command, ROOT, dict(os.environ)).strip()
