"""Jobs that run: a real server, real processes."""

from __future__ import annotations

import json

import pytest

from tests.support.eventually import eventually_async
from tests.support.running_jobs import Platform


@pytest.mark.long(keep=1)
async def test_a_job_runs_with_its_arguments_and_settings(either: Platform) -> None:
    job = await either.run("quick", n="4", job_settings={"ANSWER": {"is": [42, None]}}, add_tag="nightly")
    metadata = await either.ended(job)
    assert metadata["close_reason"] == "finished"
    assert (metadata["attempt"], metadata["version"], metadata["tags"]) == (1, "local", ["nightly"])
    assert metadata["frameworkstats"]["item_scraped_count"] == 4
    assert [item["number"] for item in await either.records("items", job)] == [0, 1, 2, 3]
    log = await either.log(job)
    assert "answer {'is': [42, None]}" in log
    assert f"Job {job} started" in log  # it has not run before
    assert "Peak memory usage" not in log
    assert len(await either.records("requests", job)) == 1


@pytest.mark.long
async def test_settings_of_the_project_go_under_those_of_the_job(platform: Platform) -> None:
    stored = [
        ("job_settings", {"ANSWER": "of the project", "LOG_LEVEL": "INFO"}),
        ("spider_settings", {"quick": {"ANSWER": "of the spider"}, "other": {"ANSWER": "of another"}}),
    ]
    try:
        for name, value in stored:
            answer = await platform.http.post(f"/projects/1/settings/{name}", json.dumps(value).encode())
            assert answer.status == 200, answer.text
        first = await platform.run("quick", n="1")
        second = await platform.run("quick", n="2", job_settings={"ANSWER": "of the job"})
        assert await platform.reason(first) == await platform.reason(second) == "finished"
        assert "answer of the spider" in await platform.log(first)
        assert "answer of the job" in await platform.log(second)
    finally:
        for name, _ in stored:
            await platform.http.delete(f"/projects/1/settings/{name}")


@pytest.mark.parametrize("value", ['{"PLATFORM_URL": "http://other"}', "[1]", '{"PLATFORM_JOB_TIMEOUT": "soon"}'])
async def test_settings_of_a_project_that_no_job_could_have_are_refused(platform: Platform, value: str) -> None:
    answer = await platform.http.post("/projects/1/settings/job_settings", value.encode())
    assert answer.status == 400
    assert "job_settings" in answer.text


@pytest.mark.long(keep=1)
async def test_a_job_is_cancelled(either: Platform) -> None:
    job = await either.run("endless")

    async def items() -> bool:
        return bool(await either.records("items", job))

    await eventually_async(items, what="an item")
    await either.stop(job)
    assert await either.reason(job) == "cancelled"
    events = await either.http.get("/activity/1/?format=json&count=1000")
    steps = [(event["event"], event.get("close_reason")) for event in reversed(events.json) if event.get("job") == job]
    assert steps == [
        ("job:scheduled", None),
        ("job:started", None),
        ("job:cancelled", None),
        ("job:completed", "cancelled"),
    ]


@pytest.mark.long
async def test_one_that_does_not_listen_is_killed_and_cancelled_all_the_same(platform: Platform) -> None:
    job = await platform.run("stubborn")
    await platform.says(job, "deaf now")
    await platform.stop(job)
    assert await platform.reason(job) == "cancelled"


async def test_a_time_limit_ends_a_job(platform: Platform) -> None:
    script = await platform.run("py:wait.py", job_settings={"PLATFORM_JOB_TIMEOUT": 1})
    crawl = await platform.run("stubborn", job_settings={"PLATFORM_JOB_TIMEOUT": "0.5"})
    assert await platform.reason(script) == "timed out"
    assert await platform.reason(crawl) == "timed out"


@pytest.mark.long
async def test_what_a_spider_prints_is_in_its_log_and_never_too_much(platform: Platform) -> None:
    job = await platform.run("loud", megabytes="40")
    metadata = await platform.ended(job)
    assert metadata["close_reason"] == "finished"
    records = await platform.records("logs", job)
    levels = {record["message"]: record["level"] for record in records}
    assert (levels["an error of the spider"], levels["a warning of the spider"]) == (40, 30)
    seconds = (metadata["finished_time"] - metadata["running_time"]) / 1000
    # 8 MiB at once, and half of one a second (jobprocess.launch); the last line may exceed both.
    assert sum(len(record["message"]) for record in records) < (8 + seconds / 2 + 0.2) * 2**20


@pytest.mark.long
async def test_samples_are_taken_while_a_job_runs(platform: Platform) -> None:
    job = await platform.run("quick", n="7")
    await platform.ended(job)
    samples = await platform.records("samples", job)
    assert len(samples) > 1
    assert [len(sample) for sample in samples] == [5] * len(samples)
    times, requests, items, lines, memory = zip(*samples, strict=True)
    assert list(times) == sorted(times)
    assert (requests[-1], items[-1]) == (1, 7)
    assert lines[-1] > 0
    assert max(memory) > 2**20


@pytest.mark.parametrize(
    ("spider", "fields", "message"),
    [
        ("quick", {"job_settings": "[1]"}, "job_settings"),
        ("quick", {"job_settings": "{"}, "job_settings"),
        (
            "quick",
            {"job_settings": {"PLATFORM_API_KEY": "mine"}},
            "job_settings.PLATFORM_API_KEY: is set by",
        ),
        ("quick", {"job_settings": {"PLATFORM_JOB_TIMEOUT": -1}}, "PLATFORM_JOB_TIMEOUT"),
        ("quick", {"environment": {"PLATFORM_JOB": "1/1/1"}}, "environment.PLATFORM_JOB: is set by the node"),
        ("quick", {"environment": {"A=B": "1"}}, "environment.A=B: cannot be the name"),
        ("quick", {"environment": {"A": "\0"}}, "environment.A: must not have the character NUL"),
        ("quick", {"units": "7"}, "units: must be 1 to 6"),
        ("quick", {"priority": "high"}, "priority"),
        ("quick", {"meta": {"units": 70}}, "units: must be a whole number from 1 to 6"),
        ("quick", {"meta": {"spider_args": [1]}}, "spider_args: must be a JSON object"),
        ("quick", {"meta": {"node_tags": "gpu"}}, "node_tags"),
        ("quick", {"meta": {"version": 3}}, "version"),
        ("py:../secret.py", {}, "without a folder"),
        ("py:/etc/passwd", {}, "without a folder"),
        ("py:hello.py", {"cmd_args": "'open"}, "cmd_args: cannot be split"),
    ],
)
@pytest.mark.long(keep=6)
async def test_what_cannot_run_is_refused_when_it_is_scheduled(
    platform: Platform, spider: str, fields: dict[str, object], message: str
) -> None:
    answer = await platform.ask(spider, **fields)
    assert answer.status == 400
    assert message in answer.json["message"]
