"""The Scrapy project of the soak: its spiders, and a script."""

from __future__ import annotations

from pathlib import Path

from tests.support.crash.maze import SETTINGS, SPIDER

_PULSE = '''
"""A thread that writes every moment that this process works, so that two processes of a job would show."""

import os
import threading
import time


def begin(folder):
    job = os.environ["PLATFORM_JOB"].replace("/", "-")
    file = os.open(os.path.join(folder, job), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def beat():
        while True:
            os.write(file, f"{os.getpid()} {time.monotonic()}\\n".encode())
            time.sleep(0.1)

    threading.Thread(target=beat, daemon=True).start()
'''
_TREE_SPIDERS = '''
import scrapy

from project import pulse


class PulsedMaze(MazeSpider):
    """The maze; ``pulses`` is the folder where it shows that it works."""

    name = "maze"

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        pulse.begin(self.pulses)


class Shared(PulsedMaze):
    """The maze with several workers."""

    name = "shared"


class Grouped(PulsedMaze):
    """The maze, a job of several workers."""

    name = "grouped"


class Tree(scrapy.Spider):
    """The pages of a tree on ``host``, those of ``crawl``."""

    name = "tree"

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        pulse.begin(self.pulses)

    async def start(self):
        yield scrapy.Request(f"http://{self.host}/tree/{self.crawl}/0")

    def parse(self, response):
        yield {"text": response.css("h1::text").get()}
        for link in response.css("a"):
            yield response.follow(link)


class Routed(Tree):
    """By the extraction service."""

    name = "routed"
    custom_settings = {"EXTRACT_API_ENABLED": True}


class Plain(Tree):
    """Without the frontier: what was begun is begun anew where it is run again."""

    name = "plain"
    custom_settings = {"FRONTIER_ENABLED": False}


class Tick(scrapy.Spider):
    """Run periodically: yields ``n`` items."""

    name = "tick"
    start_urls = ["data:,tick"]

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        pulse.begin(self.pulses)

    def parse(self, response):
        for number in range(int(self.n)):
            yield {"text": str(number)}
'''
_SCRIPT = """
import sys
import time

from project import pulse

pulse.begin(sys.argv[1])
for number in range(int(sys.argv[2])):
    print("line", number)
    time.sleep(0.2)
"""
_MORE_SETTINGS = """
ADDONS = {"scrapy_ext.Addon": 500}
TELNETCONSOLE_ENABLED = False
PLATFORM_RETRY_TIME = 1800
FRONTIER_LEASE_TIME = 8
"""


def write_project(folder: Path) -> Path:
    """Write the project into a folder, and return that."""
    package = folder / "project"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = project.settings\n")
    (package / "__init__.py").touch()
    named = 'BOT_NAME = "soak"\nSPIDER_MODULES = ["project.spiders"]\n'
    (package / "settings.py").write_text(named + SETTINGS + _MORE_SETTINGS)
    (package / "pulse.py").write_text(_PULSE)
    # The maze's own class has no name of a spider: the one with a pulse has it.
    maze = SPIDER.replace('    name = "maze"\n', "")
    (package / "spiders.py").write_text(maze + _TREE_SPIDERS)
    (folder / "report.py").write_text(_SCRIPT)
    return folder
