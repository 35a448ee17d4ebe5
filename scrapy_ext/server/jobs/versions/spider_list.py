"""List of the spiders of the project in the working directory:
``python -m scrapy_ext.server.jobs.versions.spider_list FD``.

It runs in the project's own environment, and writes JSON to the descriptor, apart from the output of the project. The
server does not trust it.

Parameters that a spider declares with scrapy-spider-metadata become arguments: the JSON schema of its ``Args``, which
is made by the project's code and may be anything.
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

from scrapy_ext.api.platform.versions import MAX_SPIDER, SpiderArgument, SpiderInfo, SpiderList
from scrapy_ext.compatibility.required import OldScrapyError, require_scrapy
from scrapy_ext.jobprocess.spider_modules import unreadable_modules

_MAX: Final = 100
_CHOICES: Final = 1000
#: References and alternatives that are followed.
_DEPTH: Final = 4
_TYPES: Final = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "string": "str",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def parameters_of(cls: type) -> list[SpiderArgument]:
    """Return the parameters that a spider class declares; none without a usable schema."""
    read = getattr(cls, "get_param_schema", None)
    if read is None:
        return []
    try:
        return list(_arguments(read()))
    except Exception:  # the project's own code
        return []


def _arguments(schema: Any) -> Iterator[SpiderArgument]:
    required = schema.get("required")
    for name, field in list(schema["properties"].items())[:_MAX]:
        if not isinstance(name, str) or not isinstance(field, dict) or not 0 < len(name) <= _TEXT:
            continue
        found = _resolved(field, schema)
        help_text = field.get("description", found.get("description"))
        yield SpiderArgument(
            name,
            isinstance(required, list) and name in required,
            repr(field["default"])[:_TEXT] if "default" in field else None,
            _annotation(found, schema, 0) or None,
            " ".join(help_text.split())[:_TEXT] if isinstance(help_text, str) else "",
        )


def _resolved(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a field with the definition that it refers to, alone or in ``allOf``."""
    whole = field.get("allOf")
    inner = whole[0] if isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], dict) else field
    place = inner.get("$ref")
    definitions = schema.get("$defs", schema.get("definitions"))
    if isinstance(place, str) and isinstance(definitions, dict):
        found = definitions.get(place.rpartition("/")[2])
        if isinstance(found, dict):
            return found
    return inner


def _annotation(field: dict[str, Any], schema: dict[str, Any], depth: int) -> str:
    """Return the type of a field as Python source, "" for any."""
    if depth > _DEPTH:
        return ""
    values = [field["const"]] if "const" in field else field.get("enum")
    if isinstance(values, list) and values:
        text = f"Literal[{', '.join(map(repr, values))}]"
        is_plain = all(each is None or isinstance(each, str | int | float) for each in values)
        return text if is_plain and len(text) <= _CHOICES else ""
    several = field.get("anyOf", field.get("oneOf"))
    if isinstance(several, list):
        members = [_resolved(each, schema) for each in several if isinstance(each, dict)]
        types = [_annotation(each, schema, depth + 1) for each in members]
        return " | ".join(dict.fromkeys(types))[:_CHOICES] if all(types) else ""
    kind = field.get("type")
    return _TYPES.get(kind, "") if isinstance(kind, str) else ""


_TEXT: Final = 200
_MEMORY: Final = 8 * 1024**3
_MAX_ARGUMENTS: Final = 100
_MAX_HIDDEN: Final = 10
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


def _spiders() -> SpiderList:
    require_scrapy()
    # Imported here: this is the project's Scrapy, and a failed import is reported as other failures.
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    loader = get_spider_loader(settings)
    return SpiderList(
        [_spider(name, loader.load(name), _found(loader, name)) for name in sorted(loader.list())],
        list(unreadable_modules(settings)),
    )


def _found(loader: Any, name: str) -> list[str]:
    """Return all classes with the name of a spider, of a loader that notes them as Scrapy's does."""
    noted = getattr(loader, "_found", {})
    return [f"{module}.{cls}" for module, cls in noted.get(name, ())] if isinstance(noted, dict) else []


def _spider(name: str, cls: type, found: list[str]) -> SpiderInfo:
    from scrapy import Spider

    # The declared parameters of scrapy-spider-metadata say more than the signature.
    arguments: dict[str, SpiderArgument] = {each.name: each for each in parameters_of(cls)}
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
        msgspec.structs.replace(each, help=each.help or described.get(each.name, ""))
        for each in list(arguments.values())[:_MAX_ARGUMENTS]
    ]
    kind = f"{cls.__module__}.{cls.__qualname__}"[:_TEXT]
    # A module that is in SPIDER_MODULES twice is read twice.
    hidden = [each for each in dict.fromkeys(each[:_TEXT] for each in found) if each != kind]
    info = SpiderInfo(name, listed, summary[:_TEXT], custom, kind, hidden[:_MAX_HIDDEN])
    if len(msgspec.json.encode(info)) > MAX_SPIDER:
        info.arguments = [SpiderArgument(each.name, each.required) for each in listed]
    return info


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
