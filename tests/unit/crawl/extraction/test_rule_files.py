"""Files of rules: which file is for which URL, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy import Request
from scrapy.settings import BaseSettings

from scrapy_ext.crawl.extraction.fingerprint import ExtractRequestFingerprinter
from scrapy_ext.crawl.extraction.rule_files import SiteRules
from scrapy_ext.crawl.extraction.site_rules import NotAppliedError, RuleReports
from scrapy_ext.settings import SettingError

NAME = '[product]\nname = "h1"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "extract_rules"
    folder.mkdir()
    return folder


def read(folder: Path, **settings: str) -> SiteRules:
    return SiteRules.of(BaseSettings({f"EXTRACT_API_{name}": value for name, value in settings.items()}))


def file_of(rules: SiteRules, host: str) -> str | None:
    file = rules.file_for(f"https://{host}/p?a=1")
    return None if file is None else file.path


def test_a_file_is_for_the_host_of_its_name(folder: Path) -> None:
    (folder / "shop.example.toml").write_text(NAME)
    rules = read(folder)
    path = "extract_rules/shop.example.toml"
    assert [
        file_of(rules, host) for host in ("shop.example", "www.shop.example", "SHOP.example", "shop.example:8000")
    ] == [path] * 4
    assert [file_of(rules, host) for host in ("m.shop.example", "xshop.example", "example")] == [None] * 3


def test_match_names_hosts_and_the_closest_wins(folder: Path) -> None:
    (folder / "a.toml").write_text('match = ["*.example"]\n' + NAME)
    (folder / "b.toml").write_text('match = ["*.shop.example", "münchen.example"]\n' + NAME)
    (folder / "c.toml").write_text('match = ["de.shop.example"]\n' + NAME)
    rules = read(folder)
    hosts = (
        "de.shop.example",
        "fr.shop.example",
        "x.de.shop.example",
        "shop.example",
        "xn--mnchen-3ya.example",
        "example",
    )
    files = [path and path[-6] for path in (file_of(rules, host) for host in hosts)]
    assert files == ["c", "b", "b", "a", "b", None]


def test_rules_are_for_requests_of_their_kind(folder: Path) -> None:
    (folder / "shop.example.toml").write_text(NAME + '[article]\nheadline = ".h"\n')
    rules = read(folder)
    url = "https://shop.example/1"
    used = rules.for_request(url, {"product": True, "browserHtml": True})
    assert used is not None
    assert (used.file, used.kind, used.rules) == ("extract_rules/shop.example.toml", "product", {"name": {"css": "h1"}})
    assert used.of("name") == "extract_rules/shop.example.toml: product.name (h1)"
    assert rules.for_request(url, {"browserHtml": True}) is None
    assert rules.for_request(url, {"productList": True}) is None
    assert rules.for_request("https://other.example/", {"product": True}) is None


def test_an_example_counts_on_its_page_alone(folder: Path) -> None:
    url = "https://shop.example/1"
    (folder / "shop.example.toml").write_text(f'{NAME}sku = {{ example = "A-1", url = "{url}" }}\n')
    rules = read(folder)
    of_page, of_other = (rules.for_request(each, {"product": True}) for each in (f"{url}#top", f"{url}2"))
    assert of_page is not None
    assert of_other is not None
    assert of_page.rules == {"name": {"css": "h1"}, "sku": {"example": "A-1"}}
    assert of_other.rules == {"name": {"css": "h1"}}
    with pytest.raises(SettingError, match=r"Run scrapy extract --explain https://shop\.example/1"):
        rules.require_selectors()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[product\n", "shop.toml is no TOML: .*line 1"),
        (
            '[produkt]\nname = "h1"\n',
            "produkt is no kind of item. The kinds that rules correct are product,",
        ),
        ('name = "h1"\n', "shop.toml: name is no kind of item"),
        ("[product]\nname = 1\n", "shop.toml: product.name must be a CSS selector or a table. Write name ="),
        ('[product]\nname = "a{"\n', "shop.toml: product.name.css is no CSS selector"),
        ('[product]\nname = { csss = "a" }\n', "product.name.csss is not a part of a rule. Its parts are css,"),
        ('[product]\nnaem = "a"\n', "product.naem is not a field of product that a rule can set. Use name,"),
        (
            '[product]\nsku = { example = "1" }\n',
            'product.sku must have both example and url.*Write sku = { example = "the',
        ),
        ('[product]\nsku = { example = "1", url = "p/1" }\n', "product.sku must have both example and url"),
        ('match = "a"\n', r'match must be a list of 1 to 100 hosts. Write match = \["shop.example"\]'),
        ('match = ["https://a.example/"]\n', "match has 'https://a.example/', which is no host"),
        ("match = [1]\n", "match has 1, which is no host"),
        ("[product]\nname = " + "[" * 2000 + "]" * 2000, "shop.toml is nested too deeply"),
        ("[product]\nname = " + "9" * 5000, "shop.toml is no TOML"),
        (
            f'{NAME}price = {{ value = "cheap" }}\n',
            "product.price.value is 'cheap', which is no price. Write the value that the page has",
        ),
        (f'{NAME}color = {{ value = " " }}\n', "product.color.value is an empty text"),
        (
            f'match = ["*.a.example"]\n{NAME}sku = {{ example = "1", url = "https://u:secret@a.example/" }}\n',
            "product.sku.url is on a.example, which is no host of this file. "
            "Name a page of these hosts, or add its host to match",
        ),
    ],
)
def test_a_fault_names_file_field_rule_and_remedy(folder: Path, text: str, message: str) -> None:
    (folder / "shop.toml").write_text(text)
    with pytest.raises(SettingError, match=f"(?s)^extract_rules/.*{message}"):
        read(folder)


def test_all_faults_are_reported_together(folder: Path) -> None:
    (folder / "a.toml").write_text('[product]\nname = "a{"\nnaem = "a"\n')
    (folder / "b.toml").write_text("[")
    with pytest.raises(SettingError) as caught:
        read(folder)
    assert "a.toml: product.name.css" in str(caught.value)
    assert "b.toml is no TOML" in str(caught.value)


def test_bytes_that_are_no_text_are_a_fault(folder: Path) -> None:
    (folder / "a.toml").write_bytes(b'match = ["\xff"]')
    with pytest.raises(SettingError, match=r"a\.toml must be UTF-8, and byte 11 is not"):
        read(folder)
    (folder / "a.toml").write_bytes(b"#" * 200_001)
    with pytest.raises(SettingError, match="must have at most 200000 bytes"):
        read(folder)


def test_two_files_for_a_host_are_a_fault(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.toml").write_text('match = ["shop.example"]\n' + NAME)
    with pytest.raises(SettingError, match=r"b\.toml is for shop\.example, as extract_rules/a\.toml is"):
        read(folder)


def test_the_setting_names_another_folder_or_none(folder: Path) -> None:
    (folder / "shop.example.toml").write_text(NAME)
    assert not read(folder, RULES="")
    with pytest.raises(SettingError, match="EXTRACT_API_RULES names other, which is no folder"):
        read(folder, RULES="other")
    folder.rename(folder.with_name("other"))
    assert not read(folder), "there is no folder of the default name"
    assert file_of(read(folder, RULES="other"), "shop.example") == "other/shop.example.toml"


@pytest.mark.parametrize(
    "host",
    [
        *("shop.example?x", "shop.example#", "a@b.example", "shop,example", "shop..example", "*.", "*shop.example", ""),
        *("-.example", f"{'a' * 64}.example", f"{'ü' * 60}.example", "a." * 130 + "example", "☃.example"),
    ],
)
def test_a_host_that_no_url_has_is_a_fault(folder: Path, host: str) -> None:
    (folder / "shop.example.toml").write_text(f'match = ["{host}"]\n{NAME}')
    with pytest.raises(SettingError, match=r"shop\.example\.toml: match has '.*, which is no host\. Write"):
        read(folder)


def test_hosts_are_compared_as_browsers_send_them(folder: Path) -> None:
    (folder / "straße.example.toml").write_text(NAME)
    (folder / "b.toml").write_text('match = ["BÜCHER.example.", "a_b.example"]\n' + NAME)
    rules = read(folder)
    hosts = ("straße.example", "xn--strae-oqa.example", "strasse.example", "bücher.example", "xn--bcher-kva.example.")
    files = [path and path.removeprefix("extract_rules/") for path in (file_of(rules, host) for host in hosts)]
    assert files == ["straße.example.toml"] * 2 + [None] + ["b.toml"] * 2
    assert file_of(rules, "A_B.example") == "extract_rules/b.toml"
    assert file_of(rules, "ü" * 100_000) is None


def test_messages_name_the_file_where_its_name_is_the_host(folder: Path) -> None:
    (folder / "my shop.toml").write_text(NAME)
    with pytest.raises(SettingError, match=r"my shop\.toml has the name 'my shop', which is no host\. Name it"):
        read(folder)
    (folder / "my shop.toml").unlink()
    for name in ("shop.example.toml", "www.shop.example.toml"):
        (folder / name).write_text(NAME)
    fault = r"www\.shop\.example\.toml is for www\.shop\.example, as extract_rules/shop\.example\.toml is"
    with pytest.raises(SettingError, match=fault):
        read(folder)


def test_a_file_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    (folder / "shop.example.toml").write_bytes(b"\xef\xbb\xbf" + NAME.encode())
    assert file_of(read(folder), "shop.example") is not None


def test_other_files_are_reported_and_a_folder_without_rules_is_a_fault(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.example.TOML", "b.example", ".hidden", "__init__.py"):
        (folder / name).write_text(NAME)
    (folder / "sub").mkdir()
    assert not read(folder)
    assert caplog.messages == [
        f"Not read in the folder {folder}, since files of rules end in .toml: a.example.TOML, b.example, sub"
    ]
    with pytest.raises(SettingError, match=r"EXTRACT_API_RULES names extract_rules, which has no \.toml file"):
        read(folder, RULES="extract_rules")
    (folder / "sub").rename(folder / "c.example.toml")
    with pytest.raises(SettingError, match=r"c\.example\.toml is a folder\. Move its files"):
        read(folder)


def test_an_example_is_found_by_its_escaped_url(folder: Path) -> None:
    url = "https://Bücher.example/Käse?größe=1"
    (folder / "bücher.example.toml").write_text(f'{NAME}sku = {{ example = "A-1", url = "{url}" }}\n', "utf-8")
    used = read(folder).for_request(Request(url).url, {"product": True})
    assert used is not None
    assert used.rules["sku"] == {"example": "A-1"}


def test_users_of_urls_are_in_no_message(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = "https://name:secret@shop.example/1"
    (folder / "shop.example.toml").write_text(f'{NAME}sku = {{ example = "A-1", url = "{url}" }}\n')
    rules = read(folder)
    with pytest.raises(SettingError) as caught:
        rules.require_selectors()
    used, reports = rules.for_request(url, {"product": True}), RuleReports()
    assert used is not None
    reports.add(used, {"name": {"rule": "h1", "fault": "found nothing"}}, url)
    reports.not_applied(used, url, NotAppliedError("no HTML"))
    text = "\n".join([str(caught.value), *caplog.messages])
    assert text.count("https://shop.example/1") == 3
    assert "secret" not in text


def test_rules_of_the_setting_beside_files_are_a_fault(folder: Path) -> None:
    params = '{"extractRules": {"name": {"css": "h2"}}}'
    assert not read(folder, PARAMS=params)
    (folder / "shop.example.toml").write_text(NAME)
    fault = r"EXTRACT_API_PARAMS has extractRules, and extract_rules/shop\.example\.toml has .*EXTRACT_API_RULES = \"\""
    with pytest.raises(SettingError, match=fault):
        read(folder, PARAMS=params)
    assert not read(folder, PARAMS=params, RULES="")


def test_requests_with_other_rules_have_other_fingerprints(folder: Path) -> None:
    def of(fields: dict[str, object], url: str = "https://shop.example/1") -> bytes:
        fingerprinter = ExtractRequestFingerprinter(transparent=False, params={}, rules=read(folder))
        return fingerprinter.fingerprint(Request(url, meta={"extract_api": fields}))

    without = of({"product": True})
    (folder / "shop.example.toml").write_text(NAME)
    first = of({"product": True})
    assert of({"product": True, "extractRules": None}) == without
    assert of({"browserHtml": True}) == of({"browserHtml": True, "extractRules": None})
    (folder / "shop.example.toml").write_text(NAME + 'sku = ".sku"\n')
    second = of({"product": True})
    own = of({"product": True, "extractRules": {"name": {"css": "h2"}}})
    assert len({without, first, second, own}) == 4
    other = "https://other.example/1"
    assert of({"product": True}, other) == of({"product": True, "extractRules": None}, other)
