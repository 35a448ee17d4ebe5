"""``scrapy platform deploy`` and ``versions``: real commands, a real server."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scrapy_ext.api.platform.versions import Version, VersionState
from scrapy_ext.commands import packing
from scrapy_ext.commands.deploy_targets import find_target, version_name
from scrapy_ext.commands.packing import difference, note_deployed, pack, requirements_of
from scrapy_ext.commands.subcommand import CommandError
from tests.support import packed_projects as projects
from tests.support.servers import ForkedServer, RunningServer
from tests.support.terminal_commands import Done, scrapy

PYPROJECT = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
#: A build without packages of others, so that it needs no index.
BACKEND = """
import pathlib, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    info = "shop-1.dist-info/"
    with zipfile.ZipFile(pathlib.Path(directory, "shop-1-py3-none-any.whl"), "w") as wheel:
        for path in PATHS:
            wheel.write(path)
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: shop\\nVersion: 1\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return "shop-1-py3-none-any.whl"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with ForkedServer(tmp_path_factory.mktemp("deploy") / "data", options=["--no-runner"]) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Scrapy project."""
    made = tmp_path / "shop"
    for path, text in projects.FILES.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    (made / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    return made


@contextlib.contextmanager
def folder_on_loopback(folder: Path) -> Iterator[str]:
    """The URL of a site with the files of a folder."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_port}"
        finally:
            site.shutdown()
            thread.join()


def run(folder: Path, *arguments: str, **environment: str) -> Done:
    """Run the command in this process, with nothing in its environment that names a platform or a project."""
    kept = {name: value for name, value in os.environ.items() if not re.search("PLATFORM|SHUB|SCRAPY", name)}
    return scrapy("platform", *arguments, folder=folder, environment={**kept, **environment})


def test_deploy_to_a_target_then_list_and_go_back(server: RunningServer, folder: Path) -> None:
    (folder / "scrapy.cfg").write_text(
        "[settings]\ndefault = shop.settings\n[deploy]\nproject = 3\n"
        f"[deploy:production]\nurl = {server.url}/api/scrapyd/\nusername = {server.platform_key}\n"
    )
    done = run(folder, "deploy", "production", "--version", "1.0")
    assert (done.returncode, "version 1.0 of project 3 is current: 2 spiders" in done.stderr) == (0, True), done.stderr
    assert [(record["name"], len(record.get("arguments", []))) for record in done.records] == [
        ("books", 2),
        ("news", 1),
    ]  # type: ignore[arg-type]
    (folder / "shop" / "spiders.py").write_text(projects.SPIDER.replace('"news"', '"reviews"'))
    assert run(folder, "deploy", "production", "--version", "2.0", "--project", "3").returncode == 0
    own = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": "3"}
    listed = run(folder, "versions", **own).records
    assert [(each["version"], each["current"], each["state"]) for each in listed] == [
        ("2.0", True, "ready"),
        ("1.0", False, "ready"),
    ]
    assert run(folder, "versions", "use", "1.0", **own).returncode == 0
    assert [each["name"] for each in run(folder, "versions", "show", "2.0", **own).records] == ["books", "reviews"]
    asked = run(folder, "versions", "delete", "2.0", **own)
    assert (asked.returncode, "Delete version 2.0 of project 3?" in asked.stderr, "--yes" in asked.stderr) == (
        1,
        True,
        True,
    )
    refused = run(folder, "versions", "delete", "1.0", "--yes", **own)
    assert (refused.returncode, "current version" in refused.stderr) == (1, True)
    assert run(folder, "versions", "delete", "--yes", "2.0", **own).returncode == 0
    assert [each["version"] for each in run(folder, "versions", **own).records] == ["1.0"]
    assert "needs a version" in run(folder, "versions", "use", **own).stderr


def test_a_project_that_does_not_work_is_reported_before_it_is_sent(server: RunningServer, folder: Path) -> None:
    (folder / "shop" / "spiders.py").write_text("import nothing_like_this\n")
    own = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": "4"}
    done = run(folder, "deploy", "--version", "1.0", **own)
    assert done.returncode == 1
    assert "No module named 'nothing_like_this'" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("scrapy platform deploy: version 1.0 failed its check")
    wrong = run(folder, "deploy", **{**own, "PLATFORM_API_KEY": "wrong"})
    assert (wrong.returncode, "401" in wrong.stderr) == (1, True)
    assert "there is no scrapy.cfg" in run(folder.parent, "deploy").stderr
    assert "there is no target nowhere" in run(folder, "deploy", "nowhere").stderr


def names_of(archive: Path) -> set[str]:
    if zipfile.is_zipfile(archive):
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as tar:
        return set(tar.getnames())


