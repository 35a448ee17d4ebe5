"""The collections browser, over HTTP."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import pytest

from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, rows, submit, texts

KEYS = ["a/b?c=d&e", "ümläut 1", "..", HOSTILE, " space ", "line\nbreak"]


async def records(http: Http, project: int, name: str, keys: list[str], kind: str = "s") -> str:
    answer = await http.post(f"/collections/{project}/{kind}/{name}", [{"_key": key, "value": 1} for key in keys])
    assert answer.status == 200
    return f"/ui/{project}/collections/{kind}/{name}"


async def test_collections_are_listed_counted_and_searched(http: Http, project: int) -> None:
    await records(http, project, "pages", ["1", "2", "3"])
    await records(http, project, "seen", ["1"], kind="vcs")
    document = page(await http.get(f"/ui/{project}/collections"))
    assert [[row[0], row[2]] for row in rows(document)] == [["pages", "3"], ["seen", "1"]]
    document = page(await http.get(f"/ui/{project}/collections?q=see"))
    assert [row[0] for row in rows(document)] == ["seen"]
    assert "No collections" in page(await http.get(f"/ui/{project}/collections?q=nothing")).text_content()


async def test_records_are_paged_by_key_and_found_by_prefix(http: Http, project: int) -> None:
    path = await records(http, project, "many", [f"{prefix}{n:03}" for prefix in "ab" for n in range(60)])
    found: list[str] = []
    address = path
    while address:
        document = page(await http.get(address))
        found += texts(document, "//tbody/tr/td[1]")
        onward = document.xpath("//nav[@class='pager']/a[text()='next']/@href")
        address = onward[0] if onward else ""
    assert found == [f"{prefix}{n:03}" for prefix in "ab" for n in range(60)]
    document = page(await http.get(f"{path}?prefix=b"))
    assert "60 records with this prefix" in document.text_content()
    assert texts(document, "//tbody/tr/td[1]")[0] == "b000"
    (following,) = document.xpath("//nav[@class='pager']/a[text()='next']/@href")
    assert len(rows(page(await http.get(following)))) == 10


async def test_records_are_downloaded(http: Http, project: int) -> None:
    path = await records(http, project, "many", ["a1", "a2", "b1"])
    document = page(await http.get(f"{path}?prefix=a"))
    (lines,) = document.xpath("//a[@download and normalize-space()='JSON lines']/@href")
    answer = await http.get(lines)
    assert answer.lines == [{"_key": "a1", "value": 1}, {"_key": "a2", "value": 1}]
    assert "many.jl" in answer.headers["Content-Disposition"]


async def test_every_key_leads_to_its_record_and_none_becomes_markup(http: Http, project: int) -> None:
    path = await records(http, project, "odd", KEYS)
    document = page(await http.get(path))
    links = document.xpath("//tbody//a/@href")
    assert len(links) == len(KEYS)
    for link in links:
        shown = page(await http.get(link))
        assert json.loads(shown.xpath("//textarea[@name='record']")[0].text) == {"value": 1}
        assert shown.xpath("//form[@class='fields']/@action") == [link]


@pytest.mark.parametrize("key", ["plain", HOSTILE], ids=["plain", "hostile"])
async def test_a_record_is_made_edited_and_deleted(http: Http, project: int, key: str) -> None:
    path = await records(http, project, "c", ["other"])
    where = f"{path}/record?{urlencode({'key': key})}"
    made = await submit(
        http, f"{path}/record", {"action": "save", "key": key, "record": '{"a": [1, "ü"]}', "stored": ""}
    )
    assert done(made) == "Saved."
    document = page(await http.get(where))
    (stored,) = document.xpath("//input[@name='stored']/@value")
    fields = {"action": "save", "record": json.dumps({"a": HOSTILE}), "stored": stored}
    await submit(http, where, fields)
    kept = await http.get(f"/collections/{project}/s/c?{urlencode({'key': key})}")
    assert kept.lines == [{"a": HOSTILE}]
    deleted = await submit(http, where, {"action": "delete"})
    assert done(deleted) == "Deleted."
    assert (await http.get(where)).status == 404


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"key": "", "record": "{}"}, "is required"),
        ({"key": "k", "record": "{"}, "is not JSON"),
        ({"key": "k", "record": "[1]"}, "must be a JSON object"),
        ({"key": "k", "record": '{"a": 1e400}'}, "is not JSON"),
        ({"key": "k", "record": '{"a": 99999999999999999999999}'}, "has a number"),
        ({"key": "k", "record": '{"_key": "another"}'}, "has _key"),
        ({"key": "there", "record": "{}"}, "has a record already"),
        ({"key": "there", "record": "{}", "stored": "5"}, "was changed since the page was loaded"),
        ({"key": "gone", "record": "{}", "stored": "5"}, "was deleted since the page was loaded"),
    ],
    ids=["no key", "no JSON", "no object", "infinite", "too large", "another key", "taken", "changed", "deleted"],
)
async def test_what_cannot_be_saved_is_reported_beside_its_field(
    http: Http, project: int, fields: dict[str, str], message: str
) -> None:
    path = await records(http, project, "c", ["there"])
    answer = await submit(http, f"{path}/record", {"action": "save", **fields})
    document = page(answer, 400)
    assert message in " ".join(texts(document, "//*[@role='alert']"))
    assert document.xpath("//textarea[@name='record']")[0].text == "\n" + fields["record"]
    assert document.xpath("//*[@aria-invalid='true']")


async def test_older_copies_are_shown_where_they_are_kept(http: Http, project: int) -> None:
    path = await records(http, project, "v", ["k"], kind="vs")
    for value in (2, 3):
        await http.post(f"/collections/{project}/vs/v", [{"_key": "k", "value": value}])
    document = page(await http.get(f"{path}/record?key=k"))
    assert json.loads(document.xpath("//textarea[@name='record']")[0].text) == {"value": 3}
    assert [json.loads(text) for text in texts(document, "//pre")] == [{"value": 2}, {"value": 1}]


async def test_a_collection_is_renamed_and_deleted(http: Http, project: int) -> None:
    path = await records(http, project, "old", ["1"])
    wrong = await submit(http, path, {"action": "rename", "new_name": "no spaces"})
    assert "must be 1 to 255 letters" in page(wrong, 400).text_content()
    renamed = await submit(http, path, {"action": "rename", "new_name": "new"})
    assert done(renamed) == "Renamed."
    assert (await http.get(path)).status == 404
    deleted = await submit(http, f"/ui/{project}/collections/s/new", {"action": "delete"})
    assert done(deleted) == "Deleted."
    assert rows(page(deleted)) == []


@pytest.mark.parametrize("where", ["s/none", "x/c", f"s/{quote(HOSTILE, safe='')}", "s/c/record?key=none"])
async def test_what_is_not_there_is_not_found(http: Http, project: int, where: str) -> None:
    await records(http, project, "c", ["there"])
    page(await http.get(f"/ui/{project}/collections/{where}"), 404)
