"""Environments of versions: real archives, real pip (from a folder of wheels that the tests make), real processes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from scrapy_ext.api.platform.versions import SpiderArgument, SpiderInfo, Version, VersionState
from scrapy_ext.api.violations import ContractError
from scrapy_ext.compatibility.python import timeout_after
from scrapy_ext.jobprocess import file_trees
from scrapy_ext.jobprocess.child import run
from scrapy_ext.server.jobs.versions import archives, environment_folders, environments
from scrapy_ext.server.jobs.versions.building import BASE, IN_USE, PART, READY
from scrapy_ext.server.jobs.versions.contents import ArchiveError
from scrapy_ext.server.jobs.versions.deployments import Deployments
from scrapy_ext.server.jobs.versions.environments import (
    BuildError,
    Environments,
    LocalProject,
    NoVersionError,
    Prepared,
)
from scrapy_ext.server.jobs.versions.runnable import check_local_spider
from scrapy_ext.server.jobs.versions.spiders import ReadingError, read_spiders
from scrapy_ext.server.store import Store
from tests.support import packed_projects as packed
from tests.support.eventually import eventually_async

BOOKS = SpiderInfo(
    "books",
    [SpiderArgument("category", required=True), SpiderArgument("page", default="1", annotation="int")],
    "Books of the shop.",
    True,
    "shop.spiders.Books",
)
NEWS = SpiderInfo(
    "news", [SpiderArgument("since", default="None", annotation="str | None")], "", False, "shop.spiders.News"
)


REPOSITORY = Path(__file__).parents[4]
MUCH = "import os, sys\nwith os.fdopen(int(sys.argv[1]), 'wb') as pipe: pipe.write(b'[' * 10**7)\nos._exit(0)"


class Setup:
    """A store, environments in a cache, and deploys to them."""

    def __init__(self, store: Store, folder: Path, local: Path | None = None, keep: int = 20) -> None:
        self.store = store
        self.cache = folder / "cache"
        self.environments = Environments(store, self.cache, LocalProject(1, local) if local else None, keep=keep)
        self.deployments = Deployments(store, self.environments)
        self._folder = folder

    async def deploy(self, archive: bytes, name: str = "1.0", settings: str = "", requirements: str = "") -> Version:
        """Deploy and wait for the end of the check."""
        path = self._folder / "uploaded"
        path.write_bytes(archive)
        with path.open("rb") as file:
            taken = await self.deployments.take(1, name, file, "me", settings=settings, requirements=requirements)
        async for _ in self.deployments.follow(1, taken.shown.deploy_id):
            pass
        found = await self.store.versions.get(1, taken.shown.deploy_id)
        assert found is not None
        return found.shown

    async def prepared(self, archive: bytes, name: str = "1.0", settings: str = "", requirements: str = "") -> Prepared:
        version = await self.deploy(archive, name, settings, requirements)
        assert (version.state, version.message) == (VersionState.READY, "")
        return await self.environments.prepare(1, name)


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    store = await Store.open(tmp_path / "data")
    made = Setup(store, tmp_path)
    yield made
    await made.deployments.close()
    await store.close()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip looks in."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def add_wheel(folder: Path, name: str, version: str, **files: str) -> None:
    made = {f"{path}.py": text for path, text in files.items()}
    (folder / f"{name}-{version}-py3-none-any.whl").write_bytes(packed.wheel_of(name, version, made))


async def test_a_folder_becomes_an_environment_with_its_spiders_and_their_arguments(setup: Setup) -> None:
    prepared = await setup.prepared(packed.folder(scripts__tidy="print('tidy')"))
    assert prepared.version == "1.0"
    assert await setup.store.versions.spiders(1) == [BOOKS, NEWS, SpiderInfo("py:tidy.py", custom=False)]
    output = packed.says(prepared.python, "import shop, scrapy, scrapy_ext; print(shop.__file__)", prepared.directory)
    assert output == str(prepared.directory / "shop" / "__init__.py")
    assert prepared.scripts is not None
    assert [path.name for path in prepared.scripts.iterdir()] == ["tidy.py"]
    elsewhere = packed.says(prepared.python, "import shop; print(shop.__file__)", setup.cache)
    assert elsewhere == output  # scripts run from anywhere
    assert "secret" not in (prepared.directory / "scrapy.cfg").read_text()
    listed = subprocess.run(
        [prepared.python, "-m", "scrapy", "list"], cwd=prepared.directory, capture_output=True, check=True, timeout=300
    )
    assert listed.stdout.split() == [b"books", b"news"]


async def test_an_egg_brings_its_settings_and_scripts(setup: Setup) -> None:
    prepared = await setup.prepared(packed.egg())
    assert [spider.name for spider in await setup.store.versions.spiders(1)] == ["books", "news", "py:clean.py"]
    assert prepared.scripts is not None
    assert packed.says(prepared.python, "import shop; print(1)", prepared.scripts) == "1"


@pytest.mark.long
async def test_a_wheel_and_its_requirements_lie_on_top_of_the_servers_packages(setup: Setup, wheels: Path) -> None:
    add_wheel(wheels, "priceparts", "1.0", priceparts="VALUE = 7")
    spider = packed.SPIDER.replace("import scrapy", "import priceparts\nimport scrapy")
    archive = packed.wheel(needs="priceparts==1.0", shop__spiders=spider)
    prepared = await setup.prepared(archive, requirements="priceparts\n")
    code = "import priceparts, shop, lxml; print(priceparts.VALUE, shop.__file__)"
    value, _, where = packed.says(prepared.python, code, prepared.directory).partition(" ")
    assert (value, where.startswith(str(prepared.directory.parent / "venv"))) == ("7", True)
    assert "No module" in packed.says(packed.this_python(), "import priceparts", setup.cache)


@pytest.mark.long
async def test_a_pinned_requirement_comes_before_the_servers_and_leaves_those_alone(setup: Setup, wheels: Path) -> None:
    add_wheel(wheels, "protego", "99.0", protego="VERSION = 99")
    prepared = await setup.prepared(packed.folder(), requirements="protego==99.0\n")
    assert packed.says(prepared.python, "import protego; print(protego.VERSION)", setup.cache) == "99"
    assert "AttributeError" in packed.says(packed.this_python(), "import protego; protego.VERSION", setup.cache)


@pytest.mark.long
async def test_a_wheel_without_entry_point_uses_the_settings_that_were_sent_or_the_only_ones(setup: Setup) -> None:
    await setup.prepared(packed.wheel(entry_point=False), "1.0", settings="shop.settings")
    await setup.prepared(packed.wheel(entry_point=False), "2.0")
    two = packed.zip_of({**packed.FILES, "a/settings.py": "", "EGG-INFO/PKG-INFO": "", "scrapy.cfg": ""})
    assert "does not name the settings" in (await setup.deploy(two, "3.0")).message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"shop__settings": "raise SystemExit(0)"}, "SystemExit", id="settings"),
        pytest.param({"shop__settings": None}, "No module named 'shop.settings'", id="no-settings"),
        pytest.param({"shop__spiders": "x = 1"}, "no spiders", id="no-spiders"),
        pytest.param({"shop__spiders": "import os; os._exit(0)"}, "is not valid", id="exit"),
        pytest.param(
            {"shop__spiders": MUCH},
            "8388608 bytes",
            id="much",
        ),
        pytest.param(
            {"shop__spiders": "import scrapy\nclass A(scrapy.Spider):\n  name = 'py:a'"},
            "cannot be the name",
            id="name",
        ),
        pytest.param({"shop__spiders": "import os; os.kill(os.getpid(), 11)"}, "imported", id="crash"),
    ],
)
@pytest.mark.long(keep=2)
async def test_what_a_broken_project_says_of_its_spiders(
    tmp_path: Path, changes: dict[str, str | None], message: str
) -> None:
    write(tmp_path, packed.files(**changes))
    with pytest.raises(ReadingError, match=message):
        await read_spiders(packed.this_python(), tmp_path, os.environ)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.mark.long
async def test_a_version_that_fails_says_why_and_the_one_before_stays(setup: Setup) -> None:
    await setup.prepared(packed.folder())
    version = await setup.deploy(packed.folder(shop__spiders="import nothing_like_this"), "2.0")
    assert version.state is VersionState.FAILED
    assert "nothing_like_this" in version.message
    assert await setup.store.versions.current(1) == "1.0"
    with pytest.raises(BuildError, match="failed"):
        await setup.environments.prepare(1, "2.0")


@pytest.mark.long
async def test_requirements_that_cannot_be_installed_are_reported_with_the_output_of_pip(
    setup: Setup, wheels: Path
) -> None:
    version = await setup.deploy(packed.folder(), requirements="no-such-package==1\n")
    assert version.state is VersionState.FAILED
    assert "could not install" in version.message
    assert "no-such-package==1" in version.message
    assert not list(setup.cache.glob(f"*/{READY}"))


@pytest.mark.long
async def test_a_long_line_of_a_failed_build_is_cut_and_not_lost(setup: Setup, wheels: Path) -> None:
    """Of about 1,000 characters, of which the names of the JSON around it once left too few."""
    version = await setup.deploy(packed.folder(), requirements=f"{'x' * 980}-a/b\n")
    assert version.state is VersionState.FAILED
    assert f"Invalid requirement: '{'x' * 900}" in version.message


@pytest.mark.long
async def test_a_build_sees_no_secrets(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_API_KEY", "a-secret")
    monkeypatch.setenv("AWS_SECRET", "a-secret")
    spiders = "import os; raise ValueError(sorted(os.environ.values()))"
    version = await setup.deploy(packed.folder(shop__spiders=spiders))
    assert "ValueError" in version.message
    assert "a-secret" not in version.message


async def test_a_project_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    code = "import os, subprocess, time\nopen('child', 'w').write(str(subprocess.Popen(['sleep', '600']).pid))\n"
    write(tmp_path, packed.files(shop__spiders=code + "time.sleep(600)"))
    reading = asyncio.create_task(read_spiders(packed.this_python(), tmp_path, os.environ, seconds=600))
    await eventually_async(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await ended(int((tmp_path / "child").read_text()))
    with pytest.raises(ReadingError, match=r"over 0\.2 s"):
        await read_spiders(packed.this_python(), tmp_path, os.environ, seconds=0.2)


async def ended(pid: int) -> None:
    """Wait until there is no such process, or only what is left of one."""
    async with timeout_after(60):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            await eventually_async(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.long
async def test_two_builders_at_once_make_one_environment(setup: Setup, tmp_path: Path) -> None:
    prepared = await setup.prepared(packed.folder())
    home = prepared.directory.parent
    for left in home.rglob("*"):  # both begin with nothing
        if left.is_file() or left.is_symlink():
            left.unlink()
    found = await setup.store.versions.named(1, "1.0")
    assert found is not None
    others = [Environments(setup.store, setup.cache) for _ in range(2)]  # as two servers on one machine have them
    both = await asyncio.gather(*(each.build(1, found) for each in others), others[0].build(1, found))
    assert {each.directory for each in both} == {prepared.directory}
    assert [path for path in setup.cache.iterdir() if path.name.endswith(PART)] == []
    assert (await others[1].read(both[0])).spiders == [BOOKS, NEWS]


@pytest.mark.long
async def test_a_build_that_was_killed_is_never_used_and_made_again(
    setup: Setup, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_wheel(wheels, "priceparts", "1.0", priceparts="")
    pids: list[int] = []
    monkeypatch.setattr(environments, "run", _killing(pids))
    version = await setup.deploy(packed.folder(), requirements="priceparts")
    assert version.state is VersionState.FAILED
    assert pids
    assert not list(setup.cache.glob(f"*/{READY}"))
    monkeypatch.undo()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    await setup.prepared(packed.folder(), requirements="priceparts")
    assert [path for path in setup.cache.iterdir() if path.name.endswith(PART)] == []


def _killing(pids: list[int]):
    """A run whose process is killed as soon as it installs."""

    async def killed(*arguments, on_line, **named):
        def watch(line: str) -> None:
            on_line(line)
            if "installing" in line:
                for path in Path("/proc").glob("[0-9]*/cmdline"):
                    with contextlib.suppress(OSError):
                        if b"versions.building" in path.read_bytes():
                            parent = Path(path.parent / "stat").read_text().rpartition(")")[2].split()[1]
                            if int(parent) == os.getpid():
                                pids.append(int(path.parent.name))
                                os.kill(pids[-1], signal.SIGKILL)

        return await run(*arguments, on_line=watch, **named)

    return killed


@pytest.mark.long
async def test_the_last_used_environments_are_kept_and_one_in_use_stays(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_folders, "_FRESH", -1.0)
    first = await setup.prepared(packed.folder(shop__a="1"), "1.0")
    sleeping = await asyncio.create_subprocess_exec(
        *(first.python, "-c", "print('there', flush=True); input()"),
        cwd=first.directory,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert sleeping.stdout is not None
    assert await sleeping.stdout.readline() == b"there\n"
    second = await setup.prepared(packed.folder(shop__a="2"), "2.0")
    small = Environments(setup.store, setup.cache, keep=1)
    for path in (first, second):
        os.utime(path.directory.parent / READY, (1, 1))
    third = await setup.prepared(packed.folder(shop__a="3"), "3.0")
    environment_folders.trim(setup.cache, 1)
    assert [each.directory.exists() for each in (first, second, third)] == [True, False, True]
    sleeping.kill()
    await sleeping.wait()
    environment_folders.trim(setup.cache, 1)
    assert [each.directory.exists() for each in (first, second, third)] == [False, False, True]
    again = await small.prepare(1, "2.0")
    assert again == second


@pytest.mark.long
async def test_the_environment_of_a_deleted_version_is_removed_and_others_stay(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = await setup.prepared(packed.folder(shop__a="1"), "1.0")
    archive = packed.folder(shop__a="2")
    same = await setup.prepared(archive, "2.0")
    await setup.deploy(archive, "3.0")
    (foreign := setup.cache / "1-of-another-database").mkdir()
    (foreign / "needed-0123-4567").touch()
    assert await setup.environments.remove_unneeded() == 0
    assert await setup.store.versions.remove(1, "1.0")
    assert await setup.store.versions.remove(1, "2.0")
    assert await setup.environments.remove_unneeded() == 0  # used just now
    monkeypatch.setattr(environment_folders, "_FRESH", -1.0)
    assert await setup.environments.remove_unneeded() == 1
    assert not deleted.directory.parent.exists()
    assert same.directory.exists(), "version 3.0 has the same contents"
    assert foreign.exists()


FOUND = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in str(finder)]
sys.path[:] = [folder for folder in sys.path if not folder.endswith("dist-packages") and {repository!r} != folder]
import scrapy_ext.jobprocess.launch
print(scrapy_ext.__path__[0])
"""