def test_only_code_is_packed_and_the_same_code_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    left_out = {
        ".git/config": "",
        ".scrapy/httpcache/a": "",
        "venv/pyvenv.cfg": "",
        "venv/lib/x.py": "",
        "shop/__pycache__/a.pyc": "",
        ".env": "PLATFORM_API_KEY=1",
        ".env.production": "PLATFORM_API_KEY=1",
        ".envrc": "export PLATFORM_API_KEY=1",
        "shop/.env": "PLATFORM_API_KEY=1",
        "scrapinghub.yml": "apikey: secret",
        "shop.egg-info/PKG-INFO": "",
        "crawl.log": "",
    }
    for path, text in {**left_out, "data/names.txt": "a"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with (folder / "data" / "big.json").open("wb") as big:
        big.truncate(packing.MAX_FILE + 1)
    (folder / "link.txt").symlink_to("/etc/passwd")
    (folder / "scrapy.cfg").write_text(projects.SCRAPY_CFG)
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(pack(folder, tmp_path / name))
    assert names_of(made[0].path) == {*projects.FILES, "data/names.txt"}
    assert made[0].path.read_bytes() == made[1].path.read_bytes()
    assert made[0].settings == "shop.settings"
    assert made[0].notes == [
        "files over 5 MB are left out: data/big.json (5 MB). Keep data in a collection, or fetch it",
    ]
    with tarfile.open(made[0].path) as tar:
        cfg = tar.extractfile("scrapy.cfg")
        assert cfg is not None
        assert cfg.read() == b"[settings]\ndefault = shop.settings\n"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("backend", "message"),
    [
        pytest.param(f"PATHS = {sorted(set(projects.FILES) - {'scrapy.cfg'})}{BACKEND}", "", id="wheel"),
        pytest.param(f"PATHS = []{BACKEND}", "does not have shop.settings", id="empty"),
        pytest.param("raise SystemExit('no way')", "pip built no wheel", id="broken"),
    ],
)
def test_a_project_with_a_build_is_a_wheel_else_a_folder(
    folder: Path, tmp_path: Path, backend: str, message: str
) -> None:
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(backend)
    (tmp_path / "into").mkdir()
    done = pack(folder, tmp_path / "into")
    assert [message in note for note in done.notes] == ([True] if message else [])
    names = names_of(done.path)
    assert ("scrapy.cfg" in names) == bool(message)
    assert "shop/spiders.py" in names
    assert not (folder / "build").exists()


def test_settings_that_are_not_said_and_archives_that_are_too_large(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_ARCHIVE", 100)
    (tmp_path / "a").mkdir()
    with pytest.raises(CommandError, match="the limit"):
        pack(folder, tmp_path / "a")
    for text, message in [
        ("", r"names no settings; write default"),
        ("[settings]\ndefault = a b\n", "dotted name"),
        ("x", "cannot be read"),
    ]:
        (folder / "scrapy.cfg").write_text(text)
        with pytest.raises(CommandError, match=message):
            pack(folder, tmp_path / "b")


def test_requirements_bring_what_they_include_and_no_paths(folder: Path) -> None:
    assert requirements_of(folder, None) == ""
    (folder / "requirements.txt").write_text("attrs>=20\n-r more.txt\n")
    (folder / "more.txt").write_text("# more\nlxml\n")
    assert requirements_of(folder, None) == "attrs>=20\n# more\nlxml\n"
    for line in ("-e .", "./local", "-c bounds.txt", "x @ file:///tmp/x", "."):
        (folder / "more.txt").write_text(line + "\n")
        with pytest.raises(CommandError, match="files of this machine"):
            requirements_of(folder, "requirements.txt")
    (folder / "more.txt").write_text("-r more.txt\n")
    with pytest.raises(CommandError, match="includes itself"):
        requirements_of(folder, None)
    with pytest.raises(CommandError, match="cannot be read"):
        requirements_of(folder, "nothing.txt")


YML = """
projects:
  default: 7
  staging: own/8
  third: {id: 9, endpoint: own, apikey: other, requirements: {file: third.txt}, stack: "scrapy:2.1"}
endpoints:
  default: http://platform.example/api/
  own: https://own.example:8700/api/
apikeys: {default: a, own: b, other: c}
requirements: {file: all.txt}
stacks: {default: "scrapy:2.0"}
version: "2.5"
"""


def test_targets_of_scrapinghub_yml(folder: Path) -> None:
    (folder / "scrapinghub.yml").write_text(YML)
    found = [find_target(folder, name) for name in (None, "staging", "third", "11")]
    assert [(each.url, each.project, each.key, each.requirements, each.version) for each in found] == [
        ("http://platform.example", 7, "a", "all.txt", "2.5"),
        ("https://own.example:8700", 8, "b", "all.txt", "2.5"),
        ("https://own.example:8700", 9, "c", "third.txt", "2.5"),
        ("http://platform.example", 11, "a", "all.txt", "2.5"),
    ]
    assert "stacks ignored" in found[0].notes[0]
    (folder / "scrapinghub.yml").write_text("project: 7\nendpoint: http://one.example/api/\napikey: k\n")
    found = [find_target(folder, None)]
    assert (found[0].url, found[0].project, found[0].key) == ("http://one.example", 7, "k")


def test_a_project_as_startproject_writes_it(folder: Path, tmp_path: Path) -> None:
    cfg = folder / "scrapy.cfg"
    cfg.write_text("[settings]\ndefault = shop.settings\n[deploy]\n#url = http://localhost:6800/\nproject = shop\n")
    found = find_target(folder, None)
    assert (found.url, found.project) == (None, None)
    assert found.notes == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "scrapy.cfg").write_text(cfg.read_text().replace("project = shop", "project = 1O"))
    assert find_target(other, None).notes == [
        "scrapy.cfg: project = 1O of [deploy] ignored, because it is not a number"
    ]
    cfg.write_text(cfg.read_text().replace("#url", "url"))
    with pytest.raises(CommandError, match=r"got 'shop'\. Write the number of the project on that platform"):
        find_target(folder, None)
    assert find_target(folder, None, 7).project == 7


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("projects: [1]", None, "projects must be a mapping"),
        ("a: [", None, "cannot be read"),
        ("text", None, "must be a mapping"),
        ("projects: {a: x}", "a", "must be a number"),
        ("projects: {a: nowhere/1}", "a", "is not defined; add it to endpoints"),
        ("projects: {a: 1}\nendpoint: ftp://x", "a", "http:// or https://"),
        ("projects: {a: 1}\nendpoint: http://key@x/", "a", "contain no key"),
        ("projects: {a: 1}", "b", "use a"),
    ],
)
def test_targets_that_cannot_be_used(folder: Path, text: str, target: str | None, message: str) -> None:
    (folder / "scrapinghub.yml").write_text(text)
    with pytest.raises(CommandError, match=message):
        find_target(folder, target)


