"""The parts of ``scrapy platform doctor`` that need neither services nor a server."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from scrapy.settings import BaseSettings, Settings

from scrapy_ext import settings as names
from scrapy_ext.commands.doctor import browser, installation, machine, services, store
from scrapy_ext.commands.doctor.checking import Check, Finding, Status, findings, in_thread, ok, problem
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.inspection import Inspected

_MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:40 / /srv rw,relatime shared:9 - nfs4 server:/export rw,vers=4.2
31 30 8:2 / /srv/local\\040disk rw,relatime - xfs /dev/sdb1 rw
32 21 0:41 / /home rw - fuse.sshfs me@there: rw
"""


def run(*checks: Check) -> list[Finding]:
    async def all_of() -> list[Finding]:
        return [finding async for finding in findings(checks)]

    return asyncio.run(all_of())


def of(subject: str, settings: BaseSettings, *, server: bool = False) -> list[Finding]:
    return run(*(check for check in installation.checks(settings, server=server) if check.subject == subject))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in names.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_check_that_fails_or_hangs_does_not_keep_others_from_their_result() -> None:
    waiting = threading.Event()

    async def failing() -> Iterable[Finding]:
        raise ZeroDivisionError("by zero")

    def hanging() -> Iterable[Finding]:
        waiting.wait()
        return []

    found = run(
        Check("a", failing), in_thread("b", hanging, 0.05), in_thread("c", lambda: [ok("c", "fine")]),
        Check("d", lambda: asyncio.sleep(3600, []), 0.05),
    )  # fmt: skip
    waiting.set()
    assert [(each.subject, each.status) for each in found] == [
        ("a", Status.PROBLEM),
        ("b", Status.PROBLEM),
        ("c", Status.OK),
        ("d", Status.PROBLEM),
    ]
    assert "ZeroDivisionError: by zero" in found[0].text
    assert "no result within" in found[1].text


def test_checks_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3, timeout=60)

    def meet() -> Iterable[Finding]:
        barrier.wait()
        return [ok("", "")]

    assert [each.status for each in run(*[in_thread("", meet, 60)] * 3)] == [Status.OK] * 3


def test_packages_of_other_versions_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    required = [
        "scrapy>=99",
        "no-such-package>=1",
        "msgspec>=0.1",
        'also-none; extra == "server"',
        "other; python_version<'3'",
    ]
    monkeypatch.setattr(installation, "requires", lambda _: required)
    found = of("versions", BaseSettings())
    assert found[0].status is Status.OK
    assert [each.remedy for each in found[1:]] == ["pip install 'scrapy>=99'", "pip install 'no-such-package>=1'"]
    assert of("versions", BaseSettings(), server=True)[-1] == problem(
        "versions", "also-none is not installed", 'pip install "scrapy-ext[server]"'
    )


def test_the_project_needs_the_addon_and_asyncio(project: Path) -> None:
    assert "does not use the add-on" in of("project", Settings())[0].text
    (with_addon,) = of("project", Settings({"ADDONS": {"scrapy_ext.Addon": 500}}))
    assert with_addon.status is Status.OK
    parts = {"ITEM_PIPELINES": {"scrapy_ext.pipelines.ItemStoragePipeline": 1}}
    assert of("project", Settings(parts))[0].status is Status.OK
    reactor = "twisted.internet.selectreactor.SelectReactor"
    wrong = of("project", Settings({**parts, "TWISTED_REACTOR": reactor}))[1]
    assert wrong.status is Status.PROBLEM
    assert reactor in wrong.text


def test_wrong_and_misspelt_settings_are_named(project: Path) -> None:
    given = {"FRONTIER_SLOTS": "many", "PLATFROM_URL": "http://a", "PLATFORM_API_KEY": "secret"}
    settings = Settings(given, priority="project")
    found = of("settings", settings)
    assert found[0] == problem(
        "settings", "FRONTIER_SLOTS must be of type int, got 'many'", "Correct it where it is set."
    )
    assert any("PLATFORM_URL" in each.text and each.status is Status.WARNING for each in found)
    without_address, key = (each for each in found if each.text.startswith("PLATFORM_API_KEY"))
    assert "no effect without PLATFORM_URL" in without_address.text
    assert key.text == "PLATFORM_API_KEY is in the project's settings"
    assert ".env" in key.remedy
    assert "secret" not in str(found)


