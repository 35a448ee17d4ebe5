"""zyte-spider-templates from PyPI, unchanged: its spiders crawl by this package's service.

By its own provider, scrapy-zyte-api, on the last Scrapy that calls ``start_requests()``, which is all that its spiders
have; and by this package's provider on the Scrapy of this environment, where a subclass adds ``start()``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.servers import RunningServer, without_keys

pytestmark = [pytest.mark.full, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[3]
#: Arguments of a crawl, by what it is of.
CRAWLS = {
    "products from the front page": ("ecommerce", "/", {"crawl_strategy": "navigation", "max_requests": "12"}),
    "one product": ("ecommerce", "/item/3", {"crawl_strategy": "direct_item"}),
    "articles": ("article", "/news/", {"max_requests": "12"}),
}
THEIRS = """
BOT_NAME = "templates"
SPIDER_MODULES = ["zyte_spider_templates.spiders"]
ADDONS = {"scrapy_poet.Addon": 300, "scrapy_zyte_api.Addon": 500, "zyte_spider_templates.Addon": 1000}
TELNETCONSOLE_ENABLED = False
"""
OURS = """
BOT_NAME = "templates"
SPIDER_MODULES = ["templates.spiders"]
ADDONS = {"scrapy_poet.Addon": 300, "scrapy_ext.Addon": 500}
SCRAPY_POET_DISCOVER = ["zyte_spider_templates.pages"]
EXTRACT_API_PARAMS = {"extractFrom": "httpResponseBody"}
TELNETCONSOLE_ENABLED = False
"""
SPIDERS = """
from zyte_spider_templates.spiders import article, ecommerce


class Ecommerce(ecommerce.EcommerceSpider):
    async def start(self):
        for request in self.start_requests():
            yield request


class Article(article.ArticleSpider):
    async def start(self):
        for request in self.start_requests():
            yield request
"""


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """The example project's site."""
    process = subprocess.Popen(
        [sys.executable, "-m", "example_project.site", "--port", "0", "--exit-with-stdin"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    said = process.stdout.readline()
    found = re.search(r"http://(\S+?)/?\s*$", said)
    assert found, said
    yield f"localhost:{found[1].rpartition(':')[2]}"
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, shop: str) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("service"), allow_hosts=[shop]) as server:
        yield server


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the templates and the last Scrapy that they support."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    packages = ["scrapy>=2.15,<2.16", "zyte-spider-templates>=0.12"]
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", *packages], check=True, timeout=1200)
    return folder


def _crawl(
    folder: Path, settings: str, what: str, shop: str, command: list[str], variables: Mapping[str, str]
) -> tuple[list[dict], str]:
    """Crawl; returns the items and the log."""
    name, path, arguments = CRAWLS[what]
    files = {
        "scrapy.cfg": "[settings]\ndefault = templates.settings\n",
        "templates/__init__.py": "",
        "templates/settings.py": settings,
        "templates/spiders.py": SPIDERS,
    }
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    given = {"url": f"http://{shop}{path}", "extract_from": "httpResponseBody", **arguments}
    options = [option for name, value in given.items() for option in ("-a", f"{name}={value}")]
    done = subprocess.run(
        [*command, "crawl", name, *options, "-O", "items.jsonl"],
        cwd=folder,
        env={**without_keys(), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert not re.search(r" (ERROR|CRITICAL): ", done.stderr), done.stderr[-5000:]
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()], done.stderr


def _theirs(folder: Path, what: str, shop: str, service: RunningServer, environment: Path) -> tuple[list[dict], str]:
    command = [str(environment / "bin" / "python"), "-m", "scrapy"]
    variables = {"ZYTE_API_URL": f"{service.url}/v1/", "ZYTE_API_KEY": service.extract_key, "PYTHONPATH": ""}
    return _crawl(folder, f"{THEIRS}\nZYTE_API_URL = '{service.url}/v1/'\n", what, shop, command, variables)


def _ours(folder: Path, what: str, shop: str, service: RunningServer, environment: Path) -> tuple[list[dict], str]:
    # What this environment lacks comes from the other, behind all that this one has.
    more = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    start = f"import sys; sys.path.append({str(more)!r}); from scrapy.cmdline import execute; execute()"
    variables = {
        "EXTRACT_API_URL": f"{service.url}/v1",
        "EXTRACT_API_KEY": service.extract_key,
        "PLATFORM_URL": service.url,
        "PLATFORM_API_KEY": service.platform_key,
        "PATH": os.environ["PATH"],
    }
    return _crawl(folder, OURS, what, shop, [sys.executable, "-c", start], variables)


@pytest.mark.parametrize("what", CRAWLS)
def test_both_providers_bring_the_same_items(
    tmp_path: Path, shop: str, service: RunningServer, environment: Path, what: str
) -> None:
    theirs, log = _theirs(tmp_path / "theirs", what, shop, service, environment)
    assert "'scrapy-zyte-api/success_ratio': 1.0" in log
    ours, _ = _ours(tmp_path / "ours", what, shop, service, environment)
    assert theirs
    # A bound on the number of requests stops the two at different pages.
    if "max_requests" in CRAWLS[what][2]:
        assert {item["url"] for item in ours} & {item["url"] for item in theirs}
    else:
        assert [_kept(item) for item in ours] == [_kept(item) for item in theirs]


def _kept(item: dict) -> dict:
    return {name: value for name, value in item.items() if name != "metadata"}
