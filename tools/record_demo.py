"""Recording of the picture of ``make demo``: runs the demonstration in an empty folder and draws its output.

    .venv/bin/python tools/record_demo.py

writes docs/_static/demo.svg. The picture loads nothing from elsewhere.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "_static" / "demo.svg"
COLUMNS = 104

TEMPLATE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 16px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def demonstration() -> str:
    """Return the output of the demonstration, with colours, from an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "example_project",
            Path(folder) / "example_project",
            ignore=shutil.ignore_patterns(".scrapy", "__pycache__"),
        )
        # The commands that the demonstration prints expect it where `make` creates it.
        (Path(folder) / ".venv").symlink_to(sys.prefix)
        environment = {
            **os.environ,
            # Colours, but no spinners, which would be drawn one below the other.
            "TTY_COMPATIBLE": "1",
            "TTY_INTERACTIVE": "0",
            "COLUMNS": str(COLUMNS),
            "PATH": f"{folder}/.venv/bin:{os.environ['PATH']}",
            "PWD": folder,
        }
        done = subprocess.run(
            [f"{folder}/.venv/bin/python", "-m", "example_project.demo"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.replace(os.path.realpath(folder) + os.sep, "").replace(folder + os.sep, "")


def main() -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ make demo", style="bold"))
    console.print(Text.from_ansi(demonstration()))
    svg = console.export_svg(title="make demo", code_format=TEMPLATE, unique_id="demo")
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", "utf-8")
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
