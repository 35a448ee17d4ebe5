"""Software bill of materials (CycloneDX) of an environment, and the table of the licences in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from distributions import ROOT, epoch, read_toml

#: Every virtual environment has them; the package does not require them.
_OF_THE_ENVIRONMENT = ("pip", "setuptools", "wheel")
#: Timeout of the scan in seconds.
_TIMEOUT = 300
#: Prints the licence in the free text of the metadata of some packages.
_FREE_TEXTS = """
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.metadata(name)["License"] or "" for name in sys.argv[1:]}))
"""


class BillError(Exception):
    """Fault of a bill of materials."""


def write_bill(python: Path, path: Path) -> str:
    """Write the bill of what is installed beside ``python``; return the number of components."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
    command += ["--mc-type", "library", "--pyproject", str(ROOT / "pyproject.toml"), "-o", "-", str(python)]
    environment = {"SOURCE_DATE_EPOCH": str(epoch())}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT, env=environment)
    if done.returncode:
        raise BillError(done.stderr[-3000:])
    bill = without_environment(json.loads(done.stdout))
    complete_licences(bill, _free_texts(python, bill))
    text = json.dumps(bill, indent=2, sort_keys=True) + "\n"
    check_bill(text)
    path.write_text(text, "utf-8")
    return f"{len(bill['components'])} components"


def without_environment(bill: dict[str, Any]) -> dict[str, Any]:
    """Return a bill without the packages that nothing requires and every environment has."""
    required = {name for each in bill["dependencies"] for name in each.get("dependsOn", ())}
    dropped = {
        each["bom-ref"]
        for each in bill["components"]
        if each["name"] in _OF_THE_ENVIRONMENT and each["bom-ref"] not in required
    }
    return {
        **bill,
        "components": [each for each in bill["components"] if each["bom-ref"] not in dropped],
        "dependencies": [each for each in bill["dependencies"] if each["ref"] not in dropped],
    }


def _free_texts(python: Path, bill: dict[str, Any]) -> dict[str, str]:
    """Return the free text of the licence of each component that the scan gave none, by its name."""
    names = [each["name"] for each in bill["components"] if not _licences(each)]
    command = [str(python), "-I", "-c", _FREE_TEXTS, *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def complete_licences(bill: dict[str, Any], texts: dict[str, str]) -> None:
    """Give components the free text of their licence where tools/licences.toml has it.

    The scan leaves out what is neither an expression of SPDX nor a classifier.
    """
    known = read_toml("tools/licences.toml")["spellings"]
    for each in bill["components"]:
        if (text := texts.get(each["name"])) in known:
            each["licenses"] = [{"license": {"acknowledgement": "declared", "name": text}}]


def check_bill(text: str) -> None:
    """Raise BillError unless the bill has the schema's form, a root, and a licence and a purl for each component."""
    from cyclonedx.schema import SchemaVersion  # among the tools of a release alone
    from cyclonedx.validation.json import JsonStrictValidator

    bill = json.loads(text)
    version = SchemaVersion.from_version(bill["specVersion"])
    if error := JsonStrictValidator(version).validate_str(text):
        raise BillError(f"not CycloneDX {bill['specVersion']}: {error}")
    root = bill["metadata"]["component"]["name"]
    if root != "scrapy-ext":
        raise BillError(f"its root is {root}, not scrapy-ext")
    for each in bill["components"]:
        if not each.get("purl") or not each.get("version"):
            raise BillError(f"{each['name']} has no version or no purl")
        if not _licences(each):
            raise BillError(f"{each['name']} has no licence")


def _licences(component: dict[str, Any]) -> list[str]:
    """Return the licences of a component: its expression, or the names of each."""
    entries = component.get("licenses") or []
    expressions = [each["expression"] for each in entries if "expression" in each]
    names = [each["license"].get("id") or each["license"].get("name", "") for each in entries if "license" in each]
    return expressions or [name for name in names if name]


def licence_table(bill: dict[str, Any]) -> str:
    """Return the components of a bill as a Markdown table."""
    spellings = read_toml("tools/licences.toml")["spellings"]
    lines = ["| package | version | licence |", "|---|---|---|"]
    for each in sorted(bill["components"], key=lambda each: str(each["name"]).lower()):
        names = [name.rpartition(" :: ")[2].partition("\n")[0] for name in _licences(each)]
        shown = " or ".join(dict.fromkeys(spellings.get(name, name) for name in names))
        lines.append(f"| {each['name']} | {each['version']} | {shown} |")
    return "\n".join(lines) + "\n"