def test_the_file_of_variables_is_private_and_well_formed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / ".env"
    assert of(".env", Settings()) == [ok(".env", "there is none")]
    file.write_text("PLATFORM_API_KEY=secret\nPLATFORM_PROJECT=7\n")
    file.chmod(0o644)
    monkeypatch.setenv("PLATFORM_PROJECT", "8")
    found = of(".env", Settings())
    assert found[0].text == f"{file} sets PLATFORM_API_KEY; the environment hides PLATFORM_PROJECT"
    assert found[1].remedy == f"chmod 600 {file}"
    file.chmod(0o600)
    assert len(of(".env", Settings())) == 1
    file.write_text("PLATFORM_API_KYE=secret\nOTHER=1\n")
    (_, misspelt) = of(".env", Settings())
    assert (misspelt.status, "PLATFORM_API_KEY" in misspelt.text) == (Status.WARNING, True)
    file.write_text("PLATFORM_API_KEY='secret\n")
    (wrong,) = of(".env", Settings())
    assert (wrong.status, wrong.text) == (Status.PROBLEM, f"{file} has a malformed line 1")
    assert "secret" not in str([*found, wrong])


def test_a_secret_of_a_file_is_named_by_its_path_and_comes_before_that_of_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "key").write_text("sesame\n")
    (project / ".env").write_text("PLATFORM_API_KEY=other\n")
    (project / ".env").chmod(0o600)
    monkeypatch.delenv("PLATFORM_API_KEY", raising=False)
    monkeypatch.setenv("PLATFORM_API_KEY_FILE", str(project / "key"))
    monkeypatch.setenv("PLATFORM_URL", "http://127.0.0.1:1")
    assert names.PLATFORM_API_KEY.read(Settings()) == "sesame"
    text = f"PLATFORM_API_KEY comes from the file {project / 'key'}, which PLATFORM_API_KEY_FILE names"
    assert ok("settings", text) in of("settings", Settings())
    (found,) = of(".env", Settings())
    assert found.text == f"{project / '.env'} sets nothing; the environment hides PLATFORM_API_KEY"
    assert all(each.status is not Status.WARNING for each in of("settings", Settings()))
    monkeypatch.delenv("PLATFORM_API_KEY_FILE")
    (project / ".env").write_text(f"PLATFORM_API_KEY_FILE={project / 'key'}\n")
    assert names.PLATFORM_API_KEY.read(Settings()) == "sesame"
    assert [each.status for each in of(".env", Settings())] == [Status.OK]
    monkeypatch.setenv("PLATFORM_API_KEY", "mine")
    assert names.PLATFORM_API_KEY.read(Settings()) == "mine"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/data", ""),
        ("/srv/data", "nfs4"),
        ("/srv/local disk/data", ""),
        ("/home/me/x", "fuse.sshfs"),
        ("/homes", ""),
    ],
)
def test_network_file_systems_are_found(path: str, kind: str) -> None:
    assert machine.network_file_system(Path(path), _MOUNTS) == kind
    assert machine.network_file_system(Path(path), "") == ""


def test_a_data_folder_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def data_folder(path: Path) -> Finding:
        return run(machine.checks(path)[0])[0]

    assert data_folder(tmp_path / "new" / "er").status is Status.OK
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert "is no folder" in data_folder(tmp_path / "file" / "data").text
    # Real and read-only, for every user.
    if Path("/proc/sys").is_dir():
        assert "cannot be written" in data_folder(Path("/proc/sys/data")).text
    monkeypatch.setattr(machine, "_mounts", lambda: f"1 0 0:1 / {tmp_path} rw - nfs a:/ rw")
    assert data_folder(tmp_path).status is Status.WARNING


