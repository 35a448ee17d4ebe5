"""Comments on items and their fields."""

from __future__ import annotations

import pytest

from tests.support.http import Http


async def test_comments_are_written_read_changed_and_deleted(http: Http, project: int) -> None:
    job = f"/api/comments/{project}/1/2"
    first = (await http.post(f"{job}/0", {"text": "Wrong price"})).json
    assert (first["text"], first["author"]) == ("Wrong price", "api")
    assert len(first["created"]) == len("2020-01-01T00:00:00")
    second = (await http.post(f"{job}/0", {"text": "Still wrong, 50 €"})).json
    on_field = (await http.post(f"{job}/7/price", {"text": "Here"})).json
    assert (await http.get(f"{job}/0")).json == [first, second]
    assert (await http.get(f"{job}/7/price")).json == [on_field]
    assert (await http.get(f"{job}/7")).json == []
    assert (await http.get(job)).json == {"0": [first, second], "7/price": [on_field]}
    assert (await http.get(f"/api/comments/{project}/stats")).json == {f"{project}/1/2": 2}
    one = f"/api/comments/{second['id']}"
    assert (await http.call("PUT", one, {"text": "Right now"})).json == {**second, "text": "Right now"}
    assert (await http.get(one)).json["text"] == "Right now"
    assert (await http.delete(one)).json == {"status": "ok", "count": 1}
    assert (await http.get(one)).status == (await http.delete(one)).status == 404
    assert (await http.delete(f"{job}/0")).json == {"status": "ok", "count": 1}
    assert (await http.get(job)).json == {"7/price": [on_field]}


async def test_comments_have_the_paths_of_the_document_too(http: Http, project: int) -> None:
    job = f"/comments/{project}/1/2"
    comment = (await http.post(f"{job}/0", {"text": "Wrong price"})).json
    assert (await http.get(job)).json == (await http.get(f"/api{job}")).json == {"0": [comment]}
    assert (await http.get(f"/comments/{project}/stats")).json == {f"{project}/1/2": 1}
    assert (await http.get(f"/comments/{comment['id']}")).json == comment
    missing = await http.get(f"/comments/{project}-99")
    assert (missing.status, missing.json["status"]) == (404, "error")


@pytest.mark.parametrize(
    ("path", "said"),
    [("{}/1/2/0", "text: must be 1 to 10000"), ("{}/1/2/x", "item: must be a whole number"), ("x/1/2/0", "project:")],
)
async def test_faults_are_reported(http: Http, project: int, path: str, said: str) -> None:
    answer = await http.post(f"/api/comments/{path.format(project)}", {"text": ""})
    assert answer.status == 400
    assert said in answer.json["message"]
    assert (await http.get("/api/comments/77")).status == 400
    assert (await http.post(f"/api/comments/{project}/stats")).status == 405
