"""The tests on each supported version of Python and Scrapy: ``make test-matrix``.

A session installs Scrapy at the version that its name has, this package with what the tests of crawls need, and runs
those tests. ``--tags ci`` runs the oldest, with fewer tests: the other lanes run the newest. Python 3.14 and Scrapy's
development version run in ``.github/workflows/matrix.yml``, and here by their names; so do the oldest supported and the
newest release of uvicorn, with the tests of the server's HTTP.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import nox

ROOT = Path(__file__).parent
#: Scrapy's sources, for its development version.
DEVELOPMENT = "scrapy @ https://github.com/scrapy/scrapy/archive/refs/heads/master.tar.gz"

#: What the tests below need beside the extras ``server`` and ``poet``, and no more: an environment takes a minute.
TOOLS = (
    *("pytest>=8.3", "pytest-asyncio>=0.25", "pytest-timeout>=2.3", "pytest-xdist>=3.6"),
    *(
        "asyncpg>=0.30",
        "extruct>=0.18",
        "h2",
        "hypothesis>=6.135",
        "numpy>=1.26",
        "openpyxl>=3.1",
        "pyarrow>=18",
        "pydantic>=2",
        "pyyaml>=6",
        "scrapy-zyte-api[provider]>=0.36",
        "zyte-api>=0.11",
    ),
)

#: Components in crawls, kill and resume, the example project, the HTTP cache, and page objects.
TESTS = (
    *("tests/unit/compatibility", "tests/unit/crawl", "tests/unit/client", "tests/unit/jobprocess"),
    *("tests/unit/test_addon.py", "tests/unit/test_extensions.py", "tests/unit/test_spidermiddlewares.py"),
    *("tests/integration/crawl", "tests/integration/jobprocess", "tests/integration/server/jobs/test_old_scrapy.py"),
    *("tests/acceptance/crawl", "tests/acceptance/poet", "tests/acceptance/example_project"),
    *("tests/acceptance/test_crawl_end_to_end.py", "tests/acceptance/test_dupefilters.py"),
    *("tests/acceptance/test_other_commands.py", "tests/acceptance/test_request_log.py"),
    *("tests/acceptance/test_resumed_by_jobdir.py", "tests/acceptance/crash/test_killed_crawl.py"),
)
#: The few of these that find most: one file for each of the subjects.
CI_TESTS = (
    *("tests/unit/compatibility", "tests/unit/crawl/session", "tests/unit/crawl/extraction", "tests/unit/crawl/commit"),
    *("tests/unit/test_addon.py", "tests/unit/test_extensions.py", "tests/unit/test_spidermiddlewares.py"),
    *("tests/acceptance/crawl/session", "tests/acceptance/crawl/extraction/test_resumed_after_kill.py"),
    "tests/acceptance/crawl/extraction/test_http_cache.py",
    *("tests/acceptance/poet/test_provider.py", "tests/acceptance/example_project/test_spiders.py"),
    *("tests/acceptance/test_crawl_end_to_end.py", "tests/integration/server/jobs/test_old_scrapy.py"),
)

#: Those of the server's HTTP, which stands on names of uvicorn that are not public.
HTTP_TESTS = ("tests/unit/server/http", "tests/integration/server/http", "tests/integration/server/test_serve.py")


class Row(NamedTuple):
    """One session: a version of Scrapy on a version of Python."""

    scrapy: str
    python: str
    #: What pip installs.
    requirements: Sequence[str]
    tags: Sequence[str] = ()
    #: Runs without being named.
    default: bool = True

    @property
    def name(self) -> str:
        return f"scrapy-{self.scrapy}-python-{self.python}"


ROWS = (
    Row("2.14", "3.10", ["scrapy==2.14.2"], ["ci"]),
    # Its own requirements have the limit from 2.15.2 on.
    Row("2.15", "3.11", ["scrapy==2.15.2", "twisted<=25.5"]),
    Row("2.16", "3.11", ["scrapy==2.16.0"]),
    Row("2.17", "3.12", ["scrapy==2.17.0"]),
    Row("2.18", "3.13", ["scrapy==2.18.0"]),
    Row("newest", "3.10", ["scrapy>=2.19"]),
    Row("newest", "3.13", ["scrapy>=2.19"]),
    Row("newest", "3.14", ["scrapy>=2.19"], default=False),
    Row("development", "3.13", [DEVELOPMENT], default=False),
)

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
# A missing Python is a failure that names it, not a session that is skipped.
nox.options.error_on_missing_interpreters = True


def _runs(python: str) -> bool:
    """True if the command is an interpreter. A shim of pyenv is there, and fails, for versions that are not chosen."""
    command = [python, "-c", ""]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _find(versions: set[str]) -> None:
    """Put the interpreters of pyenv that PATH does not offer before its shims."""
    installed = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    for version in sorted(versions):
        command = shutil.which(f"python{version}")
        if command is not None and _runs(command):
            continue
        found = sorted(installed.glob(f"{version}.*/bin/python{version}"), key=lambda path: _number(path.parts[-3]))
        if found:
            os.environ["PATH"] = os.pathsep.join([str(found[-1].parent), os.environ["PATH"]])


def _number(name: str) -> list[int]:
    return [int(part) if part.isdigit() else -1 for part in name.split(".")]


def _session_of(row: Row) -> Callable[[nox.Session], None]:
    def run(session: nox.Session) -> None:
        session.install("--quiet", "--editable", ".[server,poet]", *TOOLS, *row.requirements)
        session.run(
            "python", "-c", "import scrapy, sys, twisted; print(sys.version, scrapy.__version__, twisted.__version__)"
        )
        chosen = CI_TESTS if "ci" in (session._runner.global_config.tags or ()) else TESTS
        session.run("python", "-m", "pytest", "-n", "4", "--dist", "loadfile", *(session.posargs or chosen))

    return run


def _deployed(session: nox.Session) -> None:
    """A job of a deployed project that pins the oldest Scrapy, on a server with the newest."""
    session.install("--quiet", "--editable", ".[server,poet]", *TOOLS, "scrapy>=2.19")
    wheels = Path(session.create_tmp()).resolve() / "wheels"
    session.run("python", "-m", "pip", "download", "--quiet", "--dest", str(wheels), "scrapy==2.14.2")
    test = "tests/integration/server/jobs/test_old_scrapy.py"
    session.run("python", "-m", "pytest", *(session.posargs or [test]), env={"SCRAPY_EXT_OLD_WHEELS": str(wheels)})


def _uvicorn_session_of(requirement: str) -> Callable[[nox.Session], None]:
    def run(session: nox.Session) -> None:
        session.install("--quiet", "--editable", ".[server]", *TOOLS)
        # Later than the package allows, it may be: pip reports and installs it.
        session.install("--quiet", "--upgrade", requirement)
        session.run("python", "-c", "import uvicorn; print(uvicorn.__version__)")
        session.run("python", "-m", "pytest", "-n", "4", "--dist", "loadfile", *(session.posargs or HTTP_TESTS))
        # Fails where the tests pass and the bounds in pyproject.toml can be raised.
        session.run("python", "-m", "pip", "check")

    return run


def _scrapydweb(session: nox.Session) -> None:
    """ScrapydWeb, in an environment of its own, with a server of the environment of ``make dev``."""
    session.install("--quiet", "scrapydweb==1.6.0")
    python, test = ROOT / ".venv" / "bin" / "python", "tests/acceptance/scrapydweb"
    environment = {"SCRAPY_EXT_SCRAPYDWEB": str(Path(session.bin).resolve() / "scrapydweb")}
    session.run(str(python), "-m", "pytest", *(session.posargs or [test]), external=True, env=environment)


_find({row.python for row in ROWS})
nox.session(name="scrapydweb", python="3.10")(_scrapydweb)
nox.session(name="scrapy-deployed-python-3.13", python="3.13")(_deployed)
nox.session(name="uvicorn-oldest-python-3.13", python="3.13", default=False)(_uvicorn_session_of("uvicorn==0.34.0"))
nox.session(name="uvicorn-newest-python-3.13", python="3.13", default=False)(_uvicorn_session_of("uvicorn"))
for _row in ROWS:
    nox.session(name=_row.name, python=_row.python, tags=list(_row.tags), default=_row.default)(_session_of(_row))
