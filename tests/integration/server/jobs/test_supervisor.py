"""The supervisor of processes that are not trusted: it ends all of them, whatever they start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from scrapy_ext.jobprocess import supervisor
from scrapy_ext.jobprocess.child import run
from scrapy_ext.jobprocess.confinement import Confinement
from scrapy_ext.jobprocess.confinement.applying import MAX_PROCESSES, SIGNALS
from scrapy_ext.server.jobs.confining import Confining
from tests.support.eventually import TIMEOUT
from tests.support.running_jobs import confined

#: Processes that start another and end, in sessions of their own, for longer than any test takes.
STORM = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("there", flush=True)
end = time.monotonic() + 600
for _ in range(8):
    if os.fork() == 0:
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
            os.setsid()
time.sleep(600)
"""
#: A supervisor that always has somebody to wait for, and a second to kill what it has.
ENDLESS = f"""
import os, sys
sys.path.append({supervisor._ROOT!r})
from scrapy_ext.jobprocess import supervisor
os.waitpid = lambda pid, flags: (2**22, 0)
supervisor._PATIENCE = 1
supervisor.main()
"""


#: A supervisor to whom every socket seems not to block, as one does that is changed after it was looked at.
DECEIVED = f"""
import fcntl, os, sys
sys.path.append({supervisor._ROOT!r})
from scrapy_ext.jobprocess import supervisor
known = fcntl.fcntl
fcntl.fcntl = lambda descriptor, what, *more: known(descriptor, what, *more) | os.O_NONBLOCK
supervisor.main()
"""
CONNECT = """
import errno, socket
try:
    socket.socket().connect(("127.0.0.1", {port}))
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
import time; time.sleep(600)
"""


@contextlib.contextmanager
def supervised(
    command: Sequence[str], code: str, confinement: Confinement | None
) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO]]:
    """A supervisor that runs this Python code; and a file that ends when no process of the code is left."""
    left, held = os.pipe()
    fields = None if confinement is None else confinement._asdict()
    program = [sys.executable, "-I", "-S", "-c", code]
    task = supervisor.SupervisedProgram(os.getpid(), program, "/", {}, keep=[held], confinement=fields)
    process = subprocess.Popen(
        command,
        env=supervisor.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=supervisor.descriptors(task),
    )
    os.close(held)
    assert process.stdin is not None
    process.stdin.write(supervisor.line_of(task))
    process.stdin.flush()
    with process, open(left, "rb") as nobody:
        try:
            yield process, nobody
        finally:
            process.kill()


@pytest.mark.parametrize("defence", ["unconfined", "confined", "without enclosed signals"])
@pytest.mark.long(keep=1)
async def test_all_end_with_their_node_although_they_start_others_all_the_time(defence: str) -> None:
    confinement = None if defence == "unconfined" else await Confining().of(1, [], [])
    if confinement is not None and defence != "confined":
        kept = [name for name in confinement.defences if name != SIGNALS]
        confinement = confinement._replace(defences=kept)
    with supervised(supervisor.command(), STORM, confinement) as (process, nobody):
        assert process.stdin is not None
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"there\n"
        process.stdin.close()
        await asyncio.to_thread(process.wait, TIMEOUT)
        assert await asyncio.to_thread(nobody.read) == b""


def test_the_supervisor_of_a_job_of_the_projects_own_code_loads_little() -> None:
    """Each job has one for as long as it runs, and these modules take a fifth of its memory."""
    code = f"import sys; sys.path.append({supervisor._ROOT!r}); import scrapy_ext.jobprocess.supervisor; "
    code += "print({'tempfile', 'shutil', 'pathlib', 'platform', 'msgspec'} & set(sys.modules) or '')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, timeout=300, check=True)
    assert done.stdout.strip() == b""


@pytest.mark.long
def test_a_supervisor_ends_with_its_node_however_many_processes_end() -> None:
    command = [sys.executable, "-I", "-S", "-c", ENDLESS]
    with supervised(command, "import time; time.sleep(600)", None) as (process, nobody):
        assert process.stdin is not None
        process.stdin.close()
        process.wait(TIMEOUT)
        assert nobody.read() == b""


async def test_a_supervisor_waits_for_no_connection_however_its_socket_is_changed_meanwhile() -> None:
    confinement = await Confining().of(1, [], [])
    command = [sys.executable, "-I", "-S", "-c", DECEIVED]
    with contextlib.ExitStack() as stack:
        listener, *others = (stack.enter_context(socket.socket()) for _ in range(5))
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for other in others:  # until nobody is answered any more
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
        code = CONNECT.format(port=listener.getsockname()[1])
        process, nobody = stack.enter_context(supervised(command, code, confinement))
        assert process.stdin is not None
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"EINPROGRESS\n"
        process.stdin.close()
        await asyncio.to_thread(process.wait, TIMEOUT)
        assert await asyncio.to_thread(nobody.read) == b""


async def test_users_of_projects_have_a_bounded_number_of_processes(tmp_path: Path) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[0])"
    command = [sys.executable, "-I", "-S", "-c", code]
    confinement = await Confining().of(1, [], [])
    ended = await run(confined(command, confinement), seconds=60)
    bare = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert ended.output == (bare if confinement.user is None else str(MAX_PROCESSES))
