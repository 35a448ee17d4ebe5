"""A Scrapy project for jobs of tests, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

_SPIDERS = '''
import asyncio
import os
import time

import scrapy


class Quick(scrapy.Spider):
    """Yields ``n`` items and ends."""

    name = "quick"
    start_urls = ["data:,page"]

    def __init__(self, n="3", **arguments):
        super().__init__(**arguments)
        self.n = int(n)

    def parse(self, response):
        print("answer", self.settings.get("ANSWER"))
        for number in range(self.n):
            yield {"number": number}


class Endless(scrapy.Spider):
    """Goes on until it is stopped."""

    name = "endless"
    start_urls = ["data:,0"]
    custom_settings = {"DOWNLOAD_DELAY": 0.05}

    def parse(self, response):
        number = int(response.text)
        yield {"number": number}
        yield scrapy.Request(f"data:,{number + 1}")


class Spread(scrapy.Spider):
    """Yields the item of each of ``n`` pages, which any worker of its job may have; waits at the last half
    for the file ``gate``, if it is given; with ``held`` at the first one, before its links are followed."""

    name = "spread"
    gate = held = None
    custom_settings = {"DOWNLOAD_DELAY": 0.02, "FRONTIER_POLL_INTERVAL": 0.2}

    async def start(self):
        yield self.page(0)

    def page(self, number):
        return scrapy.Request(f"data:,{number}", meta={"frontier_slot": str(number % 16)})

    async def parse(self, response):
        number, last = int(response.text), int(self.n)
        while self.held and number == 0 and not os.path.exists(self.gate):
            await asyncio.sleep(0.05)
        yield {"number": number, "process": os.getpid()}
        for child in (2 * number + 1, 2 * number + 2):
            if child < last:
                yield self.page(child)
        while number >= last // 2 and self.gate and not os.path.exists(self.gate):
            await asyncio.sleep(0.05)
'''
_BROKEN_SPIDERS = '''
import scrapy


class Raises(scrapy.Spider):
    name = "raises"

    def __init__(self, **arguments):
        raise RuntimeError("the spider's own trouble")


class Needs(scrapy.Spider):
    name = "needs"

    def __init__(self, category, **arguments):
        super().__init__(**arguments)


class Loud(scrapy.Spider):
    """Writes to every stream there is, without an end of line, and much."""

    name = "loud"
    start_urls = ["data:,page"]

    def parse(self, response):
        import os
        import sys

        print("an error of the spider", file=sys.stderr)
        self.logger.warning("a warning of the spider")
        for _ in range(int(self.megabytes)):
            sys.stdout.write("x" * 2**20)
            os.write(1, b"\\xff" * 2**20)
        print("\\nthe end", end="")


class Stubborn(scrapy.Spider):
    """Does not end when it is asked to."""

    name = "stubborn"
    start_urls = ["data:,page"]

    async def parse(self, response):
        import asyncio
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.logger.info("deaf now")
        await asyncio.sleep(600)
'''
_SCRIPTS = {
    "hello.py": """
import os
import sys
import time

print("to the log", sys.argv[1:], os.environ["COLOUR"])
print("an error", file=sys.stderr)
sys.stdout.buffer.write(b"\\xff\\x00 binary")
sys.stdout.flush()
print()
while os.path.exists(sys.argv[1]):
    time.sleep(0.05)
print("done")
""",
    "scripts/memory.py": """
import subprocess
import sys
import time

if "child" in sys.argv:
    held = bytearray(int(sys.argv[1]) * 2**20)
    time.sleep(600)
subprocess.run([sys.executable, __file__, sys.argv[1], "child"])
""",
    "scripts/shared.py": """
import os
import sys
import time

held = os.memfd_create("held")
for _ in range(int(sys.argv[1])):
    os.write(held, b"x" * 2**20)
time.sleep(600)
""",
    "bin/family.py": """
import os
import sys
import time

for daemon in (False, True):
    if os.fork() == 0:
        if daemon:
            os.setsid()
            if os.fork():
                os._exit(0)
        with open(os.path.join(sys.argv[1], "daemon" if daemon else "child"), "w") as file:
            file.write(str(os.getpid()))
        time.sleep(600)
while sum(entry.stat().st_size > 0 for entry in os.scandir(sys.argv[1])) < 2:
    time.sleep(0.02)
print("all are born")
if sys.argv[2] == "stay":
    time.sleep(600)
if sys.argv[2] == "crash":
    os.kill(os.getpid(), 11)
sys.exit(3 if sys.argv[2] == "fail" else 0)
""",
    "flood.py": """
import sys

for number in range(int(sys.argv[1])):
    sys.stdout.write("%07d " % number + "x" * 2**20)
print("\\nthe end of the flood")
""",
    "client.py": """
import json
import os
import urllib.request

names = ("PLATFORM_JOB", "SHUB_JOBKEY", "PLATFORM_PROJECT", "PLATFORM_URL", "SHUB_STORAGE", "EXTRACT_API_URL")
print(json.dumps({name: os.environ[name] for name in names}))
print(sorted(name for name in os.environ if name.startswith(("SERVER_", "PG"))))
print(os.environ["PLATFORM_API_KEY"] == os.environ["SH_APIKEY"], os.getcwd())
""",
    "wait.py": """
import time

time.sleep(600)
""",
}
_SETTINGS = 'BOT_NAME = "tests"\nSPIDER_MODULES = ["shop.spiders", "shop.broken_spiders"]\n'


def write_project(folder: Path) -> Path:
    """Write a project into a folder, and return that."""
    package = folder / "shop"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(_SETTINGS)
    (package / "spiders.py").write_text(_SPIDERS)
    (package / "broken_spiders.py").write_text(_BROKEN_SPIDERS)
    for name, text in _SCRIPTS.items():
        script = folder / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text)
    return folder