@pytest.mark.long
async def test_the_servers_package_is_found_without_the_folder_that_it_is_in(setup: Setup) -> None:
    """A server that runs from its source has a clone there, whose names are nobody's business."""
    prepared = await setup.prepared(packed.folder())
    found = packed.says(prepared.python, FOUND.format(repository=str(REPOSITORY)), prepared.directory)
    assert found == str(prepared.directory.parent / BASE / "scrapy_ext")


DEEP = """
import os, sys
os.chdir(sys.prefix)
for _ in range(3000):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
"""


def deepen(folder: Path) -> None:
    """Make folders in a folder, deeper than Python recurses."""
    subprocess.run([packed.this_python(), "-c", DEEP.replace("sys.prefix", repr(str(folder)))], check=True)


def _deep_sdist() -> bytes:
    """A source distribution that has a build of its own, which makes deep folders and fails."""
    project = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    build = f"{DEEP}\nraise SystemExit('deep enough')\n"
    information = "Metadata-Version: 2.1\nName: p\nVersion: 1\n"
    return packed.tar_of({"p-1/PKG-INFO": information, "p-1/pyproject.toml": project, "p-1/b.py": build})


@pytest.mark.long
async def test_a_build_that_leaves_deep_folders_fails_by_itself_alone(setup: Setup) -> None:
    """It can be tried again, and the next deploys, of other projects too, remove what it has left."""
    archive = _deep_sdist()
    for name in ("1.0", "2.0"):
        failed = await setup.deploy(archive, name)
        assert failed.state is VersionState.FAILED
        assert "deep enough" in failed.message
        (left,) = setup.cache.glob(f"*{PART}")
        # Deeper than the packages of an environment are.
        assert sum(name == "d" * 50 for _, name in file_trees.walk(left)) == 3000
    await setup.prepared(packed.folder(), "3.0")
    assert not left.exists()


