"""Command lines of public reports do what their operators expect."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.cases import Operation, cases_of, parameters
from tests.support.handwritten_site import Target
from tests.support.servers import RunningServer

CASES: list[Operation] = cases_of("operation")
#: A project for the steps; ``files`` of a case replace these and add others.
FILES = {
    "scrapy.cfg": "[settings]\ndefault = settings\n",
    "settings.py": 'BOT_NAME = "project"\nSPIDER_MODULES = ["spiders"]\nADDONS = {"scrapy_ext.Addon": 500}\n',
    "spiders.py": 'import scrapy\n\n\nclass S(scrapy.Spider):\n    name = "s"\n    start_urls = ["data:,a"]\n\n'
    '    def parse(self, response):\n        yield {"text": response.text}\n',
}
PROGRAMS = {
    "python": [sys.executable],
    **{name: [sys.executable, "-m", name] for name in ("scrapy", "shub", "scrapyd_client")},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("operation") / "data", options=["--no-runner"]) as server:
        yield server


@pytest.mark.parametrize("case", parameters(CASES))
@pytest.mark.long(keep=1)
def test_operation(case: Operation, server: RunningServer, tmp_path: Path) -> None:
    with _site(case) as site:
        _test_steps(case, server, tmp_path, site)


@contextlib.contextmanager
def _site(case: Operation) -> Iterator[str]:
    """URL of the site of a case; it has none without pages."""
    if not case.pages:
        yield ""
        return
    site = Target().start()
    try:
        for path, page in case.pages.items():
            site.page(path, page)
        yield site.url().rstrip("/")
    finally:
        site.stop()


def _test_steps(case: Operation, server: RunningServer, tmp_path: Path, site: str) -> None:
    for name, text in {**FILES, **case.files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{site}", site))
    environment = {
        **os.environ,
        # A shell's programs as well are those of this Python.
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PLATFORM_URL": server.url,
        "PLATFORM_API_KEY": server.platform_key,
        "PLATFORM_PROJECT": str(1 + CASES.index(case)),
        "SHUB_STORAGE": f"{server.url}/",
        "SHUB_JOBQ": f"{server.url}/",
        "HOME": str(tmp_path / "home"),
    }
    for step in case.steps:
        # Programs of this Python, whatever PATH has.
        words = shlex.split(step.run.replace("{site}", site))
        command = [*PROGRAMS.get(words[0], words[:1]), *words[1:]]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert done.returncode == step.exit, (step.run, output)
        assert [wanted for wanted in step.has if not re.search(wanted, output)] == [], (step.run, output)
        assert [unwanted for unwanted in step.lacks if re.search(unwanted, output)] == [], (step.run, output)
