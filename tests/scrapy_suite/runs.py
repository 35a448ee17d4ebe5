"""One run of Scrapy's tests in a process of its own, and what is known of it afterwards."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from scrapy_ext.jobprocess import handover
from tests.scrapy_suite.environment import Environment

#: Only those that the tests use: others of this environment warn, and a warning is an error there.
_PLUGINS: Final = ("xdist", "twisted", "timeout", "rerunfailures", "scrapy_suite_plugin")
#: Warnings of versions of pytest that are newer than these tests; there, a warning is an error.
_NO_ERRORS: Final = ("default::pytest.PytestDeprecationWarning", "default:fixture 'dh' is wrapped:pytest.PytestWarning")
#: Seconds of one test.
_TIMEOUT: Final = 180
#: Variables that would point a crawl elsewhere.
_OURS: Final = re.compile(r"(EXTRACT_API|PLATFORM|FRONTIER|SERVER|SCRAPY|PYTEST)_\w+|PYTHONPATH")


@dataclass
class Run:
    """Result of a run."""

    folder: Path
    #: ``passed``, ``failed``, ``skipped`` or ``xfailed``, by test.
    outcomes: dict[str, str] = field(default_factory=dict)
    #: Why the failed ones failed.
    reasons: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Run:
        """The run that a folder has the notes of."""
        run = cls(folder)
        for line in _lines(folder / "outcomes.jsonl"):
            test, outcome = line["test"], line["outcome"]
            # Set-up, call and tear-down: the worst of them, and a call before a set-up.
            if outcome == "failed" or ((line["when"] == "call" or outcome != "passed") and not run._has_failed(test)):
                run.outcomes[test] = outcome
            if outcome == "failed":
                run.reasons[test] = run.reasons.get(test, "") + line["why"]
        return run

    def _has_failed(self, test: str) -> bool:
        return self.outcomes.get(test) == "failed"

    @property
    def with_crawlers(self) -> set[str]:
        """Tests that made a crawler, in their own process or in one that they started."""
        return {note["test"] for note in self._notes("crawlers")} & self.outcomes.keys()

    @cached_property
    def stats(self) -> Counter[str]:
        """Scrapy's stats that are whole numbers, summed over all crawls that ended."""
        return sum((Counter(note["stats"]) for note in self._notes("stats")), Counter())

    def _notes(self, kind: str) -> Iterator[dict[str, Any]]:
        for file in (self.folder / "notes").glob(f"{kind}-*.jsonl"):
            yield from _lines(file)


def run_tests(
    environment: Environment,
    folder: Path,
    *,
    wiring: str | None = None,
    only: Collection[str] | None = None,
    workers: int = 2,
    what: tuple[str, ...] = ("tests",),
) -> Run:
    """Run Scrapy's tests, plain or in a wiring; raises :class:`RuntimeError` when they could not be run."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "notes").mkdir(parents=True)
    more = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "SCRAPY_SUITE_NOTES": str(folder / "notes"),
        "SCRAPY_SUITE_OUTCOMES": str(folder / "outcomes.jsonl"),
    }
    if only is not None:
        (folder / "only").write_text("\n".join(sorted(only)), encoding="utf-8")
        more["SCRAPY_SUITE_ONLY"] = str(folder / "only")
    plugins = [option for plugin in _PLUGINS for option in ("-p", plugin)]
    command = [str(environment.python), "-m", "pytest", *what, *plugins, "-p", "no:cacheprovider", "-q"]
    command += ["-m", "not requires_internet", "--timeout", str(_TIMEOUT), "-n", str(workers)]
    command += [option for warning in _NO_ERRORS for option in ("-W", warning)]
    command += ["--basetemp", str(folder / "temporary")]
    with (folder / "log").open("wb") as log, _services(environment, folder, wiring) as services:
        # A copy, for some tests write beside themselves.
        suite = folder / "suite"
        shutil.copytree(environment.suite, suite)
        done = subprocess.run(
            command, cwd=suite, env={**_environment(), **more, **services}, stdout=log, stderr=log, check=False
        )
        shutil.rmtree(suite)
        shutil.rmtree(folder / "temporary", ignore_errors=True)
    # 0: all passed, 1: some failed, 5: none was chosen.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {done.returncode}; its log is {folder / 'log'}")
    return Run.read(folder)


@contextmanager
def _services(environment: Environment, folder: Path, wiring: str | None) -> Iterator[Mapping[str, str]]:
    """The server that all tests of a run share, by the variables that lead there."""
    if wiring is None:
        yield {}
        return
    keys = {"EXTRACT_API_KEY": secrets.token_hex(16), "PLATFORM_API_KEY": secrets.token_hex(16)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data, (folder / "server.log").open("wb") as log:
        options = ("--port", "0", "--data", data, "--no-runner", "--no-verify-tls", "--exit-with-stdin")
        # By a descriptor: a server that finds keys in its environment executes itself anew, without our guard.
        handed = handover.offer(json.dumps(keys).encode())
        process = subprocess.Popen(
            [str(environment.python), "-m", "scrapy_suite_server", str(handed), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            pass_fds=[handed],
        )
        os.close(handed)
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            word, _, url = process.stdout.readline().decode().strip().partition(" ")
            if word != "ready":
                raise RuntimeError(f"the server did not start; its log is {log.name}")
            yield {"SCRAPY_SUITE_WIRING": wiring, "EXTRACT_API_URL": f"{url}/v1", "PLATFORM_URL": url, **keys}
        process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
