"""The documentation for language models is made of the pages, in their order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXTENSIONS = Path(__file__).resolve().parents[3] / "docs" / "_ext"
PAGES = {
    "conf.py": f"""
import sys
sys.path.insert(0, {str(EXTENSIONS)!r})
extensions = ["llms"]
project = "Lamps"
release = "1.2"
""",
    "index.rst": """
=====
Lamps
=====

Lamps *give* light.

They do so in two ways:

* one

.. toctree::

   howto/index
   reference
""",
    "howto/index.rst": """
=============
How-to guides
=============

.. toctree::
   :caption: Begin

   second
   first
""",
    "howto/first.rst": """
=====
First
=====

The examples use the lamp of :doc:`second`. Light it. A long sentence follows: """
    + "word " * 80
    + """.

Matches
=======

.. code-block:: console

   $ light --all
""",
    "howto/second.rst": """
======
Second
======

Wicks
=====

Text.

Oil
===

.. list-table::

   * - whale
     - train
""",
    "reference.rst": """
=========
Reference
=========

All that there is.
""",
}


def build(folder: Path, *options: str) -> Path:
    for name, text in PAGES.items():
        page = folder / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text.lstrip("\n"))
    out = folder / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", *options, str(folder / "docs"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def test_the_index_lists_each_page_with_its_first_sentences(tmp_path: Path) -> None:
    out = build(tmp_path)
    assert (out / "llms.txt").read_text() == (
        "# Lamps 1.2\n\n> Lamps give light.\n\n"
        "The text of all pages is in [llms-full.txt](llms-full.txt).\n\n"
        "## How-to guides\n\n- [How-to guides](howto/index.html)\n\n### Begin\n\n"
        "- [Second](howto/second.html): Wicks; Oil\n"
        "- [First](howto/first.html): Light it.\n\n"
        "## Reference\n\n- [Reference](reference.html): All that there is.\n"
    )


def test_the_whole_text_is_in_one_file_with_absolute_addresses_where_they_are_known(tmp_path: Path) -> None:
    out = build(tmp_path, "-D", "html_baseurl=https://lamps.example/docs/")
    text = (out / "llms-full.txt").read_text()
    places = [text.index(f"# {title}\n\nPage: https://lamps.example/docs/") for title in ("Lamps", "Second", "First")]
    assert places == sorted(places)
    for words in (
        "Lamps *give* light.",
        "light --all",
        "whale",
        "The examples use the lamp of Second.",
        "All that there is.",
    ):
        assert text.count(words) == 1, words
    assert "](https://lamps.example/docs/howto/second.html)" in (out / "llms.txt").read_text()