def test_little_room_on_a_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (enough, *_) = run(machine.checks(None)[0])
    monkeypatch.setattr(machine, "_LITTLE", 2**70)
    assert run(machine.checks(None)[0])[0].status is Status.WARNING
    monkeypatch.setattr(machine, "_TOO_LITTLE", 2**70)
    assert run(machine.checks(None)[0])[0].status is Status.PROBLEM
    assert "GiB" in enough.text


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free space"), (errno.EDQUOT, "quota"), (errno.EROFS, "Mount its file system for writing"),
        (errno.EACCES, "Make it writable for this user"), (errno.EIO, "faults of its disk"), (errno.ENXIO, "another"),
    ],
)  # fmt: skip
def test_the_remedy_of_a_data_folder_fits_the_fault_of_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(number, os.strerror(number))

    # Full and read-only disks are made by administrators alone.
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    (found,) = run(machine.checks(tmp_path)[0])
    assert found.text.endswith(f"cannot be written: {os.strerror(number)}")
    assert remedy in found.remedy
    assert "--data" in found.remedy
    assert ("writable for this user" in found.remedy) == (number == errno.EACCES)


def test_a_system_without_limits_of_open_files_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert "check itself failed" not in str(run(machine.checks(None)[1]))


def test_every_wrong_address_and_missing_key_is_found(project: Path) -> None:
    found = services.found_in(
        Settings({"EXTRACT_API_URL": "http://a/v2", "PLATFORM_APP_URL": "b", "PLATFORM_URL": "c"})
    )
    assert [each.name for each in found.wrong] == [
        "EXTRACT_API_URL", "EXTRACT_API_KEY", "PLATFORM_URL", "PLATFORM_APP_URL", "PLATFORM_API_KEY"
    ]  # fmt: skip
    assert (found.checks, found.is_remote) == ([], True)
    one = services.found_in(Settings({"EXTRACT_API_URL": "a", "EXTRACT_API_KEY": "k"}))
    assert ([each.name for each in one.wrong], one.is_remote) == (["EXTRACT_API_URL"], False)


def test_an_unknown_host_of_a_database_is_told_apart_from_a_server_that_does_not_run() -> None:
    (found,) = run(store.check(DatabaseUrl("postgresql://me:secret@nobody.invalid/x")))
    assert "the name of the host is not known" in found.text
    assert found.remedy.startswith("Correct the host")
    assert "secret" not in str(found)


_REPORT = """\
The browser does not start: BrowserType.launch: Target page, context or browser has been closed
Browser logs:

<launching> /opt/chrome --headless
<launched> pid=7
[pid=7][err] /opt/chrome: {}
Call log:
  - [pid=7][err] /opt/chrome: {}
"""


def test_the_remedy_of_a_browser_fits_its_fault() -> None:
    libraries = "error while loading shared libraries: libnss3.so: cannot open shared object file"
    found = browser.failure(_REPORT.format(libraries, libraries), "/opt/chrome", {})
    assert found.text == f"/opt/chrome does not start: /opt/chrome: {libraries}"
    assert found.remedy.startswith("playwright install-deps chromium")
    other = _REPORT.format("I am no browser", "I am no browser")
    assert "with --browser" in browser.failure(other, "/opt/chrome", {}).remedy
    assert "with SCRAPY_EXT_BROWSER" in browser.failure(other, None, {"SCRAPY_EXT_BROWSER": "/opt/chrome"}).remedy
    assert "install --force chromium" in browser.failure(other, None, {}).remedy


@pytest.mark.parametrize(
    ("keys", "buffers", "text"),
    [
        (1_700_000_000, 128 << 20, "the indexes of collections have 1.7 GB, and shared_buffers 134 MB"),
        (1_700_000_000, 4 << 30, ""),
        (400_000_000, 128 << 20, ""),
    ],
)
def test_indexes_that_exceed_the_buffers_of_postgresql_are_named(keys: int, buffers: int, text: str) -> None:
    found = list(store._buffers(Inspected("PostgreSQL 15.18", 180, buffers=buffers, keys=keys)))
    assert [each.text.partition(":")[0] for each in found] == [text][: bool(text)]
    assert all("shared_buffers" in each.remedy for each in found)
