"""Workers: they run jobs of a server's database, need nothing but that, and say in one line what is wrong with it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from scrapy_ext.jobprocess.proc import below, table
from scrapy_ext.server.store import Store
from tests.support.eventually import TIMEOUT, eventually_async
from tests.support.http import Http
from tests.support.job_projects import write_project
from tests.support.postgresql import Cluster
from tests.support.running_jobs import run, until
from tests.support.servers import RunningServer, command, without_keys


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project") / "shop")


@pytest.fixture(scope="module")
def keeper(postgresql: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that runs no jobs itself."""
    folder = tmp_path_factory.mktemp("server")
    with RunningServer(folder, database=postgresql.database(), options=["--no-runner"]) as server:
        yield server


@pytest.fixture
async def platform(keeper: RunningServer) -> AsyncIterator[Http]:
    async with Http(keeper.url, keeper.platform_key) as http:
        yield http


def worker(keeper: RunningServer, shop: Path, *options: str) -> RunningServer:
    given = ["--local-project", str(shop), *options]
    return RunningServer(shop, database=keeper.database, options=given, worker=True)


def working(pid: int) -> list[int]:
    """The processes that do the work of a worker's jobs."""
    return [
        each.pid
        for each in below([pid], table())[pid]
        if each.parent != pid and b"scrapy_ext.jobprocess.launch" in Path(f"/proc/{each.pid}/cmdline").read_bytes()
    ]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


async def first_item(platform: Http, job: str) -> None:
    path = f"/items/{job}?format=json&count=1"
    await eventually_async(lambda: platform.get(path), lambda answer: answer.json, f"an item of job {job}")


async def until_one_drains(keeper: RunningServer) -> None:
    store = await Store.open(keeper.where)

    async def drains() -> bool:
        return any(node.draining for node in await store.nodes.listed())

    await eventually_async(drains, what="a node that takes no more jobs")
    await store.close()


@pytest.mark.long
async def test_a_worker_runs_jobs_drains_at_a_signal_and_ends_at_once_at_a_second(
    platform: Http, keeper: RunningServer, shop: Path
) -> None:
    with worker(keeper, shop, "--units", "2", "--tags", "b,a") as first:
        assert first.url.rsplit("-", 2)[1] == str(first.process.pid)  # it says its name
        endless = await run(platform, "endless")
        await first_item(platform, endless)
        # It ends what it runs, which waits for another one then.
        assert first.terminate() == 0
        assert (await until(platform, endless, "pending"))["attempt"] == 1
    with worker(keeper, shop, "--stop-grace", "600") as second:
        assert (await until(platform, endless, "running"))["attempt"] == 2
        stubborn = await eventually_async(lambda: working(second.process.pid))
        os.kill(stubborn[0], signal.SIGSTOP)  # it does not end when it is asked to
        second.process.send_signal(signal.SIGTERM)
        await until_one_drains(keeper)
        second.process.send_signal(signal.SIGTERM)
        second.wait()  # which waits for less than its grace
        await eventually_async(lambda: list(filter(is_there, stubborn)), lambda left: not left)
    await platform.call("POST", "/api/jobs/stop.json", {"project": "1", "job": endless})
    with worker(keeper, shop):
        assert (await until(platform, endless, "finished"))["close_reason"] == "cancelled"


@pytest.mark.long
async def test_jobs_of_a_worker_may_ask_a_server_instead(platform: Http, keeper: RunningServer, shop: Path) -> None:
    with worker(keeper, shop, "--url", keeper.url):
        quick = await run(platform, "quick")
        assert (await until(platform, quick, "finished"))["close_reason"] == "finished"
        assert len((await platform.call("GET", f"/items/{quick}?format=json")).json) == 3


@pytest.mark.long
async def test_the_jobs_of_a_worker_alone_may_ask_it(keeper: RunningServer, shop: Path) -> None:
    with worker(keeper, shop) as running:
        inodes = {
            os.readlink(f"/proc/{running.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{running.process.pid}/fd")
        }
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        listening = [line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes]
        (address,) = [each for each in listening if each.startswith("0100007F:")][:1]
        assert all(each.startswith("0100007F:") for each in listening)  # loopback
        async with Http(f"http://127.0.0.1:{int(address.partition(':')[2], 16)}", keeper.platform_key) as http:
            assert (await http.call("GET", "/jobs/1/1/1")).status == 401
            assert (await http.call("GET", "/")).status == 404


