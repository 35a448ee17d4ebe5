"""shub from PyPI, unchanged: the commands that can be pointed at a server of one's own.

Those about eggs of their own and images need paths that this server does not have.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import shub.config
import shub.login
import shub.logout
import shub.tool
import shub.utils
from click.testing import CliRunner
from shub.tool import cli

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*distutils.*"),
    pytest.mark.filterwarnings("ignore:unclosed"),
    pytest.mark.usefixtures("collected"),
]


@pytest.fixture
def configured(server, project_id, tmp_path, monkeypatch):
    """A folder with the lines of the how-to, and the environment that goes with them."""
    (tmp_path / "scrapinghub.yml").write_text(
        f"project: {project_id}\nendpoint: {server.url}/api/\napikey: {server.platform_key}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shub.tool, "update_available", lambda: None)  # which asks a site for newer versions
    for name in ("SHUB_STORAGE", "SHUB_JOBQ"):
        monkeypatch.setenv(name, f"{server.url}/")
    for name in ("SHUB_APIKEY", "SH_APIKEY"):
        monkeypatch.delenv(name, raising=False)
    for module in (shub.config, shub.login, shub.logout):
        monkeypatch.setattr(module, "GLOBAL_SCRAPINGHUB_YML_PATH", str(tmp_path / "global.yml"))
    return tmp_path


@pytest.fixture
def run(configured):
    """Runs a command; returns the lines that it prints."""

    def run(*arguments, code=0, **more):
        done = CliRunner().invoke(cli, arguments, **more)
        assert done.exit_code == code, (done.output, done.exception)
        return done.stdout.splitlines() if code == 0 else done.output.splitlines()

    return run


@pytest.fixture
def job(hubstorage, project_id):
    """A running job that has stored a little of everything."""
    job = hubstorage.push_job(project_id, "spider", state="running")
    for n in range(3):
        job.items.write({"n": n})
        job.logs.info(f"line {n}", ts=1_700_000_000_000)
    job.requests.add(url="http://a/", status=200, method="GET", rs=1, duration=2, ts=3, parent=None, fp="f")
    for resource in (job.items, job.logs, job.requests):
        resource.flush()
    return job


def test_schedule_with_everything_that_it_can_say(run, hubstorage, project_id):
    options = ["-a", "arg=1", "-s", "LOG_LEVEL=INFO", "-p", "3", "-e", "VAR=VAL", "-u", "2", "-t", "one", "-t", "two"]
    output = run("schedule", *options, "spider")
    assert output[0] == f"Spider spider scheduled, job ID: {project_id}/1/1"
    metadata = hubstorage.get_job(f"{project_id}/1/1").metadata
    wanted = {
        "spider_args": {"arg": "1"},
        "job_settings": {"LOG_LEVEL": "INFO"},
        "environment": {"VAR": "VAL"},
        "priority": 3,
        "units": 2,
        "tags": ["one", "two"],
    }
    assert {name: metadata[name] for name in wanted} == wanted
    assert "already scheduled" in run("schedule", "-a", "arg=1", "spider", code=76)[-1]


def test_items_requests_and_log_of_a_job(run, job, hubstorage):
    hubstorage.get_project(job.key.split("/")[0]).jobq.finish(job)
    short = job.key.partition("/")[2]
    assert [json.loads(line)["n"] for line in run("items", short)] == [0, 1, 2]
    assert [json.loads(line)["n"] for line in run("items", "--tail", "2", job.key)] == [1, 2]
    assert [json.loads(line)["url"] for line in run("requests", job.key)] == ["http://a/"]
    assert [line.partition("INFO ")[2] for line in run("log", job.key)] == ["line 0", "line 1", "line 2"]
    assert "does not exist" in run("items", "1/77", code=69)[-1]


def test_following_a_job_to_its_end(run, job, hubstorage, monkeypatch):
    """The command waits between reads; here the job goes on while it does."""
    waits = []

    def wait(seconds):
        waits.append(seconds)
        job.items.write({"n": 3})
        job.items.flush()
        hubstorage.get_project(job.key.split("/")[0]).jobq.finish(job)

    monkeypatch.setattr(shub.utils, "time", SimpleNamespace(sleep=wait, time=lambda: 100 * len(waits)))
    assert [json.loads(line)["n"] for line in run("items", "--follow", job.key)] == [0, 1, 2, 3]
    assert len(waits) == 1


def test_cancel(run, job, hubstorage, project_id):
    waiting = hubstorage.push_job(project_id, "other")
    short = [key.partition("/")[2] for key in (job.key, waiting.key)]
    assert run("cancel", *short, input="y\n")[-1] == "{'count': 2}"
    assert hubstorage.get_job(waiting.key).metadata["state"] == "finished"
    assert hubstorage.get_job(job.key).metadata["cancelled_by"]


def test_login_checks_the_key_and_keeps_it(run, configured, server):
    home = configured / "global.yml"
    home.write_text(f"endpoints:\n  default: {server.url}/api/\n")
    (configured / "scrapinghub.yml").unlink()
    output = run("login", input=f"wrong\n{server.platform_key}\n")
    assert [line.partition(",")[0] for line in output if line.startswith("API key ")] == [
        "API key failed",
        "API key is OK",
    ]
    assert server.platform_key in home.read_text()
    run("logout")
    assert server.platform_key not in home.read_text()


@pytest.fixture
def example(configured):
    """The example project, in the folder."""
    source = Path(__file__).parents[3] / "example_project"
    shutil.copytree(source / "example", configured / "example", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(source / "scrapy.cfg", configured)
    return configured


@pytest.mark.long
def test_deploy_and_what_follows_from_it(run, example, hubstorage, project_id):
    output = run("deploy", "--version", "1.0")
    assert json.loads(output[-2]) == {"status": "ok", "project": project_id, "version": "1.0", "spiders": 5}
    run("deploy", "--version", "2.0", "--verbose")
    assert "no spider of version 2.0" in "".join(run("schedule", "nobody", code=76))
    output = run("schedule", "catalogue", "-a", "categories=tents")
    assert output[0] == f"Spider catalogue scheduled, job ID: {project_id}/1/1"
    metadata = hubstorage.get_job(f"{project_id}/1/1").metadata
    assert (metadata["version"], metadata["deploy_id"]) == ("2.0", 2)


@pytest.mark.long
def test_deploy_of_a_project_that_does_not_work(run, example, project_id):
    (example / "example" / "spiders" / "broken.py").write_text("import nothing_like_this\n")
    output = run("deploy", "--version", "1.0", code=76)
    assert any("No module named 'nothing_like_this'" in line for line in output)
    assert "cannot be imported" in output[-1]


def test_what_is_about_code_is_refused_as_not_there(run):
    assert "Status: 404" in run("fetch-eggs", code=76)[-1]
