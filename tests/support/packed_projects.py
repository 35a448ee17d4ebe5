"""Projects to deploy, made by the tests."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

SPIDER = '''
import scrapy


class Books(scrapy.Spider):
    """Books of the shop.

    All of them.
    """

    name = "books"

    def __init__(self, category, page: int = 1, **kwargs):
        super().__init__(**kwargs)


class News(scrapy.Spider):
    name = "news"

    def __init__(self, name=None, since: "str | None" = None):
        super().__init__(name)
'''
SETTINGS = 'SPIDER_MODULES = ["shop.spiders"]\n'
SCRAPY_CFG = "[settings]\ndefault = shop.settings\n[deploy]\nusername = secret\n"
FILES: Mapping[str, str] = {
    "scrapy.cfg": SCRAPY_CFG,
    "shop/__init__.py": "",
    "shop/settings.py": SETTINGS,
    "shop/spiders.py": SPIDER,
}


def folder(**changes: str | None) -> bytes:
    """A folder as .tar.gz; ``changes`` by path with __ for a slash and without .py, None removes one."""
    return tar_of(files(**changes))


def files(**changes: str | None) -> dict[str, str]:
    """The files of the project."""
    made = dict(FILES)
    for name, text in changes.items():
        path = name.replace("__", "/") + ".py"
        if text is None:
            made.pop(path, None)
        else:
            made[path] = text
    return made


def tar_of(made: Mapping[str, str]) -> bytes:
    """These files as .tar.gz."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, text in made.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def zip_of(made: Mapping[str, str]) -> bytes:
    """These files as .zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in made.items():
            archive.writestr(path, text)
    return packed.getvalue()


def egg(**changes: str | None) -> bytes:
    """An egg with a script."""
    made = files(**changes)
    del made["scrapy.cfg"]
    made["EGG-INFO/PKG-INFO"] = "Metadata-Version: 1.0\nName: project\nVersion: 1.0\n"
    made["EGG-INFO/entry_points.txt"] = "[scrapy]\nsettings = shop.settings\n"
    made["EGG-INFO/scripts/clean.py"] = "print('clean')\n"
    return zip_of(made)


def wheel(name: str = "shop", needs: str = "", *, entry_point: bool = True, **changes: str | None) -> bytes:
    """A wheel of the project, or of another package with these files."""
    made = files(**changes)
    del made["scrapy.cfg"]
    return wheel_of(name, "1.0", made, needs, "[scrapy]\nsettings = shop.settings\n" if entry_point else "")


def wheel_of(name: str, version: str, made: Mapping[str, str], needs: str = "", entry_points: str = "") -> bytes:
    """A wheel of these files."""
    info = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    more = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points:
        more[f"{info}/entry_points.txt"] = entry_points
    everything = {**made, **more}
    record = "".join(f"{path},,\n" for path in everything)
    return zip_of({**everything, f"{info}/RECORD": record + f"{info}/RECORD,,\n"})


def sdist(setup: str, **changes: str | None) -> bytes:
    """A source distribution of the project whose ``setup.py`` begins with this code."""
    call = (
        "\nfrom setuptools import setup\nsetup(name='shop', version='1.0', packages=['shop'],"
        " entry_points={'scrapy': ['settings = shop.settings']})\n"
    )
    made = files(**changes)
    del made["scrapy.cfg"]
    info = "Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n"
    return tar_of(
        {f"shop-1.0/{path}": text for path, text in {**made, "setup.py": setup + call, "PKG-INFO": info}.items()}
    )


def says(python: str, code: str, at: Path) -> str:
    """Output of this code in Python, run in a folder."""
    done = subprocess.run([python, "-c", code], cwd=at, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.strip() + done.stderr


def this_python() -> str:
    return sys.executable
