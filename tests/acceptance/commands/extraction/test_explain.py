"""``scrapy extract --explain`` and rules of sites in ``scrapy extract``, in processes of their own, against servers."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.faulty_service import FaultyService, page
from tests.support.servers import ForkedServer, RunningServer
from tests.support.sites import Answer, ListeningSite
from tests.support.terminal_commands import Done

SCRAPY = [sys.executable, "-m", "scrapy", "extract"]
_OURS = re.compile(r"(EXTRACT_API|PLATFORM|FRONTIER|SCRAPY)_\w+")
HTTP = """--params={"extractFrom": "httpResponseBody"}"""
LAMP = b"""<html lang="de"><title>Lamp One - Shop</title><h1>Lamp One</h1><p class="old">24,99 EUR</p>
<p class="now">12,99 EUR</p>
<table><tr><th>Marke</th><td>Acme</td></tr><tr><th>Art.-Nr.</th><td>AB-1234</td></tr></table>"""


class Shop(ListeningSite):
    content_type = "text/html; charset=utf-8"

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, LAMP)


@dataclass
class Desk:
    """A project folder, a site, and a server that fetches it."""

    folder: Path
    url: str
    environment: dict[str, str] = field(default_factory=dict)

    def rules(self, text: str, name: str = "localhost.toml") -> None:
        (self.folder / "extract_rules").mkdir(exist_ok=True)
        (self.folder / "extract_rules" / name).write_text(text, "utf-8")

    def run(self, *arguments: str) -> Done:
        done = forked.run([*SCRAPY, *arguments], cwd=self.folder, env=self.environment, input="")
        return Done(done.returncode, done.stdout, done.stderr)

    def explain(self, *arguments: str) -> Done:
        return self.run("--explain", f"{self.url}/p/1", HTTP, *arguments)


@pytest.fixture(scope="module")
def site() -> Iterator[Shop]:
    site = Shop()
    yield site
    site.close()


@pytest.fixture(scope="module")
def server(site: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("data"), allow_hosts=[f"localhost:{site.port}"]) as server:
        yield server


@pytest.fixture
def desk(site: Shop, server: RunningServer, tmp_path: Path) -> Desk:
    kept = {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}
    service = {"EXTRACT_API_URL": f"{server.url}/v1", "EXTRACT_API_KEY": server.extract_key}
    return Desk(tmp_path, f"http://localhost:{site.port}", {**kept, **service})


def test_the_table_has_values_rules_elements_and_what_rules_change(desk: Desk) -> None:
    desk.rules('[product]\nname = "title"\nbrand = { xpath = "//tr[th=\'Marke\']/td" }\nprice = ".now"\n')
    done = desk.explain()
    assert (done.returncode, done.stderr) == (0, "")
    rows = {tuple(re.split(r"  +", line)) for line in done.stdout.splitlines()}
    name = "extract_rules/localhost.toml"
    assert ("price", "12.99", f"{name}: .now", "/html/body/p[2]") in rows
    assert ("name", "Lamp One - Shop", f"{name}: title", "/html/head/title") in rows
    assert ("name", "title", "Lamp One → Lamp One - Shop") in rows


def test_a_rule_that_finds_nothing_is_reported_and_fails_the_command(desk: Desk) -> None:
    desk.rules('[product]\nname = ".gone"\n')
    done = desk.explain()
    assert (done.returncode, done.stderr) == (1, "")
    assert "found nothing; the automatic value stays: Lamp One" in done.stdout


def test_a_rule_that_removes_a_field_that_the_page_lacks_says_so(desk: Desk) -> None:
    desk.rules("[product]\nsize = { remove = true }\n")
    done = desk.explain()
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^size +remove +as before: none$", done.stdout, re.MULTILINE)


def test_an_example_gives_a_selector_for_the_file(desk: Desk) -> None:
    desk.rules(f'[product]\nsku = {{ example = "AB-1234", url = "{desk.url}/p/1" }}\n')
    done = desk.explain()
    assert done.returncode == 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("sku = "))
    desk.rules(f"[product]\n{line}\n")
    assert "AB-1234" in desk.explain().stdout


def test_an_example_that_its_selector_does_not_find_fails_the_command(desk: Desk) -> None:
    desk.rules(f'[product]\nsku = {{ css = "h1", example = "AB-1234", url = "{desk.url}/p/1" }}\n')
    done = desk.explain()
    assert done.returncode == 1
    assert "sku: the example is AB-1234, and the rule found Lamp One" in done.stdout


@pytest.mark.parametrize("price", ["12,99 EUR", "12.99"])
def test_an_example_is_compared_by_its_value(desk: Desk, price: str) -> None:
    example = f'example = "{price}", url = "{desk.url}/p/1"'
    desk.rules(f'[product]\nprice = {{ css = ".now", {example} }}\n')
    done = desk.explain()
    assert (done.returncode, "the example is" in done.stdout) == (0, False), done.stdout
    desk.rules(f'[product]\nprice = {{ css = ".old", {example} }}\n')
    done = desk.explain()
    assert done.returncode == 1
    assert f"price: the example is {price}, and the rule found 24.99" in done.stdout


def test_users_of_urls_are_not_shown(desk: Desk) -> None:
    url = desk.url.replace("//", "//name:secret@")
    desk.rules(
        f'[product]\nname = "title"\nsku = {{ example = "1", url = "{url}/other" }}\n'
        f'canonicalUrl = {{ value = "{url}/c" }}\n'
    )
    done = desk.run("--explain", f"{url}/p/1", HTTP)
    assert f"product of {desk.url}/p/1" in done.stdout
    assert f"of another page: scrapy extract --explain {desk.url}/other" in done.stdout
    assert "secret" not in done.stdout + done.stderr


def test_without_rules_the_kind_is_named(desk: Desk) -> None:
    done = desk.explain()
    assert (done.returncode, done.stdout) == (2, "")
    assert "--explain needs the kind of item, and no file of rules for this site names one; add --kind" in done.stderr
    shown = desk.explain("--kind", "product")
    assert shown.returncode == 0
    assert re.search(r"^name +Lamp One +\S", shown.stdout, re.MULTILINE)


def test_many_urls_are_extracted_with_the_rules(desk: Desk) -> None:
    desk.rules('[product]\nname = "title"\nsku = ".gone"\n')
    done = desk.run(f"{desk.url}/1", f"{desk.url}/2", "--field", "product", HTTP)
    assert done.returncode == 0
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["result"]["product"]["name"] for record in records] == ["Lamp One - Shop"] * 2
    assert records[0]["result"]["extractRules"]["sku"] == {"rule": ".gone", "fault": "found nothing"}
    warning = "extract_rules/localhost.toml: product.sku (.gone) found nothing on http://localhost"
    assert done.stderr.count(warning) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[product]\nname = "a{"\n', "extract_rules/localhost.toml: product.name.css is no CSS selector"),
        ('[product\nname = "a"\n', "extract_rules/localhost.toml is no TOML"),
        ('[product]\nnaem = "a"\n', "extract_rules/localhost.toml: product.naem is not a field of product"),
        (
            'match = ["localhost", "a.example"]\n[product]\nsku = { example = "1", url = "https://a.example/1" }\n',
            "product.sku has an example, and no selector for other pages. Run scrapy extract --explain https://a.example/1",
        ),
    ],
)
def test_a_file_with_a_fault_stops_the_command(desk: Desk, text: str, message: str) -> None:
    desk.rules(text)
    done = desk.run(f"{desk.url}/1", "--field", "product", HTTP)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_rules_for_another_service_are_applied_to_the_page_of_its_answer(desk: Desk) -> None:
    item = {"url": "https://shop.example/1", "name": "Cookie notice"}
    with FaultyService() as service:
        service.plays("shop.example", page(browserHtml=LAMP.decode(), product=item))
        desk.environment.update(EXTRACT_API_URL=service.url, EXTRACT_API_KEY="0123456789abcdef-secret")
        desk.rules('[product]\nname = "h1"\n', "shop.example.toml")
        done = desk.run("--explain", "https://shop.example/1")
        (post,) = service.posts
    assert (done.returncode, done.stderr) == (0, "")
    assert post.fields.keys() == {"url", "product", "browserHtml"}
    assert re.search(r"^name +h1 +Cookie notice → Lamp One$", done.stdout, re.MULTILINE)


def test_doubtful_items_are_left_out_of_records_and_counted_for_any_service(desk: Desk) -> None:
    item = {"url": "https://shop.example/1", "metadata": {"probability": 0.2}}
    threshold = """--params={"minProbability": 0.5}"""
    with FaultyService() as service:
        service.plays("shop.example", page(product=item))
        desk.environment.update(EXTRACT_API_URL=service.url, EXTRACT_API_KEY="0123456789abcdef-secret")
        done = desk.run("https://shop.example/1", "https://shop.example/3", "--field", "product", threshold)
        wrong = desk.run("https://shop.example/2", "--field", "product", threshold.replace("0.5", "5"))
        explained = desk.run("--explain", "https://shop.example/1", "--kind", "product", threshold)
        assert [set(post.fields) for post in service.posts] == [{"url", "product"}] * 3
    result = json.loads(done.stdout.splitlines()[0])["result"]
    assert ("product" in result, result["leftOut"]) == (False, {"product": {"count": 1, "probability": 0.2}})
    assert "2 lines: 2 answered, 0 failed, 2 items left out, in " in done.stderr
    assert "minProbability must be 0 to 1, got 5" in wrong.stderr.replace(":", "")
    assert explained.stdout.startswith("product of https://shop.example/1, with a probability of 0.2\n")


def test_what_cannot_be_explained_is_a_wrong_call(desk: Desk) -> None:
    assert "--explain takes one URL" in desk.run("--explain", "http://a.example", "http://b.example").stderr