@pytest.mark.long
async def test_a_worker_reports_its_health_and_metrics_at_an_address_of_its_own(
    keeper: RunningServer, shop: Path, platform: Http
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with worker(keeper, shop, "--status-address", f"127.0.0.1:{port}", "--units", "3") as running:
        async with Http(f"http://127.0.0.1:{port}", None) as status, Http(keeper.url, keeper.platform_key) as server:
            assert (await status.get("/healthz")).text == "ok\n"
            assert (await status.get("/readyz")).json == {"status": "ok"}
            # Nothing else is there, for no key.
            assert (await status.get("/jobs/1/1/1")).status == 401
            assert (await server.get("/jobs/1/1/1")).status != 401
            endless = await run(platform, "endless")
            await first_item(platform, endless)
            for each in (status, server):  # the numbers are those of the database
                metrics = (await each.get("/metrics")).text
                assert "\nscrapy_ext_node_units 3\n" in metrics
                assert "\nscrapy_ext_node_units_used 1\n" in metrics
                assert "\nscrapy_ext_jobs_pending_units 0\n" in metrics
            # It ends while its job is stopped, and reports that it takes no more.
            os.kill(working(running.process.pid)[0], signal.SIGSTOP)
            running.process.send_signal(signal.SIGTERM)
            await until_one_drains(keeper)
            assert (await status.get("/readyz")).status == 503
            assert (await status.get("/healthz")).status == 200
            running.process.send_signal(signal.SIGTERM)
            running.wait()
    await platform.call("POST", "/api/jobs/stop.json", {"project": "1", "job": endless})


@pytest.mark.long
async def test_a_server_without_units_leaves_its_jobs_to_workers(
    postgresql: Cluster, shop: Path, tmp_path: Path
) -> None:
    options = ["--units", "0", "--local-project", str(shop)]
    with RunningServer(tmp_path, database=postgresql.database(), options=options) as server:
        async with Http(server.url, server.platform_key) as http:
            quick = await run(http, "quick")
            metrics = (await http.get("/metrics")).text
            assert "\nscrapy_ext_node_units 0\n" in metrics
            assert "\nscrapy_ext_jobs_pending_units 1\n" in metrics
            assert "\nscrapy_ext_jobs_pending_unfit 1\n" in metrics
            with worker(server, shop):
                assert (await until(http, quick, "finished"))["close_reason"] == "finished"


async def test_an_address_that_is_taken_is_reported_in_a_line(keeper: RunningServer) -> None:
    taken = f"127.0.0.1:{keeper.url.rpartition(':')[2]}"
    done = subprocess.run(
        command("worker", "--status-address", taken),
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env={**without_keys(), "SERVER_DATABASE": keeper.database or ""},
    )
    assert done.returncode == 1
    line = f"error: cannot listen on {taken}: Address already in use. Choose another --status-address.\n"
    assert done.stderr.decode() == line


WRONG = {
    "password": "Check the user name and the password",
    "database": "there is no database nowhere",
    "port": "cannot be reached",
    "newer": "has schema version 9999.*Upgrade scrapy-ext",
    "nothing": "A worker needs the database of a server",
    "other": "refuses this database's jobs",
    "url": "--url http://127.0.0.1:9 cannot be reached",
    "scheme": "must be the address of a server",
}


@pytest.mark.parametrize(
    "wrong", [pytest.param(each, marks=pytest.mark.full if each in ("database", "port") else ()) for each in WRONG]
)
@pytest.mark.long(keep=2)
def test_what_is_wrong_is_reported_in_a_line(wrong: str, postgresql: Cluster, keeper: RunningServer) -> None:
    assert keeper.database is not None
    database, options = keeper.database, []
    if wrong == "password":
        database = database.replace(postgresql.password, "not-it")
    elif wrong == "database":
        database = postgresql.url("nowhere")
    elif wrong == "port":
        database = database.replace(f":{postgresql.port}/", ":9/")
    elif wrong in ("newer", "other"):
        database = postgresql.database()
    if wrong == "newer":
        postgresql.query(database, "CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, opened BIGINT)")
        postgresql.query(database, "INSERT INTO schema_version VALUES (9999)")
    elif wrong == "other":
        options = ["--url", keeper.url]
    elif wrong == "url":
        options = ["--url", "http://127.0.0.1:9"]
    elif wrong == "scheme":
        options = ["--url", "localhost:8700"]
    given = {} if wrong == "nothing" else {"SERVER_DATABASE": database}
    done = subprocess.run(
        command("worker", *options),
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env={**without_keys(), **given},
    )
    said = done.stderr.decode().strip().splitlines()
    assert done.returncode in (1, 2)
    assert done.stdout == b""
    assert re.search(WRONG[wrong], said[-1]), said
    assert "not-it" not in done.stderr.decode()
