"""Chromium's sandbox: on for a server that does not run as root, where the system allows it; the log says which."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Starts a browser as the server does; writes the arguments of the processes that show pages, and their namespaces.
START = """
import asyncio, logging, os, sys
from pathlib import Path
from scrapy_ext.jobprocess.proc import below, table
from scrapy_ext.server.extraction.browser.launcher import Launcher
from scrapy_ext.server.config.extraction_limits import ServiceLimits

async def main():
    logging.basicConfig(level=logging.INFO)
    launcher = Launcher(ServiceLimits(), None)
    browser = await launcher.launch(images=False)
    for process in below([os.getpid()], table())[os.getpid()][1:]:
        arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        if b"--type=zygote" in arguments:
            print("off" if b"--no-sandbox" in arguments else "on")
    await launcher.stop()

asyncio.run(main())
"""
#: Another user, who may read what root's programs are made of, as tests of a checkout of root's need.
AS_ANOTHER = (
    *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that the other user reaches without capabilities, which Chromium drops: pytest's folders are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.long
def test_the_log_says_whether_pages_are_shown_in_the_sandbox(home: Path) -> None:
    root = os.geteuid() == 0
    for user in [(), AS_ANOTHER] if root else [()]:
        done = subprocess.run(
            [*user, sys.executable, "-c", START],
            capture_output=True,
            text=True,
            timeout=200,
            check=True,
            env={**os.environ, "HOME": str(home), "TMPDIR": str(home)},
        )
        allowed = subprocess.run([*user, "unshare", "-U", "true"], capture_output=True, check=False).returncode == 0
        wanted = allowed and (bool(user) or not root)
        assert set(done.stdout.split()) == {"on" if wanted else "off"}
        assert f", {'with' if wanted else 'without'} its sandbox" in done.stderr
