"""The tools of ``make release-check``: what they refuse. The whole of it runs in its own workflow (wheel.yml)."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
try:
    import bill_of_materials
    import distributions
    import metadata_check
finally:
    sys.path.remove(str(TOOLS))


def packed(files: dict[str, bytes], *, mtime: int, owner: int) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.uname = len(body), mtime, owner, f"user{owner}"
            archive.addfile(member, io.BytesIO(body))
    return target.getvalue()


def wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path


def test_an_sdist_has_the_same_bytes_whoever_built_it_and_when():
    files = {"a-1/b.py": b"b", "a-1/a.py": b"a"}
    one = distributions.normalized(packed(files, mtime=1, owner=0), 1_700_000_000)
    other = distributions.normalized(packed(dict(reversed(files.items())), mtime=2, owner=1000), 1_700_000_000)
    assert one == other
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        assert [(each.name, each.mtime, each.uid, each.mode) for each in archive] == [
            ("a-1/a.py", 1_700_000_000, 0, 0o644),
            ("a-1/b.py", 1_700_000_000, 0, 0o644),
        ]


def test_two_builds_that_differ_are_refused_with_the_names_of_the_files(tmp_path):
    one, other = (tmp_path / name for name in ("1", "2"))
    for folder, body in ((one, b"x"), (other, b"y")):
        folder.mkdir()
        wheel(folder / "a-1-py3-none-any.whl", {"same.py": b"", "different.py": body})
        (folder / "a-1.tar.gz").write_bytes(packed({"a-1/a.py": b""}, mtime=0, owner=0))
    first, second = distributions.distributions(one), distributions.distributions(other)
    assert "sha256" in distributions.check_reproducible(first, first)
    with pytest.raises(distributions.DistributionError, match=r"two builds of .*whl differ: different\.py"):
        distributions.check_reproducible(first, second)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scrapy_ext/addon.py": None}, r"lacks scrapy_ext/addon\.py"),
        ({"tests/test_addon.py": b""}, r"has tests/test_addon\.py, which git does not track"),
        ({"scrapy_ext-1.dist-info/licenses/LICENSE": None}, "has no licence"),
    ],
)
def test_a_wheel_holds_the_tracked_files_and_nothing_else(tmp_path, monkeypatch, change, message):
    package = ["scrapy_ext/__init__.py", "scrapy_ext/addon.py"]
    monkeypatch.setattr(distributions, "tracked", lambda *paths: package)
    monkeypatch.setattr(distributions, "ROOT", tmp_path)
    (tmp_path / "scrapy_ext").mkdir()
    for name in package:
        (tmp_path / name).write_bytes(b"")
    files = {**dict.fromkeys(package, b""), "scrapy_ext-1.dist-info/licenses/LICENSE": b""}
    sdist = tmp_path / "scrapy_ext-1.tar.gz"
    sdist.write_bytes(packed({f"scrapy_ext-1/{name}": b"" for name in [*package, "PKG-INFO"]}, mtime=0, owner=0))

    def check(contents: dict[str, bytes]) -> str:
        path = wheel(tmp_path / "scrapy_ext-1-py3-none-any.whl", contents)
        return distributions.check_contents(distributions.Distributions(path, sdist))

    assert check(files) == "3 files in the sdist, 3 in the wheel"
    changed = {name: body for name, body in {**files, **change}.items() if body is not None}
    with pytest.raises(distributions.DistributionError, match=message):
        check(changed)


KNOWN = {"Programming Language :: Python :: 3.10", "Typing :: Typed", "License :: OSI Approved :: BSD License"}
DECLARED = {
    "classifiers": ["Programming Language :: Python :: 3.10", "Typing :: Typed"],
    "requires-python": ">=3.10",
    "license": "BSD-3-Clause",
    "urls": {"Source": "https://code.example/scrapy-ext"},
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("classifiers", [*DECLARED["classifiers"], "Framework :: Other"], "PyPI does not have it"),
        ("classifiers", ["Typing :: Typed"], "says which versions of Python are tested"),
        ("classifiers", [*KNOWN], "PyPI refuses both together"),
        ("requires-python", ">=3.11", "exclude each other"),
        ("license", "BSD", "license: "),
        ("urls", {"Source": "http://code.example"}, "an https URL"),
    ],
)
def test_metadata_that_pypi_or_pip_would_refuse_is_named(field, value, message):
    assert metadata_check.faults_of(DECLARED, KNOWN) == []
    found = metadata_check.faults_of({**DECLARED, field: value}, KNOWN)
    assert any(message in each for each in found), found


def test_the_projects_own_metadata_has_no_faults():
    declared = metadata_check.project()
    assert metadata_check.faults_of(declared, set(declared["classifiers"])) == []
    assert metadata_check.minor_versions() == sorted(metadata_check.minor_versions())


def component(name: str, *licences: dict) -> dict:
    return {"bom-ref": name, "name": name, "version": "1", "licenses": list(licences)}


def test_a_bill_leaves_out_what_nothing_requires():
    bill = {
        "components": [component("scrapy"), component("pip"), component("setuptools")],
        "dependencies": [{"ref": "root", "dependsOn": ["scrapy"]}, {"ref": "scrapy", "dependsOn": ["setuptools"]}],
    }
    left = bill_of_materials.without_environment(json.loads(json.dumps(bill)))
    assert [each["name"] for each in left["components"]] == ["scrapy", "setuptools"]


def test_the_table_of_licences_names_them_as_the_audit_does():
    bill = {
        "components": [
            component("b", {"license": {"name": "License :: OSI Approved :: Apache Software License"}}),
            component("A", {"expression": "MIT OR Apache-2.0"}, {"license": {"id": "MIT"}}),
        ]
    }
    assert bill_of_materials.licence_table(bill).splitlines()[2:] == [
        "| A | 1 | MIT OR Apache-2.0 |",
        "| b | 1 | Apache-2.0 |",
    ]


def test_a_licence_that_is_accepted_as_free_text_is_in_the_bill():
    bill = {"components": [component("pypdfium2"), component("other"), component("unknown")]}
    text = "BSD-3-Clause, Apache-2.0, dependency licenses"
    bill_of_materials.complete_licences(bill, {"pypdfium2": text, "unknown": "Ask us first"})
    assert [each["licenses"] for each in bill["components"]] == [
        *([{"license": {"acknowledgement": "declared", "name": text}}], [], []),
    ]
    assert "| pypdfium2 | 1 | BSD-3-Clause |" in bill_of_materials.licence_table(bill)
