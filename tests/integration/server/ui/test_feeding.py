"""The form that pushes requests, on the pages of frontiers and of jobs that wait."""

from __future__ import annotations

from tests.support.http import Http
from tests.support.page_forms import HOSTILE, done, page, submit, texts


async def frontier(http: Http, project: int) -> str:
    assert (await http.post(f"/hcf/{project}/shop/feed", b"https://a.example/")).status == 200
    return f"/ui/{project}/frontiers/shop"


async def test_lines_are_pushed_by_the_form_of_a_frontier(http: Http, project: int) -> None:
    path = await frontier(http, project)
    typed = 'https://a.example/\r\n\r\n{"url": "https://a.example/2", "priority": 1}\r\n'
    answer = await submit(http, path, {"action": "push", "push": "one", "requests": typed})
    assert done(answer) == "New requests: 1. The frontier knew the others, if any."
    assert (await http.get(f"/hcf/{project}/shop/feed")).json["slots"] == 8
    (change,) = (await http.get(f"/activity/{project}")).lines
    assert (change["event"], change["user"], change["frontier"], change["pushed"]) == (
        "frontier:changed",
        "api",
        "shop",
        1,
    )


async def test_a_form_that_is_sent_twice_pushes_once(http: Http, project: int) -> None:
    path = await frontier(http, project)
    (push,) = page(await http.get(path)).xpath("//form//input[@name='push']/@value")
    typed = '{"url": "https://a.example/", "dont_filter": true}'
    told = [done(await submit(http, path, {"action": "push", "push": push, "requests": typed})) for _ in range(2)]
    assert [text.split(".")[0] for text in told] == ["New requests: 1", "New requests: 0"]


async def test_a_bad_line_is_shown_beside_the_text_that_was_typed(http: Http, project: int) -> None:
    path = await frontier(http, project)
    typed = f"https://a.example/2\n{HOSTILE}"
    answer = await submit(http, path, {"action": "push", "push": "one", "requests": typed})
    document = page(answer, 400)
    (message,) = texts(document, "//*[@id='requests-hint']")
    assert message.startswith("line 2.url: cannot be requested")
    assert message.endswith("Nothing was pushed.")
    assert document.xpath("//textarea[@name='requests']")[0].text.strip() == typed
    for fields, rule in (
        ({"requests": ""}, "are missing"),
        ({"requests": "https://a/", "push": "a b"}, "must be the ID"),
    ):
        answer = await submit(http, path, {"action": "push", "push": "one", **fields})
        assert rule in texts(page(answer, 400), "//*[@id='requests-hint']")[0]


async def test_a_job_that_waits_says_so_and_has_the_form(http: Http, project: int) -> None:
    (pushed,) = (await http.post(f"/jobq/{project}/push", [{"spider": "news", "state": "running"}])).lines
    key = pushed["key"]
    assert not page(await http.get(f"/ui/{key}")).xpath("//textarea[@name='requests']")
    await http.post(f"/jobs/{key}", b'{"frontier": "shop", "waits_since": 1700000000000}')
    document = page(await http.get(f"/ui/{key}"))
    assert texts(document, "//*[@class='waiting']") == ["waits for requests since 2023-11-14 22:13:20 UTC"]
    (form,) = document.xpath("//form[.//textarea[@name='requests']]")
    assert form.get("action") == f"/ui/{project}/frontiers/shop"
    await http.post(f"/jobs/{key}", b'{"waits_since": null}')
    assert texts(page(await http.get(f"/ui/{key}")), "//*[@class='waiting']") == []
