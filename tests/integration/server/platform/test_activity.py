"""Activity over HTTP: both forms of the path, order, meta, several projects."""

from __future__ import annotations

import pytest

from tests.support.http import Http


@pytest.mark.parametrize("slash", ["", "/"])
async def test_messages_come_back_newest_first_with_or_without_a_slash(http: Http, project: int, slash: str) -> None:
    posted = await http.post(f"/activity/{project}{slash}", [{"n": 0}, {"n": 1}])
    assert (posted.status, posted.body) == (200, b"")
    assert (await http.post(f"/activity/{project}{slash}", b'{ "n" : 2 }')).status == 200
    answer = await http.get(f"/activity/{project}{slash}")
    assert answer.body == b'{ "n" : 2 }\n{"n": 1}\n{"n": 0}\n'
    assert (await http.get(f"/activity/{project}{slash}?count=1")).lines == [{"n": 2}]
    (newest,) = (await http.get(f"/activity/{project}{slash}?count=1&meta=_project&meta=_ts")).lines
    assert newest["_project"] == project
    assert newest["_ts"] > 0


@pytest.mark.parametrize("slash", ["", "/"])
async def test_several_projects_are_read_together(http: Http, slash: str) -> None:
    projects = (800_001, 800_002)
    for n in range(6):
        await http.post(f"/activity/{projects[n % 2]}", [{"n": n, "slash": slash}])
    path = f"/activity/projects{slash}?" + "&".join(f"p={each}" for each in projects)
    found = (await http.get(f"{path}&count=6&meta=_project")).lines
    assert sorted(each["n"] for each in found) == list(range(6))
    assert all(each["_project"] == projects[each["n"] % 2] for each in found)
    assert {each["n"] for each in (await http.get(f"{path}&pcount=1&count=6")).lines} == {4, 5}
    assert len((await http.get(f"{path}&count=3")).lines) == 3
    assert (await http.get(f"{path}&count=0")).body == b""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("activity/{p}?count=x", 400),
        ("activity/projects?p=x", 400),
        ("activity/{p}?meta=_key", 400),
        ("activity/x", 400),
    ],
)
async def test_bad_parameters_are_named(http: Http, project: int, path: str, status: int) -> None:
    assert (await http.get(f"/{path.format(p=project)}")).status == status


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"a":"' + b"x" * 2**20 + b'"}'])
async def test_what_is_no_message_is_refused_and_nothing_stored(http: Http, project: int, body: bytes) -> None:
    answer = await http.post(f"/activity/{project}", b'{"good":1}\n' + body)
    assert answer.status in (400, 413)
    assert "line 2" in answer.text
    assert (await http.get(f"/activity/{project}")).body == b""
