"""Messages that a user of the package can see, read from its code: errors, log records and failures of commands.

A message is a text in the call of an exception, of a function that returns one, of a record of a broken rule, of a
logger at WARNING or above, or of a function that ends the process. A value in it stands as ``{expression}``; a local
name or a constant is replaced by its texts. The exceptions in :data:`INVARIANTS` are left out: they report faults
of this package or of code that calls it in the wrong way, which no user of a command or a service can correct.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from tests.support.user_messages.modules import (
    Class,
    Function,
    Module,
    annotated,
    called_in,
    completes,
    last_name,
    parameters_of,
    target_of,
)
from tests.support.user_messages.texts import MOST, Scope, filled, shown, texts_of

#: Functions that remove credentials from URLs.
MASKS: Final = frozenset({"without_user", "without_secrets", "without_credentials", "shown_address", "masked"})
INVARIANTS: Final = frozenset(
    {"RuntimeError", "AssertionError", "NotImplementedError", "AttributeError", "LookupError", "KeyError", "IndexError"}
)
#: Exceptions of other packages that have texts of this one.
_FOREIGN: Final = ("NotConfigured", "UsageError", "ArgumentTypeError", "ArgumentError", "DecodeError")
#: Functions that end a call with a message, and return something else than an error.
_REFUSING: Final = ("_refuse", "_failed", "found")
#: The argument of a logger's method, or of a writer, that is the text.
_LOGGED: Final = {"warning": 0, "error": 0, "critical": 0, "exception": 0, "log": 1}
_WRITERS: Final = {"warnings.warn": 0, "sys.exit": 0, "parser.error": 0, "parser.exit": 1}
_LOGGER: Final = re.compile(r"log(ger)?\b|_disk$", re.IGNORECASE)
_QUIET_LEVEL: Final = re.compile(r"\b(INFO|DEBUG)\)?$")

#: Names of the parameters that are a part of a message.
_SUBJECT: Final = ("field", "name", "path", "place", "where", "subject")
_TEXT: Final = ("rule", "message", "detail", "text", "reason", "what", "why", "fault", "more", "shown")
#: Annotations of functions that return no single error.
_SEVERAL: Final = frozenset({"Iterator", "Iterable", "list", "type", "Callable", "Mapping"})
#: Source without one of these makes no messages: mostly tables, which are large.
_MAY_HAVE_MESSAGES: Final = re.compile(r"\braise\b|rror|xception|iolation|efus|warning|remedy|logger|exit")
_WORD: Final = re.compile(r"[A-Za-z]{3}")
_VALUE: Final = re.compile(r"\{[^{}]*\}")
_Found = TypeVar("_Found")


class Message(NamedTuple):
    """A text, and the place where the code has it.

    ``kind``: the name of what is called; ``family``: the class of the error and its bases, empty for what is logged or
    written. A broken rule (``is_rule``) has a subject, a rule and a remedy; another text is in ``rule``, and ``remedy``
    is the sentence that its class adds. ``is_part``: the class or function that is called makes a sentence with it.
    """

    path: Path
    line: int
    kind: str
    subject: str
    rule: str
    remedy: str
    is_rule: bool = False
    is_part: bool = False
    #: True if its class removes credentials from the URLs in it.
    is_masked: bool = False
    family: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        return " ".join(part for part in (self.subject, f"{self.rule.rstrip('.')}.", self.remedy) if part)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


class _Maker(NamedTuple):
    """A class or function that is called with the parts of a message."""

    parameters: Sequence[str]
    #: Sentence that it adds.
    remedy: str = ""
    completes: bool = False
    is_masked: bool = False
    family: frozenset[str] = frozenset()


class Package:
    """The modules of a package, by their path, and what makes messages in them."""

    def __init__(self, sources: Mapping[Path, str]) -> None:
        #: Modules by their dotted name.
        self.modules = {
            ".".join(path.with_suffix("").parts).removesuffix(".__init__"): Module(path, ast.parse(source))
            for path, source in sources.items()
            if _MAY_HAVE_MESSAGES.search(source)
        }
        for module in self.modules.values():
            module.read(self._constants(module))
        self._functions = self._error_functions()

    @classmethod
    def of_folder(cls, folder: Path) -> Package:
        return cls({path.relative_to(folder.parent): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))})

    def messages(self) -> Iterator[Message]:
        for module in self.modules.values():
            for call, scope in module.calls:
                for message in self._messages(module, call, scope):
                    if _WORD.search(_VALUE.sub("", message.text)):  # else it only repeats another message
                        yield message

    def _messages(self, module: Module, call: ast.Call, scope: Scope) -> Iterator[Message]:
        place = _place_of_text(call)
        if place is not None and len(call.args) > place:
            has_trace = any(each.arg == "exc_info" for each in call.keywords)
            kind = "logger.exception" if has_trace else ast.unparse(call.func)
            for text in texts_of(call.args[place], scope):
                yield Message(module.path, call.lineno, kind, "", filled(text, call.args[place + 1 :], scope), "")
        elif place is None and (maker := self._maker(module, call)):
            yield from _made(module.path, call, maker, scope)

    def _constants(self, module: Module) -> Scope:
        """The constants that a module imports."""
        found = {}
        for name in module.imported:
            if values := self._imported(module, ast.Name(name), Module.constant):
                found[name] = values
        return found

    # ── makers ──

    def _maker(self, module: Module, call: ast.Call) -> _Maker | None:
        """The maker that is called, if there is one."""
        name = last_name(call.func)
        if name in INVARIANTS or name == "partial":
            return None
        if name == "__init__" and (own := module.classes.get(module.within[call])):
            maker = self._of_class(module, ast.Name(own.node.name))
            base = own.node.bases[0] if own.node.bases else ast.Name("object")
            return maker and maker._replace(parameters=self._fields(module, base), completes=False)
        if call.args and self._is_exception(module, call.args[0]):  # such as call.error(NotFound, "…")
            maker = self._of_class(module, call.args[0])
            return maker and maker._replace(parameters=("kind", *maker.parameters))
        if found := module.functions.get(name) or self._imported(module, call.func, Module.function):
            return self._of_function(*found) if self._returns_error(*found) else None
        if partial := module.partials.get(name) or self._imported(module, call.func, Module.partial):
            return self._of_partial(*partial)
        if maker := self._of_class(module, call.func):
            return maker
        return self._of_function(*self._functions[name]) if name in self._functions else None

    def _imported(
        self, module: Module, called: ast.expr, find: Callable[[Module, str], _Found | None]
    ) -> _Found | None:
        """Find something in the module from which a name, or the name of its module, is imported."""
        if isinstance(called, ast.Attribute):
            place, name = module.imported.get(last_name(called.value), ("", ""))
            place, name = f"{place}.{name}", called.attr
        else:
            place, name = module.imported.get(last_name(called), ("", ""))
        other = self.modules.get(place)
        if other is None or other is module:
            return None
        return find(other, name) or self._imported(other, ast.Name(name), find)

    def _class(self, module: Module, named: ast.expr) -> Class | None:
        own = module.classes.get(named.id) if isinstance(named, ast.Name) else None
        return own or self._imported(module, named, Module.class_)

    def _is_exception(self, module: Module, named: ast.expr) -> bool:
        if not isinstance(named, ast.Name | ast.Attribute):
            return False
        if found := self._class(module, named):
            return any(self._is_exception(found.module, base) for base in found.node.bases)
        name = last_name(named)
        kind = getattr(builtins, name, None)
        return name in _FOREIGN or (isinstance(kind, type) and issubclass(kind, Exception))

    def _of_class(self, module: Module, named: ast.expr) -> _Maker | None:
        found = self._class(module, named)
        fields = self._fields(module, named)
        if not (self._is_exception(module, named) or {"rule", "remedy"} <= set(fields)):
            return None
        init = found.init if found else None
        return _Maker(
            fields,
            self._remedy(module, named),
            bool(init and completes(init)),
            self._is_masked(module, named),
            frozenset(self._family(module, named)),
        )

    def _of_function(self, function: Function, module: Module) -> _Maker:
        given = function.args
        places = zip(reversed([each.arg for each in given.args]), reversed(given.defaults), strict=False)
        defaults = {
            **dict(places),
            **dict(zip([each.arg for each in given.kwonlyargs], given.kw_defaults, strict=True)),
        }
        remedy = next(iter(texts_of(default, {})), "") if (default := defaults.get("remedy")) else ""
        kinds = [each for each in annotated(function) if self._is_exception(module, each)]
        parameters = parameters_of(function)
        return _Maker(
            parameters,
            remedy or next(filter(None, (self._remedy(module, kind) for kind in kinds)), ""),
            completes(function) or ("rule" in parameters and "remedy" not in parameters),
            bool(MASKS & called_in(function)) or any(self._is_masked(module, kind) for kind in kinds),
            frozenset(name for kind in kinds for name in self._family(module, kind)),
        )

    def _of_partial(self, partial: ast.Call, module: Module) -> _Maker | None:
        maker = self._of_class(module, partial.args[0])
        if maker is None:
            return None
        given = maker.parameters[len(partial.args) - 1 :]
        return maker._replace(parameters=given, remedy=_keyword(partial, "remedy") or maker.remedy)

    def _error_functions(self) -> dict[str, tuple[Function, Module]]:
        """Functions by a name that most of its functions have in common: to return an error."""
        every: dict[str, list[tuple[Function, Module]]] = defaultdict(list)
        for module in self.modules.values():
            for name, found in module.functions.items():
                every[name].append(found)
        errors = {name: [each for each in several if self._returns_error(*each)] for name, several in every.items()}
        return {name: several[0] for name, several in errors.items() if 2 * len(several) > len(every[name])}

    def _returns_error(self, function: Function, module: Module) -> bool:
        if function.returns is None:
            return False
        parameters = set(parameters_of(function))
        if ("remedy" in parameters and parameters & {"rule", "text"}) or function.name in _REFUSING:
            return True
        kinds = annotated(function)
        if _SEVERAL.intersection(map(last_name, kinds)):
            return False
        return any(last_name(kind) in ("NoReturn", "Violation") or self._is_exception(module, kind) for kind in kinds)

    # ── properties of classes ──

    def _fields(self, module: Module, named: ast.expr) -> Sequence[str]:
        """The parameters of a class."""
        found = self._class(module, named)
        if found is None:
            return ("message",)
        if found.init:
            return parameters_of(found.init)
        if not self._is_exception(module, named):
            return [last_name(each.target) for each in found.node.body if isinstance(each, ast.AnnAssign)]
        bases = [base for base in found.node.bases if self._class(found.module, base)]
        return self._fields(found.module, bases[0]) if bases else ("message",)

    def _remedy(self, module: Module, named: ast.expr) -> str:
        """The class attribute with which all messages of a class end."""
        found = self._class(module, named)
        for statement in found.node.body if found else ():
            if (
                isinstance(statement, ast.Assign | ast.AnnAssign)
                and target_of(statement) == "remedy"
                and statement.value
            ):
                return next(iter(texts_of(statement.value, {})), "")
        bases = (self._remedy(found.module, base) for base in found.node.bases) if found else ()
        return next(filter(None, bases), "")

    def _is_masked(self, module: Module, named: ast.expr) -> bool:
        found = self._class(module, named)
        if found is None:
            return False
        own = bool(found.init and MASKS & called_in(found.init))
        return own or any(self._is_masked(found.module, base) for base in found.node.bases)

    def _family(self, module: Module, named: ast.expr) -> Iterator[str]:
        yield last_name(named)
        if found := self._class(module, named):
            for base in found.node.bases:
                yield from self._family(found.module, base)


def _keyword(call: ast.Call, name: str) -> str:
    return next((text for each in call.keywords if each.arg == name for text in texts_of(each.value, {})), "")


def _place_of_text(call: ast.Call) -> int | None:
    """The argument of a logger's method, or of a writer, that is the text; None for another call."""
    if not isinstance(call.func, ast.Attribute):
        return None
    method, owner = call.func.attr, last_name(call.func.value)
    if method not in _LOGGED or not _LOGGER.search(owner or ast.unparse(call.func.value)):
        return _WRITERS.get(f"{owner}.{method}")
    is_quiet = method == "log" and _QUIET_LEVEL.search(ast.unparse(call.args[0]))
    return len(call.args) if is_quiet else _LOGGED[method]


