"""The examples of README.md and docs/ are run, so that none of them is wrong.

A mark stands before a code block: ``.. test: run`` in reStructuredText, ``<!-- test: run -->`` in Markdown. Each page
is a story of its own, in a folder of its own, and its blocks are taken in order:

``settings``     a part of a settings.py: it is read with the add-on, and no name of ours in it is unknown
``spider``       a module of spiders: it is imported, and put into the page's project
``value``        fields of an extraction request: they keep to its rules
``python``       run as a program
``environment``  ``export`` lines: each names a setting that is read from the environment
``file PATH``    written to PATH; ``file PATH from SOURCE`` copies a file of docs/, without a block
``append PATH``  added to PATH
``run``          a console: lines after ``$`` are run by one shell, in a terminal of 100 columns; what they print is the
                 rest, where ``...`` stands for anything
``start``        a console whose last command goes on in the background until the page ends

The ports 8610 and 8700 are replaced by free ones. Pages but the tutorial and those about running a server use one
server, and have a project with the shop of the tutorial.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ext.addon import Addon
from scrapy_ext.api.extraction import check
from scrapy_ext.settings import SETTINGS
from tests.support import pdfs
from tests.support.free_ports import held_port, number_of

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
SHOP = DOCS / "tutorial" / "shop_site.py"
#: Pages that begin with nothing.
FROM_NOTHING = (
    *("tutorial/index.rst", "howto/self-host.rst", "howto/operate.rst", "howto/existing-tools.rst"),
    *("howto/keys.rst", "howto/users.rst", "howto/webhooks.rst", "howto/retention.rst", "howto/bans.rst"),
    *("howto/agents.rst", "howto/monitors.rst", "howto/alerts.rst"),
)
#: Pages that show one.
WITH_BROWSER = ("tutorial/index.rst", "howto/browser.rst", "howto/sessions.rst", "howto/snapshots.rst")
#: Seconds for all commands of one example. Pages take three minutes beside six times the processes of an idle machine.
TIMEOUT = 400
REPORT = [
    *pdfs.lines(["The road in winter"], size=20),
    *pdfs.lines(["It is dark by four o'clock, and the paths are wet.", "Take the lantern with you."], top=120),
]
WITH_A_FILE = """
import runpy
from http.server import BaseHTTPRequestHandler
from pathlib import Path

folder = Path(__file__).parent
respond = BaseHTTPRequestHandler.parse_request


def parse_request(self):
    known = respond(self)
    if known and self.path == "/report.pdf":
        content = (folder / "report.pdf").read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "application/pdf")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return False
    return known