@pytest.mark.long
def test_an_environment_that_cannot_be_removed_is_logged_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "1-old", tmp_path / "1-new"
    for home in (old, new):
        (home / "work").mkdir(parents=True)
        (home / READY).touch()
        (home / IN_USE).touch()
    deepen(old / "work")
    os.utime(old / READY, (1, 1))
    remove = file_trees.remove

    def refuse(path: Path, deadline: float) -> None:
        raise PermissionError("of a file system that is read-only")

    monkeypatch.setattr(file_trees, "remove", refuse)
    for _ in range(2):
        environment_folders.trim(tmp_path, 1)
        assert f"The folder {old}, which no job needs any more, could not be removed: of a file system" in caplog.text
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["1-new", "1-old"]
        assert not (old / READY).exists()
        caplog.clear()
    monkeypatch.setattr(file_trees, "remove", remove)
    environment_folders.trim(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["1-new"]
    assert caplog.text == ""


@pytest.mark.long
async def test_a_build_is_whole_although_old_environments_cannot_be_looked_at(
    setup: Setup, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cache: Path, keep: int) -> None:
        raise RecursionError

    monkeypatch.setattr(environments, "trim", fail)
    await setup.prepared(packed.folder())
    assert "stop the server and remove the folder" in caplog.text


async def test_a_spider_that_is_refused_may_be_in_a_module_that_cannot_be_imported(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, packed.FILES)
    with (project / "shop" / "settings.py").open("a") as file:
        file.write('\nSPIDER_MODULES = [*SPIDER_MODULES, "shop.more"]\nSPIDER_LOADER_WARN_ONLY = True\n')
    (project / "shop" / "more.py").write_text("import no_such_package_of_a_shop\n")
    store = await Store.open(tmp_path / "data")
    try:
        setup = Setup(store, tmp_path, project)
        assert await setup.environments.spiders(1) == [BOOKS, NEWS]
        with pytest.raises(
            ContractError, match=r"shop\.more: ModuleNotFoundError: No module named 'no_such.*Use one of"
        ):
            await check_local_spider(store, setup.environments, 1, "more")
        await check_local_spider(store, setup.environments, 1, "books")
    finally:
        await store.close()


async def test_the_servers_own_folder_is_the_version_local_and_read_again_for_a_new_spider(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, packed.FILES)
    store = await Store.open(tmp_path / "data")
    try:
        setup = Setup(store, tmp_path, project)
        prepared = await setup.environments.prepare(1, None)
        assert prepared == (packed.this_python(), project, "local", project)
        assert await setup.environments.spiders(1) == [BOOKS, NEWS]
        (project / "shop" / "spiders.py").write_text(packed.SPIDER.replace('"news"', '"later"'))
        assert [spider.name for spider in await setup.environments.spiders(1, "books")] == ["books", "news"]
        await eventually_async(
            lambda: setup.environments.spiders(1, "later"),
            lambda value: [each.name for each in value] == ["books", "later"],
        )
        await check_local_spider(store, setup.environments, 1, "later")
        await check_local_spider(store, setup.environments, 1, "py:any.py")
        await check_local_spider(store, setup.environments, 2, "any")  # it has no folder
        with pytest.raises(ContractError, match=r"'boks' is no spider of project 1.* Use one of books, later"):
            await check_local_spider(store, setup.environments, 1, "boks")
        none = Environments(store, tmp_path / "cache")
        await check_local_spider(store, none, 1, "any")
        with pytest.raises(NoVersionError, match="Deploy one"):
            await none.prepare(1, None)
        with pytest.raises(NoVersionError, match=r"no version 7\.0"):
            await setup.environments.prepare(1, "7.0")
    finally:
        await store.close()


def _linked() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        link = tarfile.TarInfo("scrapy.cfg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return packed.getvalue()


def _zip_link() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        entry = zipfile.ZipInfo("scrapy.cfg")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    return packed.getvalue()


def _bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in range(3):
            archive.writestr(f"{name}", b"0" * 1024)
        for entry in archive.infolist():
            entry.file_size = 2**30
    return packed.getvalue()


def _many() -> bytes:
    """It takes seconds: not what every worker does that only looks for tests."""
    return packed.tar_of({f"{n}": "" for n in range(20_001)})


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        pytest.param(b"", "damaged", id="empty"),
        pytest.param(b"hello", "damaged", id="text"),
        pytest.param(packed.tar_of({"a.py": ""}), "nothing in it says so", id="nothing"),
        pytest.param(packed.zip_of({"a.py": ""}), "nothing in it says so", id="nothing-zip"),
        pytest.param(packed.tar_of({"scrapy.cfg": "", "../x": ""}), "leads out", id="parent"),
        pytest.param(packed.zip_of({"scrapy.cfg": "", "/x": ""}), "leads out", id="root"),
        pytest.param(packed.zip_of({"scrapy.cfg": "", "a/../../x": ""}), "leads out", id="inside"),
        pytest.param(_linked(), "neither a file", id="link"),
        pytest.param(_zip_link(), "neither a file", id="zip-link"),
        pytest.param(_bomb(), "becomes over", id="bomb"),
        pytest.param(_many, "over 20000 files", id="files"),
        pytest.param(packed.folder()[:200], "damaged", id="cut"),
    ],
)
@pytest.mark.long(keep=4)
def test_archives_that_are_none_or_reach_out_of_their_folder_are_refused(
    tmp_path: Path, archive: bytes | Callable[[], bytes], message: str
) -> None:
    path = tmp_path / "archive"
    path.write_bytes(archive() if callable(archive) else archive)
    with path.open("rb") as file, pytest.raises(ArchiveError, match=message):
        archives.inspect(file)
