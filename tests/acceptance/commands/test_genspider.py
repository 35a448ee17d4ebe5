"""``scrapy genspider`` with the templates of this package: what it makes crawls without a change."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from scrapy_ext.commands.genspider import TEMPLATES, names
from tests.support.crawls import Project
from tests.support.sites import Answer, ListeningSite

_TEXT = "The keeper trims the wick each evening, and the lamp burns until the last boat is home. " * 12
_PRODUCTS = 7
_OF_PAGE = 4


class Village(ListeningSite):
    """A shop of two pages with a category, a newspaper, a board of jobs, and a search engine."""

    def __init__(self) -> None:
        super().__init__()
        self.url = f"http://localhost:{self.port}"

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        parts = urlsplit(path)
        kind, _, rest = parts.path.strip("/").partition("/")
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        pages = {"shop": self._shop, "news": self._news, "jobs": self._jobs, "search": self._search}
        if kind in pages and not rest:
            return Answer(200, _page(kind, pages[kind](page)))
        if kind in ("product", "article", "job"):
            return Answer(200, _page(f"{kind} {rest}", getattr(self, f"_{kind}")(int(rest))))
        return Answer(404, b"not here")

    def _shop(self, page: int) -> str:
        first, last = _OF_PAGE * (page - 1) + 1, min(_OF_PAGE * page, _PRODUCTS)
        cards = "".join(
            f'<li class="product-card"><a href="/product/{n}"><img src="/{n}.jpg"><h3>Lantern of oak {n}</h3></a>'
            f'<span class="price">€{n}9.50</span></li>'
            for n in range(first, last + 1)
        )
        following = '<a rel="next" href="/shop?page=2">Next</a>' if page == 1 else ""
        return f"<h1>Lanterns</h1><ul class=products>{cards}</ul><div class=pagination>{following}</div>"

    def _product(self, number: int) -> str:
        thing = {
            "@context": "https://schema.org",
            "@type": "Product",
            "name": f"Lantern of oak {number}",
            "sku": f"L-{number}",
            "offers": {"@type": "Offer", "price": f"{number}9.50", "priceCurrency": "EUR"},
        }
        return f'<h1>Lantern of oak {number}</h1><script type="application/ld+json">{json.dumps(thing)}</script>'

    def _news(self, page: int) -> str:
        return "<h1>News</h1>" + "".join(
            f'<article><h2><a href="/article/{n}">The harbour lamp was lit for the {n}th year</a></h2>'
            f"<time datetime=2026-0{n}-11>11.0{n}.2026</time><p>{_TEXT[:120]}</p></article>"
            for n in range(1, 6)
        )

    def _article(self, number: int) -> str:
        text = "".join(f"<p>{_TEXT[:400]}</p>" for _ in range(4))
        return (
            f"<article><h1>The harbour lamp was lit for the {number}th year</h1><p>By Ann Author, "
            f"<time datetime=2026-0{number}-11T08:00:00Z>11 {number} 2026</time></p>{text}</article>"
        )

    def _jobs(self, page: int) -> str:
        rows = "".join(
            f'<li class="job-listing"><h3><a href="/job/{n}">Keeper of lamp {n}</a></h3><span>Full-time</span> '
            f"<span class=location>Harbour {n}</span> <span>2{n},000 EUR a year</span></li>"
            for n in range(1, 6)
        )
        return f"<h1>Open positions</h1><ul class=jobs>{rows}</ul>"

    def _job(self, number: int) -> str:
        thing = {
            "@context": "https://schema.org",
            "@type": "JobPosting",
            "title": f"Keeper of lamp {number}",
            "description": _TEXT,
            "hiringOrganization": {"@type": "Organization", "name": "Harbour Office"},
        }
        return f'<h1>Keeper of lamp {number}</h1><script type="application/ld+json">{json.dumps(thing)}</script>'

    def _search(self, page: int) -> str:
        def result(number: int) -> str:
            url = f"http://harbour{number}.example:{self.port}/article/{number}"
            return (
                f'<article class="result result-default"><a href="{url}" class=url_header><span class=url_o1>{url}'
                f'</span></a><h3><a href="{url}" rel=noreferrer>The harbour lamp, page {page}, {number}</a></h3>'
                f"<p class=content>{_TEXT[:90]}</p></article>"
            )

        form = '<header><form><input name=q value="harbour lamp"></form></header>'
        return f"{form}<main id=main_results><div id=urls>{''.join(map(result, range(1, 6)))}</div></main>"


def _page(title: str, body: str) -> bytes:
    return f"<!doctype html><html lang=en><head><title>{title}</title></head><body>{body}</body></html>".encode()


@pytest.fixture(scope="module")
def village() -> Iterator[Village]:
    village = Village()
    yield village
    village.close()


@pytest.fixture(scope="module")
def project(village: Village, tmp_path_factory: pytest.TempPathFactory) -> Project:
    hosts = ["localhost", *(f"harbour{number}.example" for number in range(1, 6))]
    allowed = (
        f"SERVER_CONNECT_TO = {[f'{host}:{village.port}=127.0.0.1:{village.port}' for host in hosts]}\n"
        f"SERVER_ALLOW_HOSTS = {[f'{host}:{village.port}' for host in hosts]}\n"
        'NEWSPIDER_MODULE = "project.spiders"\n'
    )
    made = Project(tmp_path_factory.mktemp("project"), "", allowed)
    package = made.folder / "project"
    (package / "spiders.py").unlink()
    (package / "spiders").mkdir()
    (package / "spiders" / "__init__.py").write_text("")
    return made


def _crawled(project: Project, template: str, url: str, *arguments: str) -> list[dict[str, Any]]:
    """Make a spider, crawl with it, and return its items."""
    assert f"using template '{template}'" in project.command(
        "genspider", "-t", template, f"my_{template}", url, "--force"
    )
    crawl = project.crawl(f"my_{template}", "-O", "items.jsonl", *arguments)
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    return [json.loads(line) for line in (project.folder / "items.jsonl").read_text().splitlines()]


@pytest.mark.long
def test_a_shop_is_crawled_to_its_products(project: Project, village: Village) -> None:
    every = _crawled(project, "shop", f"{village.url}/shop")
    assert sorted(item["name"] for item in every) == [f"Lantern of oak {n}" for n in range(1, _PRODUCTS + 1)]
    assert {item["price"] for item in every} == {f"{n}9.50" for n in range(1, _PRODUCTS + 1)}


@pytest.mark.long
def test_a_shop_is_read_as_far_as_its_arguments_say(project: Project, village: Village) -> None:
    assert len(_crawled(project, "shop", f"{village.url}/shop", "-a", "max_pages=1")) == _OF_PAGE


@pytest.mark.long
def test_articles_are_stored_once_and_by_date(project: Project, village: Village) -> None:
    every = _crawled(project, "articles", f"{village.url}/news", "-a", "since=2026-03-01")
    assert sorted(item["datePublished"][:7] for item in every) == ["2026-03", "2026-04", "2026-05"]
    before = village.hits["/article/4"]
    assert _crawled(project, "articles", f"{village.url}/news", "-a", "since=2026-03-01") == []
    assert village.hits["/article/4"] == before


@pytest.mark.long
def test_job_postings_are_stored_once(project: Project, village: Village) -> None:
    every = _crawled(project, "jobs", f"{village.url}/jobs")
    assert sorted(item["jobTitle"] for item in every) == [f"Keeper of lamp {n}" for n in range(1, 6)]
    assert _crawled(project, "jobs", f"{village.url}/jobs") == []


@pytest.mark.long
def test_results_of_a_search_and_the_pages_behind_them(project: Project, village: Village) -> None:
    url = f"{village.url}/search?q={{query}}&page={{page}}"
    results = _crawled(project, "search", url, "-a", "query=harbour lamp", "-a", "max_pages=2")
    assert [(item["query"], item["page"]) for item in results] == [("harbour lamp", 1)] * 5 + [("harbour lamp", 2)] * 5
    assert results[0]["url"] == f"http://harbour1.example:{village.port}/article/1"
    articles = _crawled(project, "search", url, "-a", "query=harbour lamp", "-a", "follow=article")
    assert sorted(item["rank"] for item in articles) == [1, 2, 3, 4, 5]
    assert all(item["article"]["articleBody"].startswith("The keeper trims") for item in articles)


def test_templates_are_listed_beside_scrapys_and_those_of_a_project_come_first(project: Project) -> None:
    listed = project.command("genspider", "-l").split()
    assert {*names(), "basic", "crawl"} <= set(listed)
    own = project.folder / "own" / "spiders"
    own.mkdir(parents=True)
    (own / "shop.tmpl").write_text("# of the project: $name\n")
    chosen = ("-s", f"TEMPLATES_DIR={own.parent}")
    assert project.command("genspider", *chosen, "-l").split().count("shop") == 1
    assert project.command("genspider", *chosen, "-d", "shop").strip() == "# of the project: $name"
    assert "class $classname" in project.command("genspider", *chosen, "-d", "jobs")
    assert "Unable to find template: other" in project.command("genspider", "-t", "other", "a", "b.example")


@pytest.mark.parametrize("template", names())
def test_what_is_made_is_formatted_and_typed_code(template: str, tmp_path: Path) -> None:
    made = (TEMPLATES / f"{template}.tmpl").read_text()
    made = made.replace("$classname", "MySpider").replace("$name", "my").replace("$module", "my")
    made = made.replace("$url", "https://shop.example/{query}")
    assert "$" not in made
    (tmp_path / "my.py").write_text(made)
    checks = (("check", "--isolated", "--select", "E,F,I,UP"), ("format", "--isolated", "--check"))
    for check in checks:
        ruff = [sys.executable, "-m", "ruff", check[0], "--no-cache", "--line-length", "120", *check[1:]]
        done = subprocess.run([*ruff, "my.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
