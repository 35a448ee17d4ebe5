"""Requests on the wire, where a real server would accept other forms as well."""

from __future__ import annotations

import pytest

from scrapy_ext.api.platform import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.client.platform.errors import NotFound, PlatformError, UnexpectedAnswer
from tests.support.played_server import Reply, json_reply, lines_reply

JOB = JobKey(1, 2, 3)


async def test_a_job_is_run_with_form_fields(client, server):
    server.script = [json_reply({"status": "ok", "jobid": "1/2/3"})]
    job = await client.jobs.run(
        1, "books", arguments={"genre": "crime & thriller"}, settings={"A": 1}, priority=3, units=2, tags=["a", "b"]
    )
    assert job == JOB
    sent = server.requests[0]
    assert sent.path == "/api/run.json"
    assert sent.headers["content-type"] == "application/x-www-form-urlencoded"
    assert sent.body.decode().split("&") == [
        "project=1",
        "spider=books",
        "priority=3",
        "units=2",
        "add_tag=a",
        "add_tag=b",
        "job_settings=%7B%22A%22%3A1%7D",
        "genre=crime+%26+thriller",
    ]


async def test_an_argument_with_the_name_of_a_parameter_is_refused(client, server):
    with pytest.raises(ContractError, match="priority: cannot be the name of a spider argument"):
        await client.jobs.run(1, "books", arguments={"priority": "4"})
    assert server.requests == []


async def test_jobs_are_listed_by_their_filters(client, server):
    server.script = [json_reply({"status": "ok", "count": 0, "total": 0, "jobs": []})]
    assert (await client.jobs.list(1, state="running", has_tag=["a", "b"], count=5)).jobs == []
    assert server.requests[0].parameters == [
        ("project", "1"),
        ("state", "running"),
        ("has_tag", "a"),
        ("has_tag", "b"),
        ("count", "5"),
    ]


async def test_the_queue_makes_and_changes_jobs_by_json_lines(client, server):
    server.script = [lines_reply({"key": "1/2/3", "auth": "token"}), lines_reply({"prevstate": "running", "key": "x"})]
    pushed = await client.jobq.push(1, "books", spider_args={"a": "b"})
    assert (pushed.key, pushed.auth) == ("1/2/3", "token")
    assert await client.jobq.update(1, JOB, state="finished", close_reason="finished") == "running"
    assert server.requests[0].lines() == [{"spider": "books", "state": "running", "spider_args": {"a": "b"}}]
    assert server.requests[1].lines() == [{"key": "1/2/3", "state": "finished", "close_reason": "finished"}]


async def test_changing_a_job_that_does_not_exist_is_an_error(client, server):
    server.script = [lines_reply()]
    with pytest.raises(NotFound, match="there is no job 1/2/3"):
        await client.jobq.update(1, JOB, state="finished")


async def test_a_push_without_an_answer_is_an_error(client, server):
    server.script = [lines_reply()]
    with pytest.raises(UnexpectedAnswer, match="no job in the answer"):
        await client.jobq.push(1, "books")


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda client: client.jobs.run(1, "books"), {"status": "ok", "jobid": "seven"}),
        (lambda client: client.jobs.run(1, "books"), {"status": "ok"}),
        (lambda client: client.jobs.list(1), {"status": "ok"}),
        (lambda client: client.jobs.list(1), {"status": "ok", "count": 1, "total": 1, "jobs": [{"id": 5}]}),
        (lambda client: client.jobq.push(1, "books"), {"key": 5}),
        (lambda client: client.items.get(JOB.entity(0)), [1]),
        (lambda client: client.collections.get(1, "s", "seen", "k"), [1]),
        (lambda client: client.frontier.read(1, "main", "0"), {"id": "a", "requests": [["a"]]}),
        (lambda client: client.system.timestamp(), "now"),
        (lambda client: client.periodic.get(1, 2), {"id": 2}),
    ],
)
async def test_answers_of_another_shape_are_reported_as_such(client, server, call, answer):
    server.script = [json_reply(answer)]
    with pytest.raises(UnexpectedAnswer):
        await call(client)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.jobs.list(1),
        lambda client: client.items.get(JOB.entity(0)),
        lambda client: client.frontier.read(1, "main", "0"),
    ],
)
async def test_text_of_an_answer_that_is_not_utf_8_is_reported_as_such(client, server, call):
    server.script = [Reply(body=b'{"id":"\x9a"}\n')]
    with pytest.raises(UnexpectedAnswer):
        await call(client)
    server.script = [Reply(status=400, body=b'{"message":"\x9a"}')]
    with pytest.raises(PlatformError):
        await call(client)


