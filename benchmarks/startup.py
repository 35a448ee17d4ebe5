"""Start of a crawl with the embedded server, beside plain Scrapy: time, processor time and memory up to its first page.

Each start is one ``scrapy crawl`` in a project with the jobs of the rounds before. It is measured from the start of the
command until the spider gives its first request, and until its callback has the page. Processor time is that of the
crawl and of its server together, a server's memory what is resident when the page is there. One start of each kind
precedes the rounds, since the first one compiles modules. ``--tree`` names folders with other versions of the package,
which take turns with this one (an empty name). It needs Linux.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from rig.processes import environment
from rig.rounds import alternate, median, options, report
from rig.site import site

#: Seconds after which a start has failed.
_LIMIT: Final = 300
#: Name of the site for the extraction API, which takes no IP addresses.
_HOST: Final = "shop.example"
_SPIDER: Final = """
import json
import os
import time
from pathlib import Path

import scrapy


def children():
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == os.getpid():
            yield int(stat.parent.name), words


def measured():
    now, cpu, memory, server = time.time(), time.process_time(), 0, 0.0
    for pid, words in children():
        server += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        memory += int(words[21]) * os.sysconf("SC_PAGE_SIZE")
    return {"time": now, "crawl_cpu": cpu, "server_cpu": server, "server_bytes": memory}


class Started(scrapy.Spider):
    name = "started"

    async def start(self):
        self.first = measured()
        yield scrapy.Request(self.url)

    def parse(self, response):
        found = {"request": self.first, "page": measured()}
        Path(self.result_file).write_text(json.dumps(found))
"""


def main() -> None:
    given = options(__doc__, full={"rounds": 9, "tree": [""]}, quick={"rounds": 2, "tree": [""]})
    with tempfile.TemporaryDirectory() as text, site(10) as url:
        folder, named = Path(text), f"http://{_HOST}:{urlsplit(url).port}"
        runs: dict[str, Callable[[], _Start]] = {"scrapy": partial(_crawl, _project(folder / "plain"), url, "")}
        for number, tree in enumerate(given.tree):
            name = Path(tree).name if tree else "scrapy_ext"
            runs[name] = partial(_crawl, _project(folder / f"with-{number}", _with_addon(url)), named, tree)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        alternate(1, runs)
        results = alternate(given.rounds, runs)
    found = {name: _medians(starts) for name, starts in results.items()}
    report(
        "startup",
        rounds=given.rounds,
        **found,
        later={
            name: {
                what: {figure: round(value - found["scrapy"][what][figure], 2) for figure, value in figures.items()}
                for what, figures in found[name].items()
            }
            for name in found
            if name != "scrapy"
        },
    )


#: Figures at the first request and at the first page.
_Start = dict[str, dict[str, float]]


def _medians(starts: list[_Start]) -> _Start:
    return {
        what: {figure: round(median(start[what][figure] for start in starts), 3) for figure in starts[0][what]}
        for what in starts[0]
    }


def _with_addon(url: str) -> str:
    site = urlsplit(url)
    rule = f"{_HOST}:{site.port}={site.netloc}"
    return f'ADDONS = {{"scrapy_ext.Addon": 500}}\nSERVER_CONNECT_TO = [{rule!r}]\n'


def _project(folder: Path, more: str = "") -> Path:
    package = folder / "starting"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = starting.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(f'BOT_NAME = "starting"\nSPIDER_MODULES = ["starting.spiders"]\n{more}')
    (package / "spiders.py").write_text(_SPIDER)
    return folder


def _crawl(project: Path, url: str, tree: str) -> _Start:
    result = project / "result"
    result.unlink(missing_ok=True)
    arguments = ["started", "-a", f"url={url}/0", "-a", f"result_file={result}", "-s", "LOG_FILE=log"]
    extra: dict[str, Any] = {"PYTHONPATH": tree} if tree else {}
    began = time.time()
    ended = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", *arguments],
        cwd=project,
        env=environment(extra),
        timeout=_LIMIT,
        check=False,
    )
    if ended.returncode or not result.exists():
        raise SystemExit(f"the crawl failed:\n{(project / 'log').read_text()[-4000:]}")
    return {what: _figures(measured, began) for what, measured in json.loads(result.read_text()).items()}


def _figures(measured: dict[str, float], began: float) -> dict[str, float]:
    return {
        "seconds": measured["time"] - began,
        "cpu_seconds": measured["crawl_cpu"] + measured["server_cpu"],
        "server_cpu_seconds": measured["server_cpu"],
        "server_mb": measured["server_bytes"] / 1e6,
    }


if __name__ == "__main__":
    main()