BaseHTTPRequestHandler.parse_request = parse_request
runpy.run_path(str(folder / "shop_site.py"), run_name="__main__")
"""

_MARK = re.compile(r"^(?:\.\. test: (?P<rst>.+)|<!-- test: (?P<md>.+) -->)$")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_OURS = re.compile(r"(EXTRACT_API|PLATFORM|FRONTIER|DUPEFILTER|SERVER)_[A-Z_]+")


@dataclass(frozen=True)
class Example:
    """A marked block."""

    page: str
    line: int
    kind: str
    argument: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples_of(path: Path) -> list[Example]:
    """The marked blocks of a page."""
    page = str(path.relative_to(DOCS if DOCS in path.parents else ROOT))
    lines = path.read_text("utf-8").splitlines()
    found = []
    for number, line in enumerate(lines):
        match = _MARK.match(line)
        if match:
            kind, _, argument = (match["rst"] or match["md"]).strip().partition(" ")
            block = "" if " from " in argument else (_rst if match["rst"] else _markdown)(lines[number + 1 :])
            found.append(Example(page, number + 1, kind, argument, block))
    return found


def _rst(lines: list[str]) -> str:
    body = []
    for line in lines[1:]:
        if line and not line.startswith(" "):
            break
        body.append(line)
    assert lines[0].startswith(".. code-block:: "), lines[0]
    text = textwrap.dedent("\n".join(body)).strip("\n").splitlines()
    while text and re.match(r":\w+:", text[0]):
        text.pop(0)
    return "\n".join(text).strip("\n") + "\n"


def _markdown(lines: list[str]) -> str:
    assert lines[0].startswith("```"), lines[0]
    return "\n".join(lines[1 : lines.index("```", 1)]) + "\n"


PAGES = {
    examples[0].page: examples
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.rst")))
    if (examples := examples_of(path))
}


# ── one page ──


class Story:
    """The folder, the shell and the background commands of a page."""

    def __init__(self, folder: Path, environment: dict[str, str], ports: dict[str, str]) -> None:
        self.folder = folder
        self.here = folder
        self._environment = environment
        self._ports = ports
        self._background: list[tuple[subprocess.Popen[bytes], int]] = []

    def text(self, example: Example) -> str:
        """The example, with free ports."""
        text = example.text
        for shown, free in self._ports.items():
            text = text.replace(shown, free)
        return text

    def write(self, name: str, text: str, *, append: bool = False) -> None:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if append else "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, example: Example) -> None:
        """Run the commands of a console in one shell, and compare what each prints."""
        commands = list(consoles(self.text(example)))
        # After each command the shell prints its exit status and the folder.
        process, terminal = self._started(
            "\n".join(f"{each}\nprintf '\\x01%s %s\\x01' $? \"$PWD\"" for each, _ in commands)
        )
        try:
            said, ended = read(terminal, TIMEOUT, lambda _text: False)
        finally:
            os.close(terminal)
        assert ended, f"{example} did not end:\n{said}"
        process.wait(TIMEOUT)
        pieces = said.split("\x01")
        assert len(pieces) == 2 * len(commands) + 1, f"{example}:\n{said}"
        for (command, expected), printed, ended_with in zip(commands, pieces[::2], pieces[1::2], strict=False):
            status, _, here = ended_with.partition(" ")
            assert status == "0", f"{example}: {command} ended with {status}:\n{printed}"
            assert_printed(example, command, expected, printed)
            self.here = Path(here)

    def start(self, example: Example) -> None:
        """Start the last command, after the exports before it; wait until it has printed what is shown."""
        *before, (command, expected) = consoles(self.text(example))
        for export, _ in before:
            self._export(export)
        process, terminal = self._started(command)
        self._background.append((process, terminal))
        # As root, the server warns before it says that it is ready.
        expected = f"...{expected}"
        said, _ = read(terminal, TIMEOUT, lambda text: matches(expected, text))
        assert_printed(example, command, expected, said)

    def export(self, example: Example) -> None:
        """Check the variables of an ``environment`` block, and set them."""
        for command, _ in consoles(self.text(example)):
            for name in self._export(command):
                assert SETTINGS[name].environment, f"{example}: {name} is not read from the environment"

    def _export(self, command: str) -> list[str]:
        pairs = [pair.partition("=")[::2] for pair in shlex.split(command.removeprefix("export "))]
        self._environment.update(pairs)
        return [name for name, _ in pairs]

    def python(self, example: Example) -> None:
        done = subprocess.run(
            [sys.executable, "-c", self.text(example)],
            cwd=self.here,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"{example}:\n{done.stderr}"

    def _started(self, script: str) -> tuple[subprocess.Popen[bytes], int]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.here,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        return process, ours

    def close(self) -> None:
        for process, _ in self._background:
            os.killpg(process.pid, signal.SIGTERM)
        for process, terminal in self._background:
            read(terminal, TIMEOUT, lambda _text: False)
            process.wait(TIMEOUT)
            os.close(terminal)


def consoles(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console, and what is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def read(terminal: int, seconds: float, enough) -> tuple[str, bool]:
    """Output of a terminal until it is enough or closed, and True if it was closed."""
    deadline, said = time.monotonic() + seconds, b""
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed.
            piece = b""
        if not piece:
            return plain(said), True
        said += piece
        if enough(plain(said)):
            return plain(said), False
    return plain(said), False


def plain(said: bytes) -> str:
    return _CONTROL.sub("", said.decode("utf-8", "replace"))


def matches(expected: str, said: str) -> bool:
    """Return True if an output is as shown: ``...`` stands for anything, also nothing; blanks are all alike."""
    said = " ".join(said.split())
    first, *others = (" ".join(piece.split()) for piece in expected.split("..."))
    if not others:
        return said == first
    *middle, last = others
    if not said.startswith(first):
        return False
    # The first place of each piece leaves the most for those behind it.
    place = len(first)
    for piece in middle:
        found = said.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return said.endswith(last) and len(said) - len(last) >= place


def assert_printed(example: Example, command: str, expected: str, said: str) -> None:
    # A table is ruled to its width, which follows its widest value.
    said, expected = (re.sub("─+", "─", text) for text in (said, expected))
    if not expected.strip():
        assert not said.strip(), f"{example}: {command} printed\n{said}"
    assert matches(expected, said), f"{example}: {command}\nshows\n{expected}\nbut prints\n{said}"


# ── blocks that need no story ──


def read_settings(example: Example) -> None:
    names: dict[str, object] = {}
    exec(compile(example.text, str(example), "exec"), names)
    unknown = [name for name in names if _OURS.fullmatch(name) and name not in SETTINGS]
    assert not unknown, f"{example}: there is no setting {', '.join(unknown)}"
    settings = Settings({name: value for name, value in names.items() if name.isupper()}, priority="project")
    Addon().update_settings(settings)
    for setting in SETTINGS.values():
        setting.read(settings)


def keep_to_the_rules(example: Example) -> None:
    fields = {"url": "https://shop.example/", **eval(example.text)}
    assert check(fields) == [], example


def import_spider(example: Example, folder: Path) -> None:
    path = folder / f"imported_{example.line}.py"
    path.write_text(example.text, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


# ── the tests ──


def clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}
    kept.pop("COLUMNS", None)
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "xterm"}


@pytest.fixture(scope="session")
def shop_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The tutorial's shop on a free port, which has a PDF as well."""
    held = held_port()
    port = str(number_of(held))
    folder = tmp_path_factory.mktemp("shop")
    (folder / "report.pdf").write_bytes(pdfs.pdf(REPORT))
    (folder / "shop_site.py").write_text(SHOP.read_text("utf-8").replace("8610", port), "utf-8")
    script = folder / "with_a_file.py"
    script.write_text(WITH_A_FILE, "utf-8")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield port
        process.terminate()
    held.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, shop_port: str) -> Iterator[dict[str, str]]:
    """The variables of a running server that may fetch the shop."""
    keys = {"EXTRACT_API_KEY": "an-extraction-key", "PLATFORM_API_KEY": "a-platform-key"}
    data = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "scrapy_ext.server", "--port", "0", "--data", str(data), "--exit-with-stdin"]
    with subprocess.Popen(
        [*command, "--allow-host", f"localhost:{shop_port}"],
        env=clean_environment() | keys,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("ready").strip()
        yield keys | {"EXTRACT_API_URL": f"{url}/v1", "PLATFORM_URL": url}
        process.stdin.close()


@pytest.fixture(scope="session")
def browser() -> None:
    """Fails, and says how to get one, where there is no browser."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "find_browser.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


PRODUCTS = next(each.text for each in PAGES["tutorial/index.rst"] if each.argument == "shop/spiders/products.py")
BLOCKED = """
import scrapy


class BlockedSpider(scrapy.Spider):
    name = "blocked"
    start_urls = ["http://localhost:8999/"]
"""


def make_project(folder: Path, shop_port: str) -> None:
    """A project as the tutorial has it at its end."""
    spiders = folder / "shop" / "spiders"
    spiders.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "settings.py").write_text(
        'BOT_NAME = "shop"\nSPIDER_MODULES = ["shop.spiders"]\nNEWSPIDER_MODULE = "shop.spiders"\n'
        'ADDONS = {"scrapy_ext.Addon": 500}\n'
        "TELNETCONSOLE_ENABLED = False\nROBOTSTXT_OBEY = False\nCONCURRENT_REQUESTS_PER_DOMAIN = 1\n"
    )
    (spiders / "__init__.py").write_text("")
    (spiders / "products.py").write_text(PRODUCTS.replace("8610", shop_port))
    (spiders / "blocked.py").write_text(BLOCKED)


def is_run(page: str) -> bool:
    """Return True if a page has commands or programs, which take long."""
    return any(example.kind in ("run", "start", "python") for example in PAGES[page])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.long) if is_run(page) else page for page in PAGES]
)
def test_what_a_page_shows_is_what_happens(
    page: str, tmp_path: Path, shop_port: str, request: pytest.FixtureRequest
) -> None:
    environment = clean_environment()
    held = [held_port() for _ in range(2)]
    shop, server = (str(number_of(each)) for each in held)
    ports = {"8610": shop if page in FROM_NOTHING else shop_port, "8700": server}
    if is_run(page) and page not in FROM_NOTHING:
        environment |= request.getfixturevalue("server")
        make_project(tmp_path, shop_port)
    if page in WITH_BROWSER:
        request.getfixturevalue("browser")
    with held[0], held[1], closing(Story(tmp_path, environment, ports)) as story:
        for example in PAGES[page]:
            run_example(story, example)


def run_example(story: Story, example: Example) -> None:
    """Do what an example's mark says."""
    match example.kind:
        case "settings":
            read_settings(example)
        case "value":
            keep_to_the_rules(example)
        case "spider":
            import_spider(example, story.folder)
            if (story.here / "shop" / "spiders").is_dir():
                story.write(f"shop/spiders/page_{example.line}.py", story.text(example))
        case "python":
            story.python(example)
        case "environment":
            story.export(example)
        case "file" if " from " in example.argument:
            name, _, source = example.argument.partition(" from ")
            text = Example(example.page, example.line, "file", name, (DOCS / source).read_text("utf-8"))
            story.write(name, story.text(text))
        case "file":
            story.write(example.argument, story.text(example))
        case "append":
            story.write(example.argument, story.text(example), append=True)
        case "run":
            story.run(example)
        case "start":
            story.start(example)
        case other:
            raise AssertionError(f"{example}: there is no mark {other!r}")
