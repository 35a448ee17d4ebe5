"""The reference, README and CONTRIBUTING agree with the code and with each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from scrapy.settings import Settings

from scrapy_ext.addon import Addon
from scrapy_ext.api.extraction import EXTRACT_TYPES
from scrapy_ext.client.extraction.tally import STATS
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.crawl.extraction.doubtful import LEFT_OUT_STATS
from scrapy_ext.crawl.extraction.site_rules import RULE_STATS
from scrapy_ext.crawl.session.unknown_names import META_KEYS
from scrapy_ext.server.extraction.auto import KINDS
from scrapy_ext.server.store.engine.connection_limits import HEARTBEATS, NODE, SERVER, WORKER
from tests.support.docs_tables import rows_of
from tests.support.documented_names import described, undocumented

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
#: Stats of extraction that are counted beside the table of its calls.
WITHOUT_CALL = {
    *("extract_api/shared", "extract_api/reused"),
    *(f"extract_api/snapshots/{count}" for count in ("stored", "skipped", "failed")),
    *RULE_STATS.values(),
    *LEFT_OUT_STATS.values(),
}
LOG = """2026-01-01 00:00:00 [scrapy.statscollectors] INFO: Dumping Scrapy stats:
{'downloader/request_count': 3,
 'extract_api/attempts': 3,
 'extract_api/errors/download/temporary-error': 1,
 'frontier/imaginary': 1}
2026-01-01 00:00:00 [scrapy.core.engine] INFO: Spider closed (%s)
"""


def test_every_stat_of_the_extraction_client_is_documented_and_exists() -> None:
    assert {name for name in described("stat") if name.startswith("extract_api/")} == {*STATS, *WITHOUT_CALL}


def test_every_meta_key_for_users_is_documented_and_exists() -> None:
    assert described("reqmeta") == set(META_KEYS)


def test_a_crawl_with_a_name_that_is_not_documented_fails_its_test() -> None:
    assert undocumented(LOG % "finished") == ["frontier/imaginary"]
    assert undocumented(LOG % "extract_api_bad_key") == ["frontier/imaginary"]
    assert undocumented(LOG % "platform_asleep") == ["frontier/imaginary", "platform_asleep"]


def test_the_reason_for_every_dependency_is_documented() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    names = [re.match(r"[\w.-]+", requirement) for requirement in needed]
    page = (DOCS / "architecture" / "dependencies.rst").read_text("utf-8")
    documented = re.findall(r"^   \* - ([\w.-]+)$", page, re.MULTILINE)
    assert documented == [match[0] for match in names if match]


def test_what_the_addon_sets_is_what_the_reference_says() -> None:
    page = (DOCS / "reference" / "settings.rst").read_text("utf-8")
    documented = {re.sub(r":setting:|`", "", row[0]): row[1] for row in rows_of(page, "Settings that the add-on sets")}
    found: dict[str, set[str]] = {}
    for own in ({}, {"FRONTIER_ENABLED": False, "DUPEFILTER_COLLECTION": "pages"}):
        before, settings = Settings(own), Settings(own)
        Addon().update_settings(settings)
        for name in settings:
            if settings[name] != before[name]:
                found.setdefault(name, set()).update(_told_of(settings[name], before[name]))
    assert found.keys() == documented.keys()
    for name, values in found.items():
        if "FINGERPRINTER" not in name:
            assert not {value for value in values if f"{value}``" not in documented[name]}, name


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
