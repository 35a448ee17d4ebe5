"""Collections over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.http import Http, longest_wait


@pytest.fixture
def path(project: int) -> str:
    return f"/collections/{project}/s/books"


async def found(http: Http, path: str, query: str = "") -> list[str]:
    return [record["_key"] for record in (await http.get(f"{path}?meta=_key{query}")).lines]


async def test_records_are_written_read_and_updated(http: Http, path: str) -> None:
    answer = await http.post(path, b'{"_key":"a","v":1.0}\n{"v":"\\u00e9", "_key":"b"}\n{"_key":"a","v":2}')
    assert (answer.status, answer.body) == (200, b"")
    assert (await http.get(path)).body == b'{"v":2}\n{"v":"\\u00e9"}\n'
    assert (await http.get(f"{path}/b")).lines == [{"v": "\u00e9"}]
    await http.post(path, [{"_key": "b"}])
    assert (await http.get(f"{path}/b")).lines == [{}]


async def test_records_come_in_the_order_of_their_keys(http: Http, path: str) -> None:
    await http.post(path, [{"_key": str(n)} for n in range(300)])
    assert await found(http, path) == sorted(map(str, range(300)))


async def test_pages_by_count_start_and_startafter(http: Http, path: str) -> None:
    await http.post(path, [{"_key": f"{n:04}"} for n in range(500)])
    keys, after = [], ""
    while page := await found(http, path, f"&count=130{after}"):
        keys += page
        after = f"&startafter={page[-1]}"
    assert keys == [f"{n:04}" for n in range(500)]
    assert await found(http, path, "&start=0498") == ["0498", "0499"]
    assert await found(http, path, "&startafter=0498") == ["0499"]


async def test_records_are_chosen_by_key_prefix_and_time(http: Http, path: str) -> None:
    keys = ["a1", "a2", "a3", "b1", "b2", "c"]
    await http.post(path, [{"_key": key} for key in keys])
    assert await found(http, path, "&key=c&key=a1&key=none") == ["a1", "c"]
    assert await found(http, path, "&prefix=a") == ["a1", "a2", "a3"]
    assert await found(http, path, "&prefix=b&prefix=a&prefixcount=2") == ["a1", "a2", "b1", "b2"]
    assert await found(http, path, "&prefix=b&prefix=a&prefixcount=2&count=3") == ["a1", "a2", "b1"]
    now = int((await http.get("/system/ts")).text)
    assert await found(http, path, f"&startts={now - 60_000}&endts={now + 60_000}") == keys
    assert await found(http, path, f"&startts={now + 60_000}") == []
    stamps = (await http.get(f"{path}?meta=_ts&nodata=1")).lines
    assert all(list(record) == ["_ts"] for record in stamps)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("prefix=a&prefix=ab&prefixcount=1", ["a", "ab1"]),
        ("prefix=ab&prefix=a&prefixcount=2", ["a", "ab1", "ab2"]),
        ("prefix=a&prefix=ab&prefixcount=3", ["a", "ab1", "ab2", "ab3"]),
        ("prefix=a&prefix=ac&prefixcount=6", ["a", "ab1", "ab2", "ab3", "ab4", "ac1", "ac2"]),
        ("prefix=a&prefix=ab4&prefix=ab&prefix=b&prefixcount=2", ["a", "ab1", "ab2", "ab4", "b1", "b2"]),
        ("prefix=a&prefix=aa&prefixcount=2", ["a", "ab1"]),
        ("prefix=a&prefix=ab&prefixcount=0", []),
        ("prefix=a&prefix=ab&prefixcount=2&startafter=ab1", ["ab2", "ab3"]),
        ("prefix=a&prefix=ab&prefixcount=2&start=a0", ["ab1", "ab2"]),
        ("prefix=a&prefix=ab&prefixcount=2&count=2", ["a", "ab1"]),
    ],
)
async def test_each_of_overlapping_prefixes_has_its_number_and_no_record_counts_twice(
    http: Http, path: str, query: str, keys: list[str]
) -> None:
    await http.post(path, [{"_key": key} for key in ("a", "ab1", "ab2", "ab3", "ab4", "ac1", "ac2", "b1", "b2", "b3")])
    assert await found(http, path, f"&{query}") == keys
    if "&count=" not in query:
        counted = (await http.get(f"{path}/count?{query}")).json
        assert counted["count"] == len(keys)
        assert (await http.delete(f"{path}?{query}")).json["deleted"] == len(keys)
        assert not set(keys) & set(await found(http, path))


async def test_the_other_parameters_hold_for_a_few_keys_too(http: Http, path: str) -> None:
    await http.post(path, [{"_key": key} for key in ("a", "b", "c")])
    keys = "&key=b&key=a"
    assert await found(http, path, keys) == ["a", "b"]
    assert await found(http, path, f"{keys}&count=1") == ["a"]
    assert await found(http, path, f"{keys}&count=0") == []
    assert await found(http, path, f"{keys}&prefixcount=0") == []
    assert await found(http, path, f"{keys}&startafter=a") == ["b"]
    assert await found(http, path, f"{keys}&start=b") == ["b"]
    now = int((await http.get("/system/ts")).text)
    assert await found(http, path, f"{keys}&startts={now + 60_000}") == []
    assert await found(http, path, f"{keys}&endts={now + 60_000}") == ["a", "b"]


async def test_records_are_counted(http: Http, path: str) -> None:
    await http.post(path, [{"_key": key} for key in ("a1", "a2", "b1")])
    assert (await http.get(f"{path}/count")).json == {"count": 3, "scanned": 3}
    assert (await http.get(f"{path}/count?prefix=a")).json == {"count": 2, "scanned": 2}
    assert (await http.get(f"{path}/count?endts=1")).json == {"count": 0, "scanned": 3}


async def test_one_record_by_its_path(http: Http, path: str) -> None:
    for key in ("plain", "a%2Fb", "%C3%A9%20x"):
        assert (await http.get(f"{path}/{key}")).status == 404
        assert (await http.post(f"{path}/{key}", b'{"value":"<p>text</p>"}')).status == 200
        answer = await http.get(f"{path}/{key}/value")
        assert (answer.headers["Content-Type"], answer.text) == ("text/plain; charset=UTF-8", "<p>text</p>")
    assert await found(http, path) == ["a/b", "plain", "\u00e9 x"]
    for _ in range(2):
        assert (await http.delete(f"{path}/a%2Fb")).status == 200
    assert await found(http, path) == ["plain", "\u00e9 x"]
    assert (await http.post(f"{path}/plain", b'{"_key":"other"}')).status == 400


async def test_a_key_is_the_rest_of_the_path(http: Http, path: str) -> None:
    keys = ["a", "a/b", "a//b", "a/", "//", "a%2Fb", "a?b=1", "a?b=1&count=2", "..", "count", "deleted"]
    await http.post(path, [{"_key": key, "is": key} for key in keys])
    for sent, key in (
        *((quote(key, safe=""), key) for key in keys if key not in ("count", "deleted")),
        *((key, key) for key in keys if key not in ("a%2Fb", "..", "count", "deleted")),
        ("a%2fb", "a/b"),
        ("a?b=1&meta=_key", "a?b=1"),
    ):
        assert [each["is"] for each in (await http.get(f"{path}/{sent}")).lines] == [key], sent
    for sent in ("b", "a/c", "a//", "a/b/", "a?c=1", "a?meta=_key&c=1", "a/b?b=1"):
        assert (await http.get(f"{path}/{sent}")).status == 404, sent
        assert (await http.delete(f"{path}/{sent}")).status == 200
    assert len(await found(http, path)) == len(keys)
    for sent in ("a?b=1", "a%252Fb", "a/b", "%2F%2F"):
        await http.delete(f"{path}/{sent}")
    assert await found(http, path) == sorted(set(keys) - {"a?b=1", "a%2Fb", "a/b", "//"})
    assert (await http.get(f"{path}/%FF")).status == 400


async def test_a_record_comes_before_the_field_of_another(http: Http, path: str) -> None:
    await http.post(path, [{"_key": "a", "value": "of a"}, {"_key": "b/value", "is": 1}, {"_key": "c/d", "value": 2}])
    answers = [await http.get(f"{path}/{sent}/value") for sent in ("a", "b", "c/d", "c%2Fd", "none")]
    assert [(answer.status, answer.text) for answer in answers[:4]] == [
        (200, "of a"),
        (200, '{"is": 1}\n'),
        (200, "2"),
        (200, "2"),
    ]
    assert answers[4].status == 404


async def test_records_are_deleted_by_list_and_by_selection(http: Http, path: str) -> None:
    await http.post(path, [{"_key": key} for key in ("a1", "a2", "b1", "b2", "c1", "c2")])
    answer = await http.post(f"{path}/deleted", b'"a1"\n["b1","none"]')
    assert (answer.status, answer.body) == (200, b"")
    assert (await http.delete(f"{path}?prefix=c")).json["deleted"] == 2
    assert (await http.delete(f"{path}?key=b2")).json["deleted"] == 1
    assert await found(http, path) == ["a2"]
    refused = await http.delete(path)
    assert refused.status == 400
    assert "delete?name=" in refused.text
    assert await found(http, path) == ["a2"]


async def test_homonyms_are_renamed_and_deleted_together(http: Http, project: int) -> None:
    base = f"/collections/{project}"
    for kind in ("s", "vs"):
        await http.post(f"{base}/{kind}/one", [{"_key": kind}])
    await http.post(f"{base}/cs/two", [{"_key": "x"}])
    assert (await http.post(f"{base}/rename?name=one&new_name=two")).status == 400
    assert (await http.post(f"{base}/rename?name=one&new_name=three")).status == 200
    listed = (await http.get(f"{base}/list")).lines
    assert listed == [{"type": "s", "name": "three"}, {"type": "vs", "name": "three"}, {"type": "cs", "name": "two"}]
    assert await found(http, f"{base}/vs/three") == ["vs"]
    for owned in ("scrapy_commits", "scrapy_snapshots"):
        for query in (f"name=three&new_name={owned}", f"name={owned}&new_name=four"):
            assert (await http.post(f"{base}/rename?{query}")).status == 400  # they have data of deleted jobs
    for _ in range(2):
        answer = await http.post(f"{base}/delete?name=three")
        assert (answer.status, answer.json) == (202, {"status": "success", "deleted": "three"})
    assert (await http.get(f"{base}/list")).lines == [{"type": "cs", "name": "two"}]
    assert await found(http, f"{base}/vs/three") == []
    assert (await http.post(f"{base}/rename?name=three&new_name=four")).status == 404


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"v":1}', 400, "Error parsing data, line 2: missing value for _key field"),
        (b'{"_key":1}', 400, "missing value for _key field"),
        (b'{"_key":"k","v":"' + b"x" * 1048576 + b'"}', 413, "1048576 bytes"),
        (b'{"_key":"k","v":1e400}', 400, "line 2"),
        (b'{"_key":"k","v":18446744073709551616}', 400, "infinite or over"),
        (b'{"_key":"k","v":[{"w":-1e30}]}', 400, "infinite or over"),
        (b'{"_key":"k","v":1' + b"0" * 400 + b"}", 400, "infinite or over"),
        (b"[]", 400, "line 2"),
    ],
)
async def test_bad_records_are_named_and_none_is_stored(
    http: Http, path: str, body: bytes, status: int, said: str
) -> None:
    answer = await http.post(path, b'{"_key":"good"}\n' + body)
    assert answer.status == status
    assert said in answer.text
    assert await found(http, path) == []


async def test_the_largest_number_is_kept_exactly(http: Http, path: str) -> None:
    await http.post(path, b'{"_key":"k","v":18446744073709551615}')
    assert (await http.get(f"{path}/k")).body == b'{"v":18446744073709551615}\n'


@pytest.mark.parametrize("name", ["x/books", "s/bad-name", "s/" + "n" * 256])
async def test_bad_types_and_names_are_refused(http: Http, project: int, name: str) -> None:
    assert (await http.post(f"/collections/{project}/{name}", [{"_key": "a"}])).status == 400


async def test_a_collection_that_was_never_written_is_empty(http: Http, path: str) -> None:
    answer = await http.get(path)
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("kind", ["vs", "vcs"])
async def test_three_copies_of_a_record_are_readable(http: Http, project: int, kind: str) -> None:
    path = f"/collections/{project}/{kind}/c"
    for n in range(5):
        await http.post(path, [{"_key": "k", "n": n}])
        await http.post(path, [{"_key": "k", "n": n}])  # sent again: no copy more
    assert (await http.get(f"{path}/k")).lines == [{"n": 4}]
    assert (await http.get(f"{path}/k?copies=3")).lines == [{"n": 4}, {"n": 3}, {"n": 2}]
    assert (await http.get(f"{path}/k?copies=2")).lines == [{"n": 4}, {"n": 3}]
    dated = (await http.get(f"{path}/k?copies=3&meta=_ts&meta=_key")).lines
    assert [copy["_key"] for copy in dated] == ["k", "k", "k"]
    assert dated[0]["_ts"] >= dated[1]["_ts"] >= dated[2]["_ts"]
    assert (await http.get(f"{path}/none?copies=3")).status == 404
    assert (await http.get(f"{path}?meta=_key")).lines == [{"n": 4, "_key": "k"}]
    await http.delete(f"{path}/k")
    assert (await http.get(f"{path}/k?copies=3")).status == 404


async def test_other_types_have_one_copy(http: Http, path: str) -> None:
    for n in range(3):
        await http.post(path, [{"_key": "k", "n": n}])
    assert (await http.get(f"{path}/k?copies=3")).lines == [{"n": 2}]


async def test_a_deletion_says_what_it_looked_at(http: Http, path: str) -> None:
    await http.post(path, [{"_key": f"a{n}"} for n in range(10)])
    middle = int((await http.get(f"{path}/a0?meta=_ts")).lines[0]["_ts"]) + 1
    assert (await http.delete(f"{path}?prefix=a&startts={middle}")).json == {"deleted": 0, "scanned": 10}
    assert (await http.delete(f"{path}?prefix=a&prefixcount=3")).json == {"deleted": 3, "scanned": 10}
    assert (await http.delete(f"{path}?endts={middle}&startafter=a5")).json == {"deleted": 4, "scanned": 4}
    assert await found(http, path) == ["a3", "a4", "a5"]


async def test_a_record_of_several_prefixes_is_read_and_counted_once(http: Http, path: str) -> None:
    await http.post(path, [{"_key": key} for key in ("a", "a-1", "ab", "ab-1", "b")])
    query = "prefix=ab&prefix=a&prefix=ab-&prefix=b"
    assert [record["_key"] for record in (await http.get(f"{path}?meta=_key&{query}")).lines] == [
        "a", "a-1", "ab", "ab-1", "b"
    ]  # fmt: skip
    assert (await http.get(f"{path}/count?{query}")).json == {"count": 5, "scanned": 5}
    assert len((await http.get(f"{path}?{query}&startafter=a-1")).lines) == 3
    assert (await http.delete(f"{path}?prefix=ab&prefix=a")).json == {"deleted": 4, "scanned": 4}


async def test_a_deletion_that_is_to_end_early_deletes_nothing(http: Http, path: str) -> None:
    await http.post(path, [{"_key": f"a{n}"} for n in range(3)])
    answer = await http.delete(f"{path}?prefix=a&count=1")
    assert answer.status == 400
    assert "count" in answer.text
    assert await found(http, path) == ["a0", "a1", "a2"]


async def test_an_empty_prefix_deletes_nothing(http: Http, path: str) -> None:
    await http.post(path, [{"_key": f"a{n}"} for n in range(3)])
    for query in ("prefix=", "prefix", "prefix=a&prefix=", "prefix=&endts=99999999999999"):
        answer = await http.delete(f"{path}?{query}")
        assert answer.status == 400
        assert answer.text.startswith("prefix: is empty")
    assert await found(http, path) == ["a0", "a1", "a2"]


async def test_records_named_like_a_path_are_read_by_parameter(http: Http, path: str) -> None:
    await http.post(path, [{"_key": "count", "n": 1}, {"_key": "deleted", "n": 2}])
    assert (await http.get(f"{path}?key=count")).lines == [{"n": 1}]
    assert (await http.get(f"{path}/count")).json == {"count": 2, "scanned": 2}
    assert (await http.delete(f"{path}?key=count&key=deleted")).json["deleted"] == 2


async def test_a_record_may_be_nested_as_deeply_as_an_item(http: Http, path: str) -> None:
    nested = b"[" * 600 + b"1" + b"]" * 600
    assert (await http.post(path, b'{"_key":"a","v":' + nested + b"}")).status == 200
    assert (await http.get(path)).body == b'{"v":' + nested + b"}\n"
    beyond = nested.replace(b"1", b"%d" % 2**64)
    assert (await http.post(path, b'{"_key":"a","v":' + beyond + b"}")).status == 400


@pytest.mark.long
async def test_others_are_answered_while_many_numbers_are_checked(http: Http, path: str) -> None:
    numbers = b"[" + b"1," * 400_000 + b"1]"
    body = b"\n".join(b'{"_key":"%d","v":%s}' % (number, numbers) for number in range(8))
    assert await longest_wait(http, lambda: http.post(path, body)) < 0.35


async def test_count_limits_the_list_of_collections(http: Http, project: int) -> None:
    for name in ("a", "b"):
        await http.post(f"/collections/{project}/s/{name}", [{"_key": "k"}])
    assert (await http.get(f"/collections/{project}/list?count=1")).lines == [{"type": "s", "name": "a"}]
