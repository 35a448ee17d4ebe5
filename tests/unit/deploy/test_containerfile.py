"""The Containerfile copies what exists, ends as a user that is not root, and has no secret."""

from __future__ import annotations

import re

from scrapy_ext.server.config.command_line import SECRETS
from tests.support.deploy_files import DEPLOY

FILE = (DEPLOY / "Containerfile").read_text()
ROOT = DEPLOY.parent
IGNORED = (ROOT / ".dockerignore").read_text()


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", FILE, re.MULTILINE) for name in line.split()]
    assert {"pyproject.toml", "scrapy_ext"} <= set(copied)
    for name in copied:
        plain = re.sub(r"\[(\w)\]", r"\1", name)
        assert f"!{plain}\n" in IGNORED
        assert "[" in name or (ROOT / name).exists()


def test_the_image_is_not_roots_and_has_no_secret() -> None:
    assert re.findall(r"^USER (.*)$", FILE, re.MULTILINE)[-1] == "10001:10001"
    assert not re.findall(rf"^(?:ENV|ARG).*\b({'|'.join(SECRETS)})\b", FILE, re.MULTILINE)
    # Exec form: a shell would keep SIGTERM from the server.
    assert re.findall(r"^ENTRYPOINT (.*)$", FILE, re.MULTILINE) == ['["tini", "--", "scrapy", "platform"]']


def test_the_version_is_that_of_the_package() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"ARG VERSION={version[1]}\n" in FILE
