"""Check of a wheel's metadata, beyond what twine checks."""

from __future__ import annotations

import re
from collections.abc import Set
from email.parser import Parser
from pathlib import Path
from typing import Any

from distributions import DistributionError, contents, read_toml
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

_PYTHON = "Programming Language :: Python :: 3."


def project() -> dict[str, Any]:
    """Return the table ``project`` of pyproject.toml."""
    table: dict[str, Any] = read_toml("pyproject.toml")["project"]
    return table


def minor_versions() -> list[int]:
    """Return the minor versions of Python 3 that the classifiers name, the oldest first."""
    return sorted(int(each.removeprefix(_PYTHON)) for each in project()["classifiers"] if each.startswith(_PYTHON))


def check_metadata(wheel: Path) -> str:
    """Raise DistributionError with all that is wrong; return a note for the reader of the table."""
    from trove_classifiers import classifiers  # among the tools of a release alone

    (text,) = [body.decode() for name, body in contents(wheel).items() if name.endswith(".dist-info/METADATA")]
    metadata, declared = Parser().parsestr(text), project()
    faults = []
    for field, value in (
        ("Name", declared["name"]),
        ("Version", declared["version"]),
        ("Summary", declared["description"]),
        ("Requires-Python", declared["requires-python"]),
        ("License-Expression", declared["license"]),
        ("License-File", "LICENSE"),
        ("Description-Content-Type", "text/markdown"),
    ):
        if metadata[field] != value:
            faults.append(f"{field} is {metadata[field]!r}, not {value!r}")
    faults += faults_of(declared, classifiers)
    for line in metadata.get_all("Requires-Dist") or []:
        if Requirement(line).url:
            faults.append(f"{line}: PyPI refuses packages that require a URL")
    if faults:
        raise DistributionError("; ".join(faults))
    relative = len(re.findall(r"\]\((?!https?://|#)[^)]+\)", metadata.get_payload()))
    return f"{relative} links of the README are relative: they lead nowhere on PyPI" if relative else ""


def faults_of(declared: dict[str, Any], known: Set[str]) -> list[str]:
    """Return what is wrong in the table ``project`` itself: classifiers, versions of Python, licence, URLs."""
    faults = [f"classifier {each!r}: PyPI does not have it" for each in declared["classifiers"] if each not in known]
    python = SpecifierSet(declared["requires-python"])
    for classifier in declared["classifiers"]:
        minor = classifier.removeprefix(_PYTHON)
        if minor != classifier and not python.contains(f"3.{minor}"):
            faults.append(f"classifier {classifier!r} and requires-python {python} exclude each other")
    if not any(each.startswith(_PYTHON) for each in declared["classifiers"]):
        faults.append(f"no classifier {_PYTHON}N says which versions of Python are tested")
    if any(each.startswith("License ::") for each in declared["classifiers"]):
        faults.append("a licence classifier beside the licence expression: PyPI refuses both together")
    try:
        canonicalize_license_expression(declared["license"])
    except InvalidLicenseExpression as error:
        faults.append(f"license: {error}")
    for label, url in declared.get("urls", {}).items():
        if not url.startswith("https://") or len(label) > 32:
            faults.append(f"urls: {label}: {url}: a label of at most 32 characters, and an https URL")
    return faults
