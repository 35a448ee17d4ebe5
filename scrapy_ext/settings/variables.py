"""Environment variables of this package: those of the process, and of the project's ``.env``."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Final

from scrapy_ext import environment
from scrapy_ext.server.config.secret_files import SUFFIX
from scrapy_ext.settings.errors import SettingError

#: Names that are read from the file; the table of settings adds them.
_NAMES: Final[set[str]] = set()


def read_from_dotenv(names: Iterable[str]) -> None:
    """Let :func:`variables` return variables of these names from the file as well."""
    _NAMES.update(names)


def variables() -> Mapping[str, str]:
    """Return the environment of this process, and below it the variables of the project's ``.env`` that this package
    knows; raises :class:`SettingError`."""
    try:
        found = environment.from_dotenv(_NAMES)
    except environment.DotenvError as error:
        raise SettingError(str(error.path), error.rule, error.remedy) from None
    # A secret that the process has in another way wins, too.
    hidden = {name for name in found if name + SUFFIX in os.environ or name.removesuffix(SUFFIX) in os.environ}
    return ChainMap(os.environ, {name: value for name, value in found.items() if name not in hidden})
