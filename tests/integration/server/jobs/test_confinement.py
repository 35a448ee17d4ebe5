"""Deployed code that reads what it can: a hostile project on a real server, and a friendly one beside it."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_ext.jobprocess.child import run
from scrapy_ext.jobprocess.confinement import view
from scrapy_ext.jobprocess.confinement.addresses import Rules
from scrapy_ext.jobprocess.confinement.probing import probe
from scrapy_ext.jobprocess.confinement.seccomp import number_of
from scrapy_ext.jobprocess.proc import below, shared_memory, table
from scrapy_ext.server.jobs.confining import FIRST_USER, METADATA, Confining, Policy
from scrapy_ext.server.jobs.versions.building import WORK
from scrapy_ext.server.store.engine.address import DatabaseUrl
from tests.support import packed_projects as packed
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.postgresql import Cluster
from tests.support.running_jobs import Platform, confined
from tests.support.servers import RunningServer

NOBODY = 65534
REPOSITORY = Path(__file__).parents[4]
SPIDERS = (REPOSITORY / "tests" / "support" / "hostile_spider.py").read_text("utf-8")


def become_nobody(folder: Path) -> None:
    """Run as a user without rights, who reaches Python and the folder."""
    needed = [str(REPOSITORY / ".venv"), sys.prefix, sys.base_prefix, str(REPOSITORY / "scrapy_ext"), str(folder)]
    view.open_paths(needed, NOBODY, NOBODY)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def starts(folder: Path) -> dict[str, Callable[[], None] | None]:
    """The users that a server can run as here: for one that is root, what makes it another."""
    if os.geteuid() != 0:
        return {"user": None}
    return {"root": None, "user": functools.partial(become_nobody, folder)}


async def deploy(http: Http, project: int, archive: bytes = b"") -> None:
    archive = archive or packed.folder(shop__spiders=SPIDERS)
    answer = await http.post(f"/api/projects/{project}/versions?version=1.0", archive)
    assert answer.status == 201, answer.text

    async def checked() -> Any:
        shown = (await http.get(f"/api/projects/{project}/versions/1.0")).json
        return shown if shown["state"] != "uploaded" else None

    shown = await eventually_async(checked, what="the check")
    assert shown["state"] == "ready", shown["message"]


async def crawled(http: Http, project: int, spider: str, **arguments: str) -> list[dict[str, Any]]:
    platform = Platform(http, project)
    job = await platform.run(spider, **arguments)
    assert await platform.reason(job) == "finished", await platform.log(job)
    return await platform.records("items", job)


@pytest.mark.long
@pytest.mark.parametrize("user", ["root", "user"])
async def test_deployed_code_reads_nothing_that_is_not_its_own(
    tmp_path: Path, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys, other processes, other projects, the database; and a friendly project does its work meanwhile."""
    before = starts(tmp_path)
    if user not in before:
        user = "user"
    monkeypatch.setenv("ATTRIBUTES_API_KEY", "key-of-a-model")
    if before[user] is not None:
        os.chown(tmp_path, NOBODY, NOBODY)
        monkeypatch.setenv("HOME", str(tmp_path))
    options = [
        "--job-deny",
        "127.66.0.0/16",
        "--units",
        "2",
        "--unit-memory",
        "300",
        "--proxy",
        "FR:datacenter=http://u:proxy-password@127.0.0.1:1",
    ]
    with RunningServer(tmp_path / "data", options=options, before=before[user]) as server:
        async with Http(server.url, server.platform_key) as http:
            await deploy(http, 6)
            (friendly,) = await crawled(http, 6, "friendly")
            await deploy(http, 5)
            items = await crawled(http, 5, "hostile")
        assert "Deployed code" not in server.log()
    assert (friendly["status"], friendly["said"], bool(friendly["names"])) == (200, "True", True)
    (written,) = (tmp_path / "data" / "environments").glob(f"6-*/{WORK}/out.json")
    assert "200" in written.read_text()
    assert [item["when"] for item in items] == ["check", "run"]
    if user == "root":
        assert items[1]["shared memory"] == str(300 * 2**20)
    for item in items:
        shown = str(item)
        for secret in (
            *(server.platform_key, server.extract_key, "key-of-a-model", "proxy-password"),
            *("secret of another project", "SQLite format"),
        ):
            assert secret not in shown
        family = {name.split()[0] for name in item if name.endswith(" environ") and "refused" not in item[name]}
        assert str(server.process.pid) not in family
        assert item.get(f"{server.process.pid} kill", "refused").startswith("refused")
        for name in ("ptrace", "process_vm_readv", "write", "denied address", "denied datagram", "open /etc/shadow"):
            assert item[name].startswith("refused"), (name, item[name])
        for name in (f"list {tmp_path}/data", f"list {tmp_path}/data/environments", "list /root", f"list {REPOSITORY}"):
            assert item[name].startswith("refused"), (name, item[name])
        assert "CapEff:\t0000000000000000" in item["status"]
        number = FIRST_USER + 5 if user == "root" else os.geteuid() or NOBODY
        assert item["user"] == f"{number} []" or user == "user"


