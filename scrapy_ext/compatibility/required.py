"""The refusal of a version of Scrapy that is too old, in one line.

pip does not install this package beside one. But a deployed project may pin any version, and its jobs import this
package from the server's packages. Imports nothing that an old version lacks.
"""

from __future__ import annotations

import re
from typing import Final

#: The oldest supported version. ``pyproject.toml`` and the test of supported versions have it, too.
OLDEST: Final = (2, 14)
#: The same for messages, with the newest tested version.
SUPPORTED: Final = "Scrapy 2.14 to 2.19"


class OldScrapyError(RuntimeError):
    """This version of Scrapy is too old for this package."""


def fault_of(version: str) -> str | None:
    """Return a message that refuses a version of Scrapy; None for a supported one, or one that is no number."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) >= OLDEST:
        return None
    oldest = ".".join(map(str, OLDEST))
    return (
        f"Scrapy {version} is too old for scrapy-ext: {oldest} or later is needed. Require scrapy>={oldest} in the "
        "requirements of the project, and deploy or install it again"
    )


def require_scrapy() -> None:
    """Raise :class:`OldScrapyError` if the installed version of Scrapy is too old, or cannot be imported."""
    try:
        import scrapy
    except Exception as error:  # an old version fails in many ways beside newer libraries
        version = _installed()
        refusal = fault_of(version) or (
            f"Scrapy {version} cannot be imported ({type(error).__name__}: {error}). Its requirements do not fit the "
            "installed packages: require a version that does, and deploy or install it again"
        )
        raise OldScrapyError(refusal) from error
    fault = fault_of(scrapy.__version__)
    if fault is not None:
        raise OldScrapyError(fault)


def _installed() -> str:
    """Return the version that was installed, without an import of it; "" if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("scrapy")
    except PackageNotFoundError:
        return ""
