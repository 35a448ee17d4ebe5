"""Modules of spiders that cannot be imported, in a project with ``SPIDER_LOADER_WARN_ONLY``: Scrapy leaves out their
spiders, with a warning. In any other project Scrapy raises the error itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: Characters of a line about a module.
_LONGEST: Final = 300
#: Settings of a project that is imported module by module.
_PRIORITY: Final = 1000


def unreadable_modules(settings: BaseSettings) -> Iterator[str]:
    """Yield a line for each entry of ``SPIDER_MODULES`` that cannot be imported: the module with the error."""
    from scrapy.spiderloader import get_spider_loader

    if not settings.getbool("SPIDER_LOADER_WARN_ONLY"):
        return
    own: Any = settings.copy()
    own.set("SPIDER_LOADER_WARN_ONLY", False, _PRIORITY)
    for module in dict.fromkeys(settings.getlist("SPIDER_MODULES")):
        own.set("SPIDER_MODULES", [module], _PRIORITY)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                get_spider_loader(own)
            except Exception as error:  # the project's own code
                yield _line_of(error, module)


def _line_of(error: Exception, module: str) -> str:
    text = f"{_module_of(error, module)}: {type(error).__name__}: {error}"[:_LONGEST]
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _module_of(error: Exception, module: str) -> str:
    """Return the module of a package that raised; a module with a syntax error has no frame, and its error the file."""
    names = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__))
    return next((name for name in names if name == module or name.startswith(f"{module}.")), module)