#: Opens a path below a folder of root's, as a server does whose files are for itself alone, and reads it as nobody.
OPENED = """
import os, sys
from scrapy_ext.jobprocess.confinement import view
os.umask(0o077)
view.open_paths([sys.argv[1]], 65534, 65534)
assert os.umask(0o077) == 0o077
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
print(os.listdir(sys.argv[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_view_can_be_passed_whatever_the_umask_of_the_server(tmp_path: Path) -> None:
    needed = tmp_path / "home" / "cache" / "needed"
    needed.mkdir(parents=True)
    (needed / "a-file").touch()
    (tmp_path / "home").chmod(0o700)
    ended = subprocess.run(
        [sys.executable, "-c", OPENED, str(needed)], capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert (ended.stdout.strip(), ended.stderr) == ("['a-file']", "")


SETUP = """
import os, socket
from pathlib import Path
leaks = []
for process in os.listdir("/proc"):
    try:
        if process.isdigit() and b"password" in Path("/proc", process, "environ").read_bytes():
            leaks.append(process)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=5)
    leaks.append("database")
except OSError:
    pass
if leaks:
    raise SystemExit(f"leaked: {leaks}")
"""


@pytest.mark.full
async def test_setup_code_and_jobs_reach_neither_the_database_nor_files_of_other_projects(
    tmp_path: Path, own_cluster: Cluster
) -> None:
    database, port = own_cluster.database(), own_cluster.port
    places: dict[str, Any] = {
        "sockets": [str(own_cluster.socket)],
        "addresses": [("127.0.0.1", port), ("localhost", port), ("127.0.0.2", port), ("0.0.0.0", port)],
    }
    options = ["--environments", str(tmp_path / "environments")]
    with RunningServer(tmp_path / "data", database=database, options=options) as server:
        async with Http(server.url, server.platform_key) as http:
            await deploy(http, 6)
            await crawled(http, 6, "friendly")
            (secret,) = (tmp_path / "environments").glob(f"6-*/{WORK}/secret.txt")
            assert secret.read_text() == "secret of another project"
            places["files"] = [str(secret)]
            await deploy(http, 5, packed.sdist(SETUP.replace("PORT", str(port)), shop__spiders=SPIDERS))
            (found,) = await crawled(http, 5, "digger", places=json.dumps(places))
    assert len(found) == 6
    assert all(value.startswith("refused") for value in found.values()), found


def test_a_server_shows_its_keys_in_neither_command_line_nor_environment(tmp_path: Path) -> None:
    given = ["--extract-key", "key-on-the-line", "--proxy", "FR:datacenter=http://u:proxy-password@127.0.0.1:1"]
    with RunningServer(tmp_path / "data", options=["--no-runner", *given]) as server:
        process = Path("/proc", str(server.process.pid))
        shown = (process / "cmdline").read_text() + (process / "environ").read_text()
    for secret in ("key-on-the-line", "proxy-password", server.platform_key, server.extract_key):
        assert secret not in shown


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("169.254.169.254", 80, False),
        ("::ffff:169.254.169.254", 80, False),
        ("64:ff9b::a9fe:a9fe", 80, False),
        ("fe80::1", 80, False),
        ("fd00:ec2::254", 80, False),
        ("168.63.129.16", 80, False),
        ("168.63.129.16", 53, True),
        ("93.184.216.34", 80, True),
        ("127.0.0.1", 8080, True),
        ("127.0.0.1", 5432, False),
        ("0.0.0.0", 5432, False),
        ("127.9.9.9", 5432, False),
        ("::1", 5432, False),
        ("::", 5432, False),
        ("93.184.216.34", 5432, True),
    ],
)
def test_addresses_that_deployed_code_may_reach(host: str, port: int, allowed: bool) -> None:
    assert Rules(METADATA, [5432]).allow(host, port) is allowed


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("postgresql://u:p@127.0.0.1:6000/d", 6000),
        ("postgresql://u@localhost/d", 5432),
        ("postgresql:///d?host=/run/postgresql&port=6001", 6001),
        ("postgresql://u@[::1]:6002/d", 6002),
        ("postgresql://u@%2Frun%2Fpostgresql:6003/d", 6003),
    ],
)
async def test_the_database_of_the_server_is_denied(url: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPORT", raising=False)
    confinement = await Confining(Policy(database=DatabaseUrl(url))).of(1, [], [])
    assert not Rules(confinement.denied, confinement.denied_ports).allow("127.0.0.1", port)


def test_the_defences_of_this_system_are_found() -> None:
    assert {"landlock", "connections"} <= set(probe().defences)


@pytest.mark.parametrize(("program", "status"), [("/bin/true", 0), ("/bin/false", 1), ("/nothing/there", 126)])
async def test_work_that_ends_at_once_has_its_exit_status(tmp_path: Path, program: str, status: int) -> None:
    confinement = await Confining().of(1, [], [])
    ended = await run(confined([program], confinement), seconds=60)
    assert ended.status == status


@pytest.mark.long
async def test_a_temporary_folder_is_removed_however_deep_the_work_has_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tmp_path.chmod(0o755)
    code = "import os; os.chdir(os.environ['TMPDIR']); [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"
    confinement = await Confining().of(1, [], [])
    command = [sys.executable, "-I", "-S", "-c", f"{code}; print('made')"]
    ended = await run(confined(command, confinement), seconds=60)
    assert (ended.status, ended.output) == (0, "made")
    assert os.listdir(tmp_path) == []


async def test_deployed_code_moves_its_files_between_its_folders_as_anywhere() -> None:
    """Builders of wheels do, without a way for systems that refuse it."""
    code = "import os; os.chdir(os.environ['TMPDIR']); os.makedirs('a/b'); open('a/b/c', 'x'); os.rename('a/b/c', 'd')"
    confinement = await Confining().of(1, [], [])
    command = [sys.executable, "-I", "-S", "-c", f"{code}; os.link('d', 'a/e'); print(os.listdir('a'))"]
    ended = await run(confined(command, confinement), seconds=60)
    assert (ended.status, ended.output) in [(0, "['b', 'e']"), (0, "['e', 'b']")]


FILL = """
import errno, os, sys
written = 0
try:
    with open("/dev/shm/file", "wb", buffering=0) as file:
        while written < 2**25:
            written += file.write(b"x" * 2**20)
