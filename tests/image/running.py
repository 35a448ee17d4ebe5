"""Containers of the image: a server and workers that crawl, are drained and are killed."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.image import project
from tests.image.engine import Engine
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import cluster
from tests.support.sites import Answer, ListeningSite

Step = Callable[[str], AbstractContextManager[None]]
#: Longer than the grace of jobs, 60 s, and the last steps of a worker.
STOP_SECONDS = 90


class Shop(ListeningSite):
    """A page that a script completes."""

    def respond(self, path: str, seen: int, body: bytes) -> Answer:
        return Answer(200, project.PAGE)


class System:
    """Containers of one image on one database, with secrets as files."""

    def __init__(self, engine: Engine, image: str, database: str, site: str, folder: Path) -> None:
        self._engine = engine
        self._image = image
        self._site = site
        self.port, self.status_port = _free_port(), 0
        self.url = f"http://127.0.0.1:{self.port}"
        self.keys = {name: secrets.token_hex(16) for name in ("extract-api-key", "platform-api-key")}
        self._secrets = folder / "secrets"
        self._secrets.mkdir()
        folder.chmod(0o755)
        for name, value in {**self.keys, "database": database}.items():
            (self._secrets / name).write_text(f"{value}\n")

    def start_server(self) -> None:
        words = ["serve", "--host=127.0.0.1", f"--port={self.port}", "--units=0", f"--allow-host={self._site}"]
        self._start("server", words, "database", "extract-api-key", "platform-api-key")

    def start_worker(self, name: str) -> None:
        self.status_port = _free_port()
        words = ["worker", "--units=2", "--stop-grace=60", f"--status-address=127.0.0.1:{self.status_port}"]
        self._start(name, [*words, f"--allow-host={self._site}"], "database")

    def _start(self, name: str, words: list[str], *given: str) -> None:
        variables = {"database": "SERVER_DATABASE"}
        options = [f"--volume={self._secrets}:/run/secrets:ro"]
        for secret in given:
            variable = variables.get(secret, secret.upper().replace("-", "_"))
            options.append(f"--env={variable}_FILE=/run/secrets/{secret}")
        self._engine.run(name, self._image, words, options)

    async def is_ready(self, port: int) -> None:
        async with Http(f"http://127.0.0.1:{port}", None) as http:

            async def ready() -> bool:
                try:
                    return (await http.get("/readyz")).status == 200
                except OSError:
                    return False

            await eventually_async(ready, what="a container that is ready")

    def secrets_in(self, text: str) -> list[str]:
        return [path.name for path in self._secrets.iterdir() if path.read_text().strip() in text]


async def check_runs(engine: Engine, full: str, plain: str, folder: Path, step: Step) -> None:
    with step("A server on SQLite, without options, and its health check"):
        await _check_alone(engine, plain)
    site = Shop()
    try:
        with cluster() as postgresql:
            host = f"localhost:{site.port}"
            system = System(engine, full, postgresql.database(), host, folder)
            await _check_system(engine, system, f"http://{host}/", folder, step)
    finally:
        site.close()


async def _check_alone(engine: Engine, image: str) -> None:
    engine.run("alone", image, [], [], network="none")

    async def healthy() -> bool:
        return engine.podman("healthcheck", "run", "alone", check=False).returncode == 0

    await eventually_async(healthy, what="a healthy container")
    said = engine.podman("logs", "alone")
    assert "ready http://0.0.0.0:8700" in said.stdout
    assert "PLATFORM_API_KEY" in said.stdout + said.stderr  # shown once
    assert engine.podman("exec", "alone", "touch", "/opt/file", check=False).returncode != 0
    assert engine.podman("exec", "alone", "id", "-u").stdout.strip() == "10001"
    status = engine.podman("exec", "alone", "cat", "/proc/1/status").stdout
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    engine.podman("stop", "--time=30", "alone")
    assert engine.state("alone")["ExitCode"] == 0


async def _check_system(engine: Engine, system: System, page: str, folder: Path, step: Step) -> None:
    with step("A server and a worker on PostgreSQL, with secrets as files"):
        system.start_server()
        await system.is_ready(system.port)
        system.start_worker("worker-1")
        await system.is_ready(system.status_port)
    async with Http(system.url, system.keys["platform-api-key"]) as http:
        with step("A deployed project: its build, a crawl with the extraction API and with the browser"):
            _deploy(system, project.write(folder / "project"))
            job = await _run(http, "pages", url=page)
            await _until(http, job, "finished")
            items = await _items(http, job)
            assert sorted((item["kind"], item["rendered"]) for item in items) == [
                ("direct", False),
                ("extracted", False),
                ("extracted", True),
            ], (await http.get(f"/logs/{job}?format=json")).text[-4000:]
        with step("A drain: SIGTERM, and the job continues on another worker"):
            job = await _run(http, "counting")
            await _count(http, job, 5)
            system.start_worker("worker-2")
            await system.is_ready(system.status_port)
            engine.podman("stop", f"--time={STOP_SECONDS}", "worker-1")
            assert engine.state("worker-1")["ExitCode"] == 0
            assert (await _until(http, job, "running"))["attempt"] == 2
            await _count(http, job, len(await _items(http, job)) + 5)
        with step("A kill: SIGKILL, and the job continues on another worker"):
            system.start_worker("worker-3")
            await system.is_ready(system.status_port)
            engine.podman("kill", "--signal=KILL", "worker-2")

            async def third() -> bool:
                return (await _job(http, job)).get("attempt") == 3

            await eventually_async(third, what="the job on the third worker")
            await _count(http, job, len(await _items(http, job)) + 5)
        with step("A kill of the server: the job continues, and its data is there"):
            engine.podman("kill", "--signal=KILL", "server")
            await asyncio.sleep(5)
            engine.podman("rm", "--force", "server")
            system.start_server()
            await system.is_ready(system.port)
            await _count(http, job, len(await _items(http, job)) + 5)
            await http.call("POST", "/api/jobs/stop.json", {"project": "1", "job": job})
            await _until(http, job, "finished")
            numbers = [item["number"] for item in await _items(http, job)]
            assert sorted(numbers) == list(range(len(numbers))), f"items were lost or stored twice: {numbers}"
            print(f"   {len(numbers)} items, each once, by three attempts", flush=True)
        with step("The metrics of the server, its end, and the logs"):
            metrics = (await http.get("/metrics")).text
            assert "\nscrapy_ext_node_units 2\n" in metrics
    for name in ("server", "worker-3"):
        engine.podman("stop", f"--time={STOP_SECONDS}", name)
        assert engine.state(name)["ExitCode"] == 0
        logs = engine.podman("logs", name)
        assert not system.secrets_in(logs.stdout + logs.stderr + engine.podman("container", "inspect", name).stdout)
        for line in logs.stderr.splitlines():
            print(f"   {name}: {line[:180]}", flush=True)


def _deploy(system: System, folder: Path) -> None:
    environment = {**os.environ, "PLATFORM_URL": system.url, "PLATFORM_API_KEY": system.keys["platform-api-key"]}
    command = [sys.executable, "-m", "scrapy", "platform", "deploy"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


async def _run(http: Http, spider: str, **arguments: str) -> str:
    form = {"project": "1", "spider": spider, **arguments}
    answer = await http.call("POST", "/api/run.json", form)
    assert answer.status == 200, answer.text
    return str(answer.json["jobid"])


async def _job(http: Http, job: str) -> dict[str, Any]:
    found: dict[str, Any] = (await http.get(f"/jobs/{job}")).json
    return found


async def _until(http: Http, job: str, state: str) -> dict[str, Any]:
    async def reached() -> dict[str, Any] | None:
        found = await _job(http, job)
        return found if found["state"] == state else None

    found: dict[str, Any] = await eventually_async(reached, what=f"job {job} {state}")
    return found


async def _items(http: Http, job: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await http.get(f"/items/{job}?format=jl")).text.splitlines()]


async def _count(http: Http, job: str, number: int) -> None:
    async def enough() -> bool:
        return len(await _items(http, job)) >= number

    await eventually_async(enough, what=f"{number} items of job {job}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
