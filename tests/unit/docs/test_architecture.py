"""The pages on the architecture name modules, folders and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.docs_tables import DOCS

ROOT = DOCS.parent
PAGES = sorted((DOCS / "architecture").glob("*.rst"))
#: Where the names of the pages begin: most of them below the package or one of its parts.
_BEGINNINGS = ("", "scrapy_ext", "scrapy_ext/server", "scrapy_ext/server/store", "scrapy_ext/server/extraction")
_NAME = re.compile(r"``([a-z_]+(?:/[a-z_.]+)+)/?``")
#: Names with a slash that are none of files.
_OTHERS = {"text/plain"}


def exists(name: str) -> bool:
    paths = [ROOT / beginning / name for beginning in _BEGINNINGS]
    return any(path.exists() or path.with_name(f"{path.name}.py").is_file() for path in paths)


def test_names_of_a_page_are_found_and_others_are_not() -> None:
    assert exists("client/http1")
    assert exists("server/jobs/versions/inspection")
    assert not exists("server/jobs/no_such_module")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_on_the_architecture_names_what_exists(page: Path) -> None:
    names = {name for name in _NAME.findall(page.read_text("utf-8")) if "/." not in name}
    assert sorted(name for name in names - _OTHERS if not exists(name)) == []
