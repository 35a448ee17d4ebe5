"""List of the spiders of the project in the working directory:
``python -m scrapy_ext.server.jobs.versions.spider_list FD``.

It runs in the project's own environment, and writes JSON to the descriptor, apart from the output of the project. The
server does not trust it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from scrapy_ext.api.platform.versions import SpiderArgument, SpiderInfo
from scrapy_ext.compatibility.required import OldScrapyError, require_scrapy

_TEXT: Final = 200
_MEMORY: Final = 8 * 1024**3
_MAX_ARGUMENTS: Final = 100
#: Characters of a docstring that are read.
_DOC: Final = 20_000
#: A line about an argument: ``name: text``, ``name (int): text`` or ``:param int name: text``.
_DESCRIBED: Final = re.compile(
    r"(?P<indent>[ \t]*)(?::param(?:[ \t]+[^\s:]{1,60})?[ \t]+)?(?P<name>[^\W\d]\w{0,99})(?:[ \t]*\([^()]{0,100}\))?"
    r"[ \t]?:[ \t]+(?P<text>\S.*)"
)


def main() -> None:
    """Write the spiders and exit at once, without waiting for threads of the project."""
    status = 1
    try:
        _bound_memory()
        spiders = msgspec.json.encode(_spiders())
        with os.fdopen(int(sys.argv[1]), "wb") as pipe:
            pipe.write(spiders)
        status = 0
    except OldScrapyError as error:
        print(f"{error}.")  # noqa: T201 - the server reads it
    except BaseException:  # a module may raise anything, SystemExit too
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _bound_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on every platform

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _spiders() -> list[SpiderInfo]:
    require_scrapy()
    # Imported here: this is the project's Scrapy, and a failed import is reported as other failures.
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings

    loader = get_spider_loader(get_project_settings())
    return [_spider(name, loader.load(name)) for name in sorted(loader.list())]


def _spider(name: str, cls: type) -> SpiderInfo:
    from scrapy import Spider

    arguments: dict[str, SpiderArgument] = {}
    custom = True
    for base in cls.__mro__:
        if base is Spider or not custom:
            break
        if "__init__" in vars(base):
            custom = False
            for parameter in _parameters(base):
                if parameter.kind is parameter.VAR_KEYWORD:
                    custom = True
                elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.name != "name":
                    arguments.setdefault(parameter.name, _argument(parameter))
    summary = (vars(cls).get("__doc__") or "").strip().partition("\n")[0]
    described = _descriptions(cls)
    listed = [
        msgspec.structs.replace(each, help=described.get(each.name, ""))
        for each in list(arguments.values())[:_MAX_ARGUMENTS]
    ]
    return SpiderInfo(name, listed, summary[:_TEXT], custom, f"{cls.__module__}.{cls.__qualname__}"[:_TEXT])


def _descriptions(cls: type) -> dict[str, str]:
    """Return the texts about arguments in the docstrings of a spider: of ``name: text`` and ``:param name: text``.

    Lines that are indented further belong to the text.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for doc in (vars(base).get("__doc__"), getattr(vars(base).get("__init__"), "__doc__", None)):
            if isinstance(doc, str):
                found |= _described_in(inspect.cleandoc(doc[:_DOC]))
    return found


def _described_in(doc: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name, indent = "", 0
    for line in doc.splitlines():
        match = _DESCRIBED.match(line)
        if match:
            name, indent = match["name"], len(match["indent"])
            found[name] = match["text"][:_TEXT]
        elif name and line.strip() and len(line) - len(line.lstrip()) > indent:
            found[name] = f"{found[name]} {line.strip()}"[:_TEXT]
        else:
            name = ""
    return found


def _parameters(base: Any) -> Iterator[inspect.Parameter]:
    try:
        yield from list(inspect.signature(base.__init__).parameters.values())[1:]
    except (TypeError, ValueError):  # a class of an extension module
        return


def _argument(parameter: inspect.Parameter) -> SpiderArgument:
    required = parameter.default is parameter.empty
    annotation = parameter.annotation
    return SpiderArgument(
        parameter.name,
        required,
        None if required else _shown(repr, parameter.default),
        None
        if annotation is parameter.empty
        else annotation[:_TEXT]
        if isinstance(annotation, str)
        else _shown(inspect.formatannotation, annotation),
    )


def _shown(show: Any, value: object) -> str:
    try:
        return str(show(value))[:_TEXT]
    except Exception:  # the project's own code
        return "…"


if __name__ == "__main__":
    main()
