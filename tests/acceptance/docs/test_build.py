"""The documentation builds without a warning, with a network and without one."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

DOCS = Path(__file__).resolve().parents[3] / "docs"
#: Port 9 is "discard": nobody listens there.
NOWHERE = "http://127.0.0.1:9/"
INVENTORY = (
    b"# Sphinx inventory version 2\n# Project: Scrapy\n# Version: 2\n# The remainder is compressed using zlib.\n"
)


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def other_documentation(tmp_path: Path) -> Iterator[str]:
    """The address of a documentation that describes one setting of Scrapy."""
    folder = tmp_path / "scrapy"
    folder.mkdir()
    entry = b"DOWNLOAD_DELAY std:setting 1 topics/settings.html#download-delay -\n"
    (folder / "objects.inv").write_bytes(INVENTORY + zlib.compress(entry))
    handler = functools.partial(_QuietHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


#: Sphinx leaves traces in its process, so that each build has one of its own.
BUILD = """
import sys
from sphinx.application import Sphinx

docs, out, scrapy = sys.argv[1:]
mapping = {"intersphinx_mapping": {"scrapy": (scrapy, None)}}
app = Sphinx(docs, docs, out, out + "/../doctrees", "html", mapping, status=None, warningiserror=True)
app.build()
sys.exit(app.statuscode)
"""


def build(tmp_path: Path, scrapy: str) -> tuple[str, str]:
    """Build, taking a warning for an error; the page about existing projects, and what was said."""
    out = tmp_path / "html"
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(DOCS), str(out), scrapy], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return (out / "howto" / "existing-project.html").read_text("utf-8"), done.stderr


def test_the_documentation_builds_without_a_network(tmp_path: Path) -> None:
    page, said = build(tmp_path, NOWHERE)
    assert "DOWNLOAD_DELAY" in page
    check_for_models(tmp_path / "html")
    assert said == f"No links into the documentation of scrapy: {NOWHERE} cannot be reached.\n"


def check_for_models(out: Path) -> None:
    """The index for language models has every page, with what it is about, and the whole text has each once."""
    index, text = (out / "llms.txt").read_text("utf-8"), (out / "llms-full.txt").read_text("utf-8")
    listed = re.findall(r"^- \[(.+)\]\((.+)\): .{10,300}$", index, re.MULTILINE)
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.rst")}
    assert len(listed) == len({address for _, address in listed})
    # The pages of sections are lists themselves.
    assert {address for _, address in listed} >= {page for page in pages if not page.endswith("index.html")}
    for title, address in listed:
        assert text.count(f"# {title}\n\nPage: {address}\n") == 1, title


@pytest.mark.full
def test_settings_of_scrapy_are_links_where_its_documentation_can_be_reached(
    tmp_path: Path, other_documentation: str
) -> None:
    page, said = build(tmp_path, other_documentation)
    assert f'href="{other_documentation}topics/settings.html#download-delay"' in page
    assert said == ""