except OSError as error:
    print(errno.errorcode[error.errno], end=" ")
print(written, flush=True)
open(sys.argv[1]).read()
"""


async def test_shared_memory_of_a_project_with_a_user_of_its_own_is_bounded_and_counted(tmp_path: Path) -> None:
    """By the system, and until it ends by whoever looks at its processes."""
    confinement = await Confining().of(1, [], [tmp_path], 2**23)
    counted: list[int] = []
    tmp_path.chmod(0o755)
    os.mkfifo(tmp_path / "counted")
    (tmp_path / "counted").chmod(0o666)

    def count(line: str) -> None:
        processes = table()
        counted.append(shared_memory([each.pid for each in below([os.getpid()], processes)[os.getpid()][1:]]))
        (tmp_path / "counted").write_text("")

    command = [sys.executable, "-I", "-S", "-c", FILL, str(tmp_path / "counted")]
    ended = await run(confined(command, confinement), seconds=60, on_line=count)
    if confinement.user is None:
        assert ended.output == str(2**25)
    else:
        assert ended.output == f"ENOSPC {2**23}"
        assert counted[0] >= 2**23


CALL = """
import ctypes, errno, json, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
answers = []
for number, *arguments in json.loads(sys.argv[1]):
    result = libc.syscall(number, *map(ctypes.c_long, arguments))
    answers.append(errno.errorcode[ctypes.get_errno()] if result == -1 else "allowed")
thread = threading.Thread(target=lambda: answers.append("thread"))
thread.start()
thread.join()
answers.append(subprocess.run(["/bin/echo", "process"], capture_output=True, text=True).stdout.strip())
print(*answers)
"""
NEW_USER = 0x10000000


async def test_deployed_code_makes_no_user_namespaces_and_no_memory_that_outlives_it() -> None:
    unshare, clone = number_of("unshare"), number_of("clone")
    kept = [number_of(name) for name in ("shmget", "semget", "msgget", "mq_open")]
    calls = [
        *([unshare, NEW_USER], [unshare, NEW_USER | 0x20000], [clone, NEW_USER | signal.SIGCHLD, 0]),
        *([435, 0, 0], [467, -100, 0, 0, 0, 0]),
        *([number, 0, 2**20, 0o1600] for number in kept),
    ]
    command = [sys.executable, "-I", "-S", "-c", CALL, json.dumps(calls)]
    confinement = await Confining().of(1, [], [])
    ended = await run(confined(command, confinement), seconds=60)
    refused = ["EPERM"] * 3 + ["ENOSYS", "EPERM"] + ["ENOSYS"] * len(kept)
    assert ended.output.split() == [*refused, "thread", "process"]
