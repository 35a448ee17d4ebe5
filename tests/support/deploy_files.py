"""Files of ``deploy/`` for programs that no test runs: their commands, variables and documents."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


class Command(NamedTuple):
    """A ``serve`` or ``worker`` of a file, its variables, and the seconds from SIGTERM to SIGKILL."""

    where: str
    words: list[str]
    variables: dict[str, str]
    seconds: float | None


def unit(path: Path) -> dict[str, list[str]]:
    """The values of a unit by option, of all sections."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    """The objects of the files in a folder, without those of Kustomize."""
    for path in sorted(folder.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield from filter(None, yaml.safe_load_all(path.read_text()))


def pods() -> dict[str, dict[str, Any]]:
    """The specifications of pods, by the name of their Deployment."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in manifests(KUBERNETES / "base")
        if each["kind"] == "Deployment"
    }


def commands() -> Iterator[Command]:
    for words in re.findall(r"^CMD (\[.*\])", (DEPLOY / "Containerfile").read_text(), re.MULTILINE):
        yield Command("Containerfile", json.loads(words), {}, None)
    for path in UNITS:
        read = unit(path)
        variables = dict(each.split("=", 1) for line in read["Environment"] for each in shlex.split(line))
        (start,) = read["ExecStart"]
        words = shlex.split(start.replace("$OPTIONS", variables.pop("OPTIONS", "")).partition(" platform ")[2])
        yield Command(path.name, words, variables, float(read["TimeoutStopSec"][0]))
    for name, service in COMPOSE["services"].items():
        if name != "database":
            seconds = float(service["stop_grace_period"].removesuffix("s"))
            yield Command(f"compose: {name}", service["command"], service["environment"], seconds)
    for name, pod in pods().items():
        (container,) = pod["containers"]
        variables = {each["name"]: each["value"] for each in container["env"]}
        yield Command(f"kubernetes: {name}", container["args"], variables, pod["terminationGracePeriodSeconds"])
