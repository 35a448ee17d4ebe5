"""``make audit``: the licences of all that the package brings."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from email.message import Message
from pathlib import Path

import pytest

from scrapy_ext.compatibility.toml import tomllib

TOOLS = Path(__file__).resolve().parents[2] / "tools"
spec = importlib.util.spec_from_file_location("audit", TOOLS / "audit.py")
audit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(audit)
ACCEPTED = tomllib.loads((TOOLS / "licences.toml").read_text())


class Distribution(importlib.metadata.Distribution):
    """A package with this licence in its metadata."""

    version = "1.0"

    def __init__(self, name: str, field: str, value: str) -> None:
        self._metadata = Message()
        self._metadata["Name"] = name
        self._metadata[field] = value

    @property
    def metadata(self):
        return self._metadata

    def read_text(self, filename):
        return None

    def locate_file(self, path):
        return path


def refused(name: str, field: str, value: str) -> list[str]:
    package = audit.Package(Distribution(name, field, value), ACCEPTED["spellings"])
    return audit.refused([package], ACCEPTED)


def test_the_licence_of_everything_that_is_installed_is_accepted():
    packages = audit.installed(ACCEPTED["spellings"])
    assert {"scrapy-ext", "scrapy", "lxml", "asyncpg", "zyte-common-items"} <= {each.name for each in packages}
    assert audit.refused(packages, ACCEPTED) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("License-Expression", "MIT AND PSF-2.0"),
        ("License-Expression", "GPL-3.0-only OR Apache-2.0"),
        ("Classifier", "License :: OSI Approved :: BSD License"),
        ("License", "MIT"),
    ],
)
def test_licences_that_ask_for_a_notice_are_accepted(field, value):
    assert refused("other", field, value) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("License-Expression", "MIT AND GPL-3.0-only"),
        ("License-Expression", "LGPL-3.0-only"),
        ("Classifier", "License :: OSI Approved :: GNU Affero General Public License v3"),
        ("License", ""),
    ],
)
def test_others_are_not_and_neither_is_none(field, value):
    assert len(refused("other", field, value)) == 1


def test_an_exception_holds_for_the_packages_that_it_names():
    assert refused("tld", "License-Expression", "LGPL-2.1-or-later") == []
    assert refused("tld", "License-Expression", "GPL-2.0-only") != []
    assert all(each["reason"] for each in ACCEPTED["exceptions"])