async def test_periodic_jobs_are_sent_as_json_and_read_as_records(client, server):
    schedule = {
        "id": 5,
        "project": 1,
        "disabled": False,
        "type": "spider",
        "description": "",
        "cron": "0 4 * * *",
        "addtags": [],
        "tasks": [{"name": "books", "priority": 2}],
    }
    server.script = [
        json_reply(schedule),
        json_reply({**schedule, "disabled": True}),
        json_reply(
            {"count": 1, "next": None, "previous": None, "results": [schedule], "meta": {"suggested_hour": "3"}}
        ),
        Reply(204, type=None),
    ]
    created = await client.periodic.create(1, {"cron": "0 4 * * *", "tasks": [{"name": "books"}]})
    assert (created.id, created.tasks[0].name) == (5, "books")
    assert (await client.periodic.update(1, 5, {"disabled": True})).disabled
    listed = await client.periodic.list(1)
    assert (listed.results[0].id, listed.next, listed.meta.suggested_hour) == (5, None, "3")
    await client.periodic.delete(1, 5)
    assert [(request.method, request.path) for request in server.requests] == [
        ("POST", "/api/projects/1/periodicjobs"),
        ("PATCH", "/api/projects/1/periodicjobs/5"),
        ("GET", "/api/projects/1/periodicjobs"),
        ("DELETE", "/api/projects/1/periodicjobs/5"),
    ]
    assert server.requests[1].json() == {"disabled": True}


async def test_deleting_many_goes_in_several_bodies_of_json_strings(client, server):
    server.script = [Reply()]
    keys = [f"k{n}" for n in range(5001)]
    await client.collections.delete_keys(1, "s", "seen", keys)
    await client.frontier.delete_batches(1, "main", "0", keys)
    assert [len(request.lines()) for request in server.requests] == [5000, 1, 5000, 1]
    assert [request.path for request in server.requests[1:3]] == [
        "/collections/1/s/seen/deleted",
        "/hcf/1/main/s/0/q/deleted",
    ]
    assert server.requests[1].body == b'"k5000"\n'


async def test_whole_collections_are_deleted_and_renamed_by_name(client, server):
    server.script = [Reply(202, b'{"status":"success"}')]
    await client.collections.drop(1, "old")
    await client.collections.rename(1, "old", "new")
    assert [request.raw_path for request in server.requests] == [
        "/collections/1/delete?name=old",
        "/collections/1/rename?name=old&new_name=new",
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.collections.write(1, "x", "seen", b""),
        lambda client: client.collections.write(1, "s", "no/name", b""),
        lambda client: client.collections.drop(1, ""),
        lambda client: client.frontier.add(1, "", "0", b""),
        lambda client: client.frontier.add(1, "main", "a/b", b""),
        lambda client: client.frontier.delete_slot(1, "main", ".."),
        lambda client: client.frontier.slots(1, "."),
    ],
)
async def test_names_that_no_path_can_hold_are_refused_before_anything_is_sent(client, server, call):
    with pytest.raises(ContractError):
        await call(client)
    assert server.requests == []


async def test_frontier_requests_are_counted_when_they_are_new(client, server):
    server.script = [json_reply({"newcount": 2})]
    assert await client.frontier.add(1, "main", "0", b'{"fp":"a"}\n{"fp":"b"}\n') == 2
    assert server.requests[0].path == "/hcf/1/main/s/0"


async def test_batches_are_read_with_their_requests(client, server):
    server.script = [lines_reply({"id": "00a", "requests": [["fp", {"a": 1}], ["fp2", None]]})]
    (batch,) = await client.frontier.read(1, "main", "0", 50)
    assert (batch.id, batch.requests) == ("00a", [("fp", {"a": 1}), ("fp2", None)])
    assert server.requests[0].parameters == [("mincount", "50")]


async def test_a_job_unknown_to_the_platform_has_empty_metadata_or_none_at_all(client, server):
    server.script = [Reply(), json_reply({}), Reply(404)]
    assert await client.jobs.metadata(JOB) == {}
    assert await client.jobs.metadata(JOB) == {}
    with pytest.raises(NotFound):
        await client.jobs.metadata(JOB)


async def test_a_script_is_run_with_its_command_line_and_environment(client, server):
    server.script = [json_reply({"status": "ok", "jobid": "1/2/3"})]
    await client.jobs.run(1, "py:report.py", cmd_args="--days 7", environment={"REGION": "eu"})
    assert server.requests[0].body.decode().split("&") == [
        "project=1",
        "spider=py%3Areport.py",
        "environment=%7B%22REGION%22%3A%22eu%22%7D",
        "cmd_args=--days+7",
    ]


async def test_a_queue_is_read_to_its_end_where_only_its_head_can_be_read(client, server):
    batches = [{"id": "a", "requests": [["1", None]]}, {"id": "b", "requests": [["2", None]]}]
    server.script = [lines_reply(*batches), lines_reply(*batches)]
    found = [(batch.id, batch.priority) async for batch in client.frontier.queue(1, "f", "0")]
    assert found == [("a", None), ("b", None)]
    assert server.requests[1].parameters == [("mincount", "2000"), ("startafter", "b"), ("meta", "_p")]


async def test_a_queue_is_not_taken_for_whole_when_its_head_alone_can_be_read(client, server):
    server.script = [lines_reply({"id": "a", "requests": [["1", None], ["2", None]]})] * 20
    with pytest.raises(UnexpectedAnswer, match="returns the head of a queue alone"):
        _ = [batch async for batch in client.frontier.queue(1, "f", "0", count=2)]
