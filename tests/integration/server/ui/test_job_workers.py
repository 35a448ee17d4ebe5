"""The workers of a job with several: on its page, in lists, in its log, in forms, and in metrics."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.group_reports import joined, reported
from tests.support.http import Http
from tests.support.page_forms import HOSTILE, page, submit, texts


async def group(http: Http, project: int, workers: str = "2..4", count: int = 2) -> str:
    """Return a running job with this many workers, whose attempts are 1, 2 …"""
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])
    key = str(pushed.lines[0]["key"])
    for number in range(count):
        await joined(http, key, number, workers)
    return key


def table(document: Any) -> list[list[str]]:
    return [texts(row, "./td") for row in document.xpath("//section[@class='workers']//tbody/tr")]


async def test_a_running_job_shows_its_workers(http: Http, project: int) -> None:
    key = await group(http, project)
    stats = {"memusage/max": ["max", 3 * 2**20]}
    counts = {"items": 7, "responses": 9}
    await reported(http, key, 1, 2, counts=counts, stats=stats, queue={"memory": 5, "active": 3}, start="running")
    await reported(http, key, 2, 2, last=True, outcome="finished", closing=HOSTILE)
    document = page(await http.get(f"/ui/{key}"))
    (line,) = table(document)  # the other one has ended, and no node runs it
    assert line[:4] == ["0", "runs start()", "–", "1"]
    assert line[5] == "9"
    assert line[7:11] == ["7", "0", "8", "3.1 MB"]
    (note,) = texts(document, "//section[@class='workers']/p")
    assert note == f"1 worker. Wanted: 2, within 2..4. The job closes: {HOSTILE}."
    assert texts(document, "//h1") == ["books ×2..4"]


async def test_one_worker_runs_start_and_a_job_of_one_worker_has_no_table(http: Http, project: int) -> None:
    key = await group(http, project, "2")
    assert [line[:5] for line in table(page(await http.get(f"/ui/{key}")))] == [
        ["0", "runs start()", "–", "1", "–"],
        ["1", "idle", "–", "2", "–"],
    ]
    pushed = await http.post(f"/jobq/{project}/push", [{"spider": "books", "state": "running"}])
    alone = page(await http.get(f"/ui/{pushed.lines[0]['key']}"))
    assert (table(alone), texts(alone, "//h1")) == ([], ["books"])


async def test_lists_show_the_number_of_workers(http: Http, project: int) -> None:
    await group(http, project, "4")
    (spider,) = texts(page(await http.get(f"/ui/{project}/jobs")), "//td[contains(@class, 'of-spider')]")
    assert spider == "books ×4"
    (listed,) = (await http.get(f"/api/jobs/list.json?project={project}")).json["jobs"]
    assert listed["job_workers"] == "4"


async def test_the_log_is_filtered_by_worker(http: Http, project: int) -> None:
    key = await group(http, project)
    lines = [{"time": n, "level": 20 + 20 * (n % 2), "message": f"[{n % 12}] line [1] {n}"} for n in range(24)]
    await http.post(f"/logs/{key}", lines)
    for query, numbers in (
        ("worker=1&start=0", ["1", "13"]),
        ("worker=1", ["1", "13"]),  # live
        ("worker=0&level=40&start=0", []),
        ("worker=3&q=15&start=0", ["15"]),
        ("worker=no&q=line", [str(n) for n in range(24)]),
        ("worker=256&q=line", [str(n) for n in range(24)]),
    ):
        document = page(await http.get(f"/ui/{key}/log?{query}"))
        found = [text.split()[-1] for text in texts(document, "//ol[@aria-label='Log']/li/span")]
        assert found == numbers, query
    live = page(await http.get(f"/ui/{key}/log?worker=0")).xpath("//ol/@data-live")
    assert "worker=0" in live[0]
    assert page(await http.get(f"/ui/{key}/log?worker=0&start=0")).xpath("//input[@id='worker']/@value") == ["0"]


async def test_the_run_form_starts_a_job_with_several_workers(http: Http, project: int) -> None:
    path = f"/ui/{project}/jobs/run"
    wrong = await submit(http, path, {"spider": "books", "job_workers": "0..3"})
    assert "must be a number of workers" in " ".join(texts(page(wrong, 400), "//p[@id='job_workers-hint']"))
    shown = await submit(http, path, {"spider": "books", "job_workers": "2..3"})
    assert texts(page(shown), "//h1") == ["books ×2..3"]
    (job,) = (await http.get(f"/api/jobs/list.json?project={project}")).json["jobs"]
    again = page(await http.get(f"{path}?again={job['id']}"))
    assert again.xpath("//input[@id='job_workers']/@value") == ["2..3"]
    schedule = page(await submit(http, path, {"spider": "books", "job_workers": "2..3", "action": "schedule"}))
    assert schedule.xpath("//input[@id='workers-1']/@value") == ["2..3"]


async def test_a_periodic_job_starts_its_jobs_with_several_workers(http: Http, project: int) -> None:
    path = f"/ui/{project}/periodic"
    form = {
        "action": "save",
        "cron": "30 4 * * 1",
        "task": "books",
        "priority": "2",
        "arguments": "",
        "job_workers": "4",
    }
    wrong = await submit(http, path, {**form, "job_workers": "none"}, shown_at=f"{path}/new")
    assert "must be a number of workers" in " ".join(texts(page(wrong, 400), "//p[@role='alert']"))
    await submit(http, path, form, shown_at=f"{path}/new")
    (schedule,) = (await http.get(f"/api/projects/{project}/periodicjobs")).json["results"]
    assert schedule["tasks"][0]["job_workers"] == "4"
    assert page(await http.get(f"{path}/{schedule['id']}")).xpath("//input[@id='workers-1']/@value") == ["4"]
    await submit(http, f"{path}/{schedule['id']}", {"action": "run"})
    (job,) = (await http.get(f"/api/jobs/list.json?project={project}")).json["jobs"]
    assert job["job_workers"] == "4"
    script = json.dumps({"cron": "0 0 * * *", "tasks": [{"name": "py:a.py", "job_workers": "4"}]}).encode()
    refused = await http.post(f"/api/projects/{project}/periodicjobs", script)
    assert (refused.status, "a script has one process" in refused.text) == (400, True)


async def test_metrics_count_workers_by_state(http: Http, project: int) -> None:
    async def metrics() -> dict[str, float]:
        text = (await http.get("/metrics")).text
        return {name: float(value) for name, value in re.findall(r"^scrapy_ext_(\S+) (\S+)$", text, re.MULTILINE)}

    before = await metrics()
    key = await group(http, project, "3", count=3)
    await reported(http, key, 1, 2)
    await reported(http, key, 1, 3, silent=[[2, 1]])
    after = await metrics()
    changes = {name: after[name] - before.get(name, 0) for name in after}
    assert changes['job_workers{state="running"}'] == 2
    assert changes["job_workers_lost"] == 1
    assert changes["worker_report_duration_seconds_count"] == 5


@pytest.mark.parametrize(("workers", "titles"), [(3, ["Throughput, a minute", "Memory", "Workers"]), (0, ["Memory"])])
async def test_samples_of_several_workers_are_charts_of_all(
    http: Http, project: int, workers: int, titles: list[str]
) -> None:
    key = await group(http, project)
    start = 1_800_000_000_000
    samples = [[start + 5000 * n, 10 * n, n, n, 2**20 * (1 + n % 3), *([workers] * bool(workers))] for n in range(60)]
    await http.post(f"/samples/{key}", samples)
    document = page(await http.get(f"/ui/{key}"))
    shown = " ".join(texts(document, "//*[@class='charts']"))
    assert all(title in shown for title in titles)
    assert ("Workers" in shown) == bool(workers)
    # Three workers with 1, 2 and 3 MiB; of one worker, the highest value is shown.
    assert ("6.3 MB" in shown) == bool(workers)