def test_versions_are_named_by_git_or_by_the_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    assert len(version_name(folder, None)) == len("20260101-000000")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"], ["tag", "v1.2"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)
    assert version_name(folder, "auto") == "v1.2"
    (folder / "shop" / "spiders.py").write_text("")
    assert version_name(folder, "AUTO") == "v1.2-dirty"
    assert version_name(folder, "mine") == "mine"
    with pytest.raises(CommandError, match="version: must be"):
        version_name(folder, "a b")


@pytest.mark.long
def test_a_requirement_is_installed_from_a_git_repository(server: RunningServer, folder: Path, tmp_path: Path) -> None:
    source, bare = tmp_path / "source", tmp_path / "served" / "prices.git"
    source.mkdir()
    bare.parent.mkdir()
    (source / "prices.py").write_text("VAT = 19\n")
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "backend.py").write_text(BACKEND.replace("PATHS", "['prices.py']").replace("shop", "prices"))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Prices"]):
        subprocess.run([*git, *words], cwd=source, check=True)
    subprocess.run([*git, "clone", "-q", "--bare", str(source), str(bare)], check=True)
    subprocess.run([*git, "update-server-info"], cwd=bare, check=True)  # for plain HTTP
    (folder / "shop" / "spiders.py").write_text("import prices\n" + projects.SPIDER)
    own = {"PLATFORM_URL": server.url, "PLATFORM_API_KEY": server.platform_key, "PLATFORM_PROJECT": "6"}
    with folder_on_loopback(bare.parent) as url:
        (folder / "requirements.txt").write_text(f"prices @ git+{url}/prices.git\n")
        done = run(folder, "deploy", "--version", "1.0", **own)
    assert (done.returncode, "is current" in done.stderr) == (0, True), done.stderr


def test_a_version_is_compared_with_the_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    sha256 = hashlib.sha256(pack(folder, tmp_path / "packed").path.read_bytes()).hexdigest()
    packed, other = version_of(sha256), version_of("0" * 64)
    assert difference(folder, packed) == ""  # from any machine
    assert "was not deployed from this folder" in difference(folder, other)
    note_deployed(folder, other)  # a wheel, whose bytes differ each time
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n[deploy]\nurl = http://other\n")
    (folder / "notes.log").write_text("not code")
    assert difference(folder, other) == ""
    (folder / "shop" / "more.py").write_text("")
    assert difference(folder, other) == "the files of this folder differ from it"
    (folder / "shop" / "more.py").unlink()
    assert difference(folder, other) == ""
    (folder / "shop" / "settings.py").write_text("")
    assert difference(folder, other) == "the files of this folder differ from it"


def version_of(sha256: str) -> Version:
    fields = {"version": "1.0", "message": "", "created_by": "", "format": "folder", "requirements": ""}
    return Version(deploy_id=1, state=VersionState.READY, current=True, created=0, size=1, sha256=sha256, **fields)
