"""The workflows run what a contributor can run, with the least permissions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"(?m)^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text("utf-8")))
#: By which a run of strangers could reach a shell, if they stood in a script.
EXPRESSION = re.compile(r"\$\{\{")
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
#: Permissions that change something outside of a run, and the workflows that need them.
WRITERS = {
    "attestations": {"image", "release"},
    "contents": {"release"},
    "id-token": {"docs", "image", "release"},
    "packages": {"image", "release"},
    "pages": {"docs"},
}


def load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text("utf-8"))
    # YAML 1.1 reads the word "on" as true.
    loaded["on"] = loaded.pop(True)
    return loaded


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


def scripts() -> Iterator[tuple[str, str]]:
    for path in WORKFLOWS:
        for step in steps(load(path)):
            if "run" in step:
                yield path.stem, step["run"]
    yield ".ci/run", (ROOT / ".ci/run").read_text("utf-8")


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_there_is_a_workflow_for_each_kind_of_check():
    assert {"checks", "docs", "wheel", "image", "release"} <= {path.stem for path in WORKFLOWS}


def test_each_make_target_and_script_of_a_step_exists():
    missing, found = [], 0
    for where, script in scripts():
        for target in re.findall(r"(?m)(?:^|&& |; )\s*make ([\w-]+)", script):
            found += 1
            missing += [f"{where}: make {target}"] if target not in TARGETS else []
        for name in re.findall(r"(?:^|\s)((?:\.ci|tools|tests|\.github)/[\w./-]+)", script):
            found += 1
            missing += [f"{where}: {name}"] if not (ROOT / name).exists() else []
    assert missing == []
    assert found > 10, "the patterns find the steps"


def test_the_tests_of_a_change_are_those_of_ci_run():
    runs = [step.get("run") for step in steps(load(ROOT / ".github/workflows/checks.yml"))]
    assert ".ci/run" in runs
    made = re.findall(r"(?m)^make (.*)$", (ROOT / ".ci/run").read_text("utf-8"))
    assert {"check", "test"} <= {target for line in made for target in line.split()}


def test_a_workflow_has_least_permissions_a_timeout_and_one_run_at_a_time(path):
    workflow = load(path)
    assert workflow["permissions"] in ({}, {"contents": "read"}), "a job that needs more has it alone"
    assert "group" in workflow["concurrency"]
    for name, job in workflow["jobs"].items():
        assert "uses" in job or job.get("timeout-minutes", 360) <= 120, f"{name} has a timeout"
        for permission, value in job.get("permissions", {}).items():
            assert value == "read" or path.stem in WRITERS[permission], f"{name} needs no {permission}: {value}"


def test_actions_are_pinned_by_commit(path):
    for line in path.read_text("utf-8").splitlines():
        used = re.match(r"\s*(?:- )?uses: (.*)", line)
        if used and not used[1].startswith("./"):
            assert PINNED.fullmatch(used[1]), f"{used[1]}: write owner/name@COMMIT # v1.2.3"
        elif used:
            assert (ROOT / used[1]).is_file()


def test_nothing_of_strangers_reaches_a_shell_and_no_token_stays_in_the_checkout(path):
    text = path.read_text("utf-8")
    assert "pull_request_target" not in text
    for step in steps(load(path)):
        assert not EXPRESSION.search(step.get("run", "")), "pass it by env"
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_a_release_publishes_what_was_checked_and_without_a_password():
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    workflow = load(ROOT / ".github/workflows/release.yml")
    jobs = workflow["jobs"]
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    assert jobs["packages"]["needs"] == jobs["tests"]["needs"] == "version"
    assert set(jobs["pypi"]["needs"]) == {"tests", "packages"}
    assert jobs["tests"]["uses"].endswith("/checks.yml")
    assert {jobs[name]["needs"] for name in ("image", "github")} == {"pypi"}
    assert jobs["pypi"]["environment"]["name"] == "pypi"
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
    assert any("tools/changelog.py --tag" in step.get("run", "") for step in jobs["version"]["steps"])


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_an_issue_form_names_each_field_once(name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text("utf-8"))
    fields = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(set(fields)) == len(fields) > 0
    assert all(field["attributes"].get("label") for field in form["body"] if field["type"] != "markdown")


def test_dependabot_reads_folders_that_exist():
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text("utf-8"))["updates"]
    for update in updates:
        assert update["schedule"]["interval"] == "weekly"
        assert update["groups"], "one pull request, not one for each package"
    (python,) = [update for update in updates if update["package-ecosystem"] == "pip"]
    for folder in python["directories"]:
        found = ROOT / folder.strip("/")
        assert (found / "pyproject.toml").exists() or list(found.glob("*requirements.txt")), folder


def test_hooks_of_pre_commit_run_the_tools_of_make_check():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repository["repo"] == "local"
    entries = " ".join(hook["entry"] for hook in repository["hooks"])
    for line in re.search(r"(?m)^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"))[1].splitlines():
        tool = line.strip().replace("$(BIN)/", "").removesuffix(" .").replace(" --check", "")
        assert tool.split(" .")[0] in entries.replace(".venv/bin/", ""), line


def test_the_pythons_of_the_matrix_are_set_up_where_it_runs():
    wanted = re.findall(r'Row\("[\w.]+", "(3\.\d+)", \[[^]]*\], \["ci"\]\)', (ROOT / "noxfile.py").read_text("utf-8"))
    assert len(wanted) == 1
    setup = next(
        each
        for each in load(ROOT / ".github/workflows/checks.yml")["jobs"]["tests"]["steps"]
        if "with" in each and "python-version" in each["with"]
    )
    assert set(wanted) <= set(setup["with"]["python-version"].split())
