"""Audit of the dependencies of scrapy-ext[all]: licences and known vulnerabilities.

``python tools/audit.py`` asks pip-audit where its advisories can be reached, and says so where they cannot; with
``--require-advisories`` that is an error. What is accepted, and why, is in licences.toml.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from scrapy_ext.compatibility.toml import tomllib

ACCEPTED = Path(__file__).with_name("licences.toml")
ROOT = ("scrapy-ext", frozenset({"all"}))
#: Timeout in seconds for all requests to the advisories.
TIMEOUT = 600


class Package:
    """An installed package: name, version and licences, of which any or all apply."""

    def __init__(self, distribution: importlib.metadata.Distribution, spellings: dict[str, str]) -> None:
        metadata = distribution.metadata
        self.name = normal(metadata["Name"])
        self.version = distribution.version
        expression = metadata.get("License-Expression") or ""
        classifiers = [
            classifier.rpartition(" :: ")[2]
            for classifier in metadata.get_all("Classifier") or []
            if classifier.startswith("License :: ")
        ]
        text = (metadata.get("License") or "").strip().partition("\n")[0]
        #: Alternatives, each of which suffices.
        self.choices = [
            [spellings.get(name.strip(), name.strip()) for name in choice.split(" AND ")]
            for choice in (expression.split(" OR ") if expression else classifiers or [text])
        ]


def normal(name: str) -> str:
    """Return a package's normalized name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(spellings: dict[str, str]) -> list[Package]:
    """Return the requirements of the extra ``all`` on this platform and Python, recursively."""
    found: dict[str, Package] = {}
    seen: dict[str, frozenset[str]] = {}
    waiting: list[tuple[str, frozenset[str]]] = [ROOT]
    while waiting:
        name, extras = waiting.pop()
        known = seen.get(normal(name))
        if known is not None and extras <= known:
            continue
        extras |= known or frozenset()
        seen[normal(name)] = extras
        distribution = importlib.metadata.distribution(name)
        found[normal(name)] = Package(distribution, spellings)
        for line in distribution.requires or []:
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                waiting.append((needed.name, frozenset(needed.extras)))
    return [found[name] for name in sorted(found)]


def refused(packages: Iterable[Package], accepted: dict[str, Any]) -> list[str]:
    """Return the packages whose licence is not accepted."""
    general = set(accepted["accepted"])
    allowed = {name: each["licence"] for each in accepted["exceptions"] for name in each["packages"]}
    lines = []
    for package in packages:
        licences = general | {allowed.get(package.name)}
        if not any(all(name in licences for name in choice) for choice in package.choices):
            shown = " or ".join(" and ".join(choice) or "none" for choice in package.choices)
            lines.append(f"{package.name} {package.version}: {shown}")
    return lines


def weak(packages: Iterable[Package], accepted: dict[str, Any], *, required: bool) -> list[str]:
    """Return known vulnerabilities that are not accepted."""
    pinned = "\n".join(f"{each.name}=={each.version}" for each in packages if each.name != ROOT[0])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(pinned)
        file.flush()
        command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
        done = subprocess.run(
            [*command, "--progress-spinner", "off", "-r", file.name],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    try:
        answer = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        answer = []
    asked = [each for each in answer if "skip_reason" not in each]
    if not asked:
        reasons = [each["skip_reason"] for each in answer] or done.stderr.strip().splitlines()[-1:] or ["no answer"]
        print(f"Weaknesses: NOT CHECKED. pip-audit got no advisories: {reasons[0][:200]}")
        return ["no advisory was checked"] if required else []
    print(f"Weaknesses: advisories of {len(asked)} packages checked.")
    known = set(accepted["advisories"])
    return [
        f"{each['name']} {each['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version'}"
        for each in asked
        for found in each["vulns"]
        if known.isdisjoint({found["id"], *found.get("aliases", [])})
    ]


def main() -> int:
    """Return 1 when something is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--require-advisories", action="store_true", help="fail when no advisory can be looked at")
    options = parser.parse_args()
    accepted = tomllib.loads(ACCEPTED.read_text())
    packages = installed(accepted["spellings"])
    faults = refused(packages, accepted)
    print(f"Licences: {len(packages)} packages, {len(faults) or 'none'} not accepted.")
    faults += weak(packages, accepted, required=options.require_advisories)
    for fault in faults:
        print(f"not accepted: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