def _made(path: Path, call: ast.Call, maker: _Maker, scope: Scope) -> Iterator[Message]:
    given: dict[str, ast.expr] = dict(zip(maker.parameters, call.args, strict=False))
    given.update({each.arg: each.value for each in call.keywords if each.arg})
    remedy = "remedy" if "remedy" in given else None
    subject = _first(given, _SUBJECT) if remedy or "rule" in given else None
    texts = {name: value for name, value in given.items() if name not in (subject, remedy)}
    rule = _first(texts, _TEXT) or _first_text(texts, scope)
    if not any(name and any(texts_of(given[name], scope)) for name in (rule, remedy)):
        return
    parts = [shown(given[name], scope) if name else [""] for name in (subject, rule, remedy)]
    for alternative in itertools.islice(itertools.product(*parts), MOST):
        yield Message(
            path,
            call.lineno,
            ast.unparse(call.func),
            *(alternative[0], alternative[1], alternative[2] or maker.remedy),
            is_rule="rule" in maker.parameters,
            is_part=maker.completes,
            is_masked=maker.is_masked,
            family=maker.family,
        )


def _first(given: Mapping[str, ast.expr], names: Iterable[str]) -> str | None:
    return next((name for name in names if name in given), None)


def _first_text(given: Mapping[str, ast.expr], scope: Scope) -> str | None:
    return next((name for name, value in given.items() if any(" " in text for text in texts_of(value, scope))), None)
