"""Projects that pin another Scrapy than the server's: an old one runs, a too old one is refused in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.jobprocess.messages import Launch
from tests.support import packed_projects as packed
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.running_jobs import until
from tests.support.scrapy_versions import WHEELS
from tests.support.servers import RunningServer

ROOT = Path(__file__).parents[4]
REFUSAL = "Scrapy 2.13.4 is too old for scrapy-ext: 2.14 or later is needed. Require scrapy>=2.14 in the requirements"
STUB = {"scrapy/__init__.py": "__version__ = '2.13.4'\n"}

SPIDERS = """
import scrapy


class Quick(scrapy.Spider):
    name = "quick"
    start_urls = ["data:,page", "data:,other"]

    def parse(self, response):
        yield {"scrapy": scrapy.__version__, "url": response.url}
"""

#: Refuses the packages of the extra ``server``, as if it were not installed.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ImportError(f"{{name}} is of the extra server")

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def only_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that pip looks in."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


async def deployed(http: Http, requirements: str) -> dict[str, object]:
    """A version with these requirements, once its check has ended."""
    folder = packed.folder(shop__spiders=SPIDERS)
    path = f"/api/projects/5/versions?version=1.0&requirements={requirements}"
    answer = await http.post(path, folder)
    assert answer.status == 201, answer.text
    shown = await eventually_async(
        lambda: http.get("/api/projects/5/versions/1.0"), lambda answer: answer.json["state"] != "uploaded"
    )
    found: dict[str, object] = shown.json
    return found


@pytest.mark.long
async def test_a_project_with_a_scrapy_that_is_too_old_is_refused_when_it_is_deployed(
    tmp_path: Path, only_wheels: Path
) -> None:
    (only_wheels / "scrapy-2.13.4-py3-none-any.whl").write_bytes(packed.wheel_of("scrapy", "2.13.4", STUB))
    with RunningServer(tmp_path / "data", options=["--units", "1"]) as server:
        async with Http(server.url, server.platform_key) as http:
            shown = await deployed(http, "scrapy==2.13.4")
    assert shown["state"] == "failed"
    assert REFUSAL in str(shown["message"])
    assert "Traceback" not in str(shown["message"])


def _broken(version: str) -> dict[str, str]:
    """A Scrapy that cannot be imported beside newer libraries."""
    metadata = f"Metadata-Version: 2.1\nName: scrapy\nVersion: {version}\n"
    code = "raise ImportError('cannot import name x')"
    return {"scrapy/__init__.py": code, f"scrapy-{version}.dist-info/METADATA": metadata}


@pytest.mark.parametrize(
    ("stub", "refusal"),
    [
        (STUB, REFUSAL),
        (_broken("2.11.2"), REFUSAL.replace("2.13.4", "2.11.2")),
        (_broken("2.14.1"), "Scrapy 2.14.1 cannot be imported (ImportError: cannot import name x). Its requirements"),
    ],
)
def test_a_job_with_a_scrapy_that_does_not_fit_says_so_in_one_line(
    tmp_path: Path, stub: dict[str, str], refusal: str
) -> None:
    for path, text in stub.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "scrapy_ext.jobprocess.launch"],
        check=False,
        input=msgspec.json.encode(Launch(spider="quick")),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        timeout=300,
    )
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, line.startswith(refusal)) == (1, True), line


@pytest.mark.long
def test_a_job_needs_the_base_package_alone(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    of_server = {_module(each) for each in project["optional-dependencies"]["server"]}
    # Libraries that Scrapy, or the base package, may bring.
    blocked = of_server - {"protego", "lxml", "brotli", "httptools"}
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(names=sorted(blocked)))
    for path, text in packed.files(shop__spiders=SPIDERS).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    with RunningServer(tmp_path / "data", options=["--no-runner"]) as server:
        settings = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": 5}
        done = subprocess.run(
            [sys.executable, "-m", "scrapy_ext.jobprocess.launch"],
            check=False,
            cwd=tmp_path,
            input=msgspec.json.encode(Launch(spider="quick", settings=settings)),
            capture_output=True,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            timeout=300,
        )
        assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.old_wheels
async def test_a_project_that_pins_an_old_scrapy_runs_as_a_job(tmp_path: Path, only_wheels: Path) -> None:
    for wheel in Path(os.environ[WHEELS]).glob("*.whl"):
        shutil.copy(wheel, only_wheels)
    with RunningServer(tmp_path / "data", options=["--units", "1"]) as server:
        async with Http(server.url, server.platform_key) as http:
            shown = await deployed(http, "scrapy==2.14.2")
            assert shown["state"] == "ready", shown
            answer = await http.post("/api/run.json", {"project": "5", "spider": "quick"})
            ended = await until(http, answer.json["jobid"], "finished")
            assert ended["close_reason"] == "finished", (await http.get(f"/logs/{answer.json['jobid']}")).text
            items = (await http.get(f"/items/{answer.json['jobid']}?format=json")).json
    assert sorted(item["url"] for item in items) == ["data:,other", "data:,page"]
    assert {item["scrapy"] for item in items} == {"2.14.2"}


def _module(requirement: str) -> str:
    name = requirement.partition(";")[0].rstrip("<>=!0123456789., ")
    return {"backports.zstd": "", "python-multipart": "python_multipart", "lxml-html-clean": "lxml_html_clean"}.get(
        name, name.replace("-", "_")
    )
