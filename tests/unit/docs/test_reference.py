"""What the code can count, close with, read and need is what the reference says."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from scrapy.settings import Settings

from scrapy_ext.addon import Addon
from scrapy_ext.api.extraction import EXTRACT_TYPES
from scrapy_ext.client.extraction.tally import STATS
from scrapy_ext.crawl.session import session
from scrapy_ext.server.extraction.auto import KINDS
from scrapy_ext.server.store.engine.opening import HEARTBEATS, NODE, SERVER, WORKER
from tests.support.docs_tables import rows_of

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PACKAGE = ROOT / "scrapy_ext"
#: Meta keys of Scrapy, and those that only this package writes.
NOT_OURS = {
    "bindaddress",
    "dont_merge_cookies",
    "dont_retry",
    "download_latency",
    "download_maxsize",
    "download_slot",
    "download_timeout",
    "download_warnsize",
    "handle_httpstatus_list",
    "is_start_request",
    "max_retry_times",
    "proxy",
    "redirect_reasons",
    "redirect_times",
    "redirect_ttl",
    "redirect_urls",
    "verbatim_url",
}


def described(kind: str) -> set[str]:
    """The names that the pages describe with a directive."""
    pages = (path.read_text("utf-8") for path in DOCS.rglob("*.rst"))
    return {name for page in pages for name in re.findall(rf"^\.\. {kind}:: (.+)$", page, re.MULTILINE)}


def calls(*names: str) -> Iterator[ast.Call]:
    """The calls of functions and methods with one of these names, in what runs inside a crawl."""
    files = [*PACKAGE.glob("*.py"), *(PACKAGE / "crawl").rglob("*.py"), *(PACKAGE / "client").rglob("*.py")]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in names:
                yield node


def texts(node: ast.AST) -> Iterator[str]:
    """Constant texts of an expression; of a text with values in it, the part before them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        yield f"{node.values[0].value}<type>"


def test_every_stat_is_described_and_exists() -> None:
    counted = {
        text
        for call in calls("inc_value", "set_value", "max_value", "_count")
        for argument in call.args[:1]
        for text in texts(argument)
    }
    assert counted | {*STATS} == described("stat")


def test_every_close_reason_is_described_and_exists() -> None:
    given = {
        text
        for call in calls("_close_spider", "close_spider_async", "fail", "CloseSpider")
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        for text in texts(argument)
    }
    tables = {reason for _, reason in session._REASONS}
    middleware = ast.parse((PACKAGE / "downloadermiddlewares.py").read_text("utf-8"))
    for node in ast.walk(middleware):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in (
            "_FATAL",
            "_BUDGETS",
            "_UNAVAILABLE",
            "_NO_BROWSER",
        ):
            assert node.value is not None
            values = node.value.values if isinstance(node.value, ast.Dict) else [node.value]
            tables |= {text for value in values for text in texts(value)}
    given |= {text for call in calls("_fail") for argument in call.args[1:] for text in texts(argument)}
    assert given | tables == described("reason")


def test_every_meta_key_for_users_is_described_and_read() -> None:
    read = {
        text
        for call in calls("get")
        if ast.unparse(call.func).endswith("meta.get")
        for argument in call.args[:1]
        for text in texts(argument)
    }
    assert read - NOT_OURS == described("reqmeta")


def test_the_reason_for_every_dependency_is_told() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    names = [re.match(r"[\w.-]+", requirement) for requirement in needed]
    page = (DOCS / "architecture" / "dependencies.rst").read_text("utf-8")
    told = re.findall(r"^   \* - ([\w.-]+)$", page, re.MULTILINE)
    assert told == [match[0] for match in names if match]


def test_what_the_addon_sets_is_what_the_reference_says() -> None:
    page = (DOCS / "reference" / "settings.rst").read_text("utf-8")
    told = {re.sub(r":setting:|`", "", row[0]): row[1] for row in rows_of(page, "Settings that the add-on sets")}
    found: dict[str, set[str]] = {}
    for own in ({}, {"FRONTIER_ENABLED": False, "DUPEFILTER_COLLECTION": "pages"}):
        before, settings = Settings(own), Settings(own)
        Addon().update_settings(settings)
        for name in settings:
            if settings[name] != before[name]:
                found.setdefault(name, set()).update(_told_of(settings[name], before[name]))
    assert found.keys() == told.keys()
    for name, values in found.items():
        if "FINGERPRINTER" not in name:
            assert not {value for value in values if f"{value}``" not in told[name]}, name


def _told_of(value: object, before: object) -> Iterator[str]:
    """A value as the reference has it; of a dict of components the names of the new ones."""
    if isinstance(value, Mapping):
        old = before if isinstance(before, Mapping) else {}
        for component in value.keys() - old.keys():
            yield getattr(component, "__name__", str(component).rpartition(".")[2])
    else:
        yield getattr(value, "__name__", str(value))


def test_the_pages_agree_about_the_connections_to_a_database() -> None:
    node = NODE.writers + NODE.readers + HEARTBEATS.writers + 1  # its queue; beats read nothing
    server, worker = (line.writers + line.readers for line in (SERVER, WORKER))
    pages = ((DOCS / "howto" / name).read_text("utf-8") for name in ("many-machines.rst", "operate-store.rst"))
    sizes, store = (" ".join(page.split()) for page in pages)
    assert f"up to {server + node}: {SERVER.writers} for writing and {SERVER.readers} for reading" in sizes
    parts = f"{WORKER.writers} for writing, {WORKER.readers} for reading, and the same {node}"
    assert f"up to {worker + node}: {parts}" in sizes
    assert server + node + 6 * (worker + node) + 10 <= 100 < server + node + 7 * (worker + node) + 10
    assert "is enough for one server and six workers" in sizes
    assert f"takes up to {server + node} connections; {node} of them are for running jobs" in store
    assert f"with ``--no-runner`` it takes {server}." in store
    assert f"is enough for {100 // (server + node)} processes" in store


def test_the_papers_agree_about_the_time_that_the_tests_take() -> None:
    times = [
        re.findall(r"(\d+ minutes on two cores)", (ROOT / name).read_text("utf-8"))
        for name in ("Makefile", "CONTRIBUTING.md")
    ]
    assert len(times[0]) == 1
    assert times[0] == times[1]


def test_every_link_of_the_papers_leads_to_a_file() -> None:
    papers = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    links = [link for paper in papers for link in re.findall(r"\]\(([^)#]+)\)", paper.read_text("utf-8"))]
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).is_file()] == []


def test_every_kind_of_the_contract_is_extracted_so_that_no_paper_has_to_say_which() -> None:
    assert sorted(KINDS) == sorted(EXTRACT_TYPES)
