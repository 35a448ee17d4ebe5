"""Files of rules that correct automatic extraction, one a site: ``extract_rules/shop.example.toml``.

::

    match = ["shop.example", "*.shop.example"]  # default: the name of the file, also with www. before it

    [product]
    name = "h1.title"                           # a CSS selector
    brand = { xpath = "//tr[th='Brand']/td" }
    sku = { example = "AB-1", url = "https://shop.example/p/1" }

They are read when a crawl opens, and each fault ends it before its first request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import idna
from scrapy.settings import BaseSettings
from w3lib.url import canonicalize_url

from scrapy_ext import settings as names
from scrapy_ext.api.extraction.extract_rules import (
    EXTRACT_RULES,
    RULE_FIELDS,
    ExtractRule,
    ValueType,
    faults_of,
    faults_of_kind,
)
from scrapy_ext.api.masking import without_user
from scrapy_ext.api.violations import Violation
from scrapy_ext.crawl.session.project import project_folder
from scrapy_ext.settings import SettingError

logger = logging.getLogger(__name__)

#: Folder of the files beside ``scrapy.cfg``, unless EXTRACT_API_RULES names another.
DEFAULT_FOLDER: Final = "extract_rules"
MAX_FILES: Final = 10_000
MAX_FILE_BYTES: Final = 200_000
MAX_MATCHES: Final = 100
#: Longest host in DNS, in its ASCII form.
_MAX_HOST: Final = 253
_HOST: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_OF_FILE: Final = ("example", "url")
#: Other names in the folder that a warning lists.
_MAX_LISTED: Final = 10
#: Types whose values are any text.
TEXT_TYPES: Final = frozenset({
    ValueType.TEXT, ValueType.LINES, ValueType.TEXTS, ValueType.NAMED, ValueType.PLACE, ValueType.ORGANIZATION,
})  # fmt: skip


class Example(NamedTuple):
    """Value of a field on a page, from which a selector is found."""

    value: str
    url: str


class UsedRules(NamedTuple):
    """The rules for one request: those of a file for its kind."""

    file: str
    kind: str
    #: By field, as the request field ``extractRules`` has them.
    rules: Mapping[str, dict[str, Any]]

    def of(self, field: str) -> str:
        """Return the rule of a field for messages: ``extract_rules/shop.example.toml: product.price (.price)``."""
        return f"{self.file}: {self.kind}.{field} ({ExtractRule(**self.rules[field])})"


class RuleFile(NamedTuple):
    """A file: its path for messages, the hosts that it is for, its rules by kind and field, and its examples."""

    path: str
    matches: tuple[str, ...]
    kinds: Mapping[str, Mapping[str, dict[str, Any]]]
    examples: Mapping[str, Mapping[str, Example]]

    def is_for(self, host: str) -> bool:
        return any(host == pattern or (pattern[0] == "*" and host.endswith(pattern[1:])) for pattern in self.matches)


class SiteRules:
    """The rules of all sites. Raises :class:`SettingError` for two files that are for the same host."""

    def __init__(self, files: Sequence[RuleFile] = ()) -> None:
        self.files = tuple(files)
        self._by_pattern: dict[str, RuleFile] = {}
        for file in files:
            for pattern in file.matches:
                other = self._by_pattern.setdefault(pattern, file)
                if other is not file:
                    remedy = "Name other hosts with match in one of them."
                    raise SettingError(file.path, f"is for {pattern}, as {other.path} is", remedy)

    @classmethod
    def of(cls, settings: BaseSettings) -> SiteRules:
        """Return the rules in the folder of the settings.

        Raises :class:`SettingError` with every fault, and for rules in EXTRACT_API_PARAMS, which would replace all.
        """
        folder = folder_of(settings)
        rules = cls(_read_all(folder) if folder is not None else ())
        if rules and EXTRACT_RULES in names.EXTRACT_API_PARAMS.read(settings):
            rule = f"has {EXTRACT_RULES}, and {rules.files[0].path} has rules of a site, which it would replace"
            raise SettingError("EXTRACT_API_PARAMS", rule, 'Remove it, or set EXTRACT_API_RULES = "": no files.')
        if folder is not None and not rules and names.EXTRACT_API_RULES.read(settings):
            remedy = "Add a file such as shop.example.toml, or leave out the setting."
            raise SettingError("EXTRACT_API_RULES", f"names {folder.name}, which has no .toml file", remedy)
        return rules

    def __bool__(self) -> bool:
        return bool(self.files)

    def file_for(self, url: str) -> RuleFile | None:
        """Return the file for the host of a URL: the one that names it, else the longest pattern."""
        host = host_of_url(url)
        if host in self._by_pattern:
            return self._by_pattern[host]
        while host:
            _, _, host = host.partition(".")
            if (file := self._by_pattern.get(f"*.{host}")) is not None:
                return file
        return None

    def for_request(self, url: str, fields: Mapping[str, Any]) -> UsedRules | None:
        """Return the rules for a URL and the kind that these fields request; None where there are none.

        Examples for which no selector is known yet count on their page alone.
        """
        file = self.file_for(url) if self._by_pattern else None
        kind = next((kind for kind in RULE_FIELDS if fields.get(kind)), None) if file is not None else None
        if file is None or kind is None or kind not in file.kinds:
            return None
        examples = file.examples.get(kind, {})
        rules = {
            field: rule
            for field, rule in file.kinds[kind].items()
            if "example" not in rule or is_same_page(examples[field].url, url)
        }
        return UsedRules(file.path, kind, rules) if rules else None

    def without_selector(self) -> Iterator[tuple[RuleFile, str, str, Example]]:
        """Yield the examples for which no selector is known: file, kind, field and example."""
        for file in self.files:
            for kind, rules in file.kinds.items():
                for field, rule in rules.items():
                    if "example" in rule:
                        yield file, kind, field, file.examples[kind][field]

    def require_selectors(self) -> SiteRules:
        """Raise :class:`SettingError` for an example without a selector: other pages need one."""
        for file, kind, field, example in self.without_selector():
            raise SettingError(
                f"{file.path}: {kind}.{field}",
                "has an example, and no selector for other pages",
                f"Run scrapy extract --explain {without_user(example.url)} and add the selector that it shows.",
            )
        return self


def is_same_page(url: str, other: str) -> bool:
    """Return true for two URLs of one page, of which one may be escaped and the other as people write it."""
    return _page(url) == _page(other)


def _page(url: str) -> str:
    try:
        return canonicalize_url(url).rstrip("/")
    except ValueError:
        return url


def folder_of(settings: BaseSettings) -> Path | None:
    """Return the folder of the files; None if there is none. Raises :class:`SettingError` for one that is missing."""
    given: str | None = names.EXTRACT_API_RULES.read(settings)
    root = project_folder() or Path.cwd()
    if given is None:
        folder = root / DEFAULT_FOLDER
        return folder if folder.is_dir() else None
    if not given:
        return None
    folder = root / given
    if not folder.is_dir():
        raise SettingError(
            "EXTRACT_API_RULES", f"names {given}, which is no folder", "Name another folder, or make this one."
        )
    return folder


#: Logs a warning once for each list of its arguments: crawls read the files for requests and for fingerprints.
_warn_once = lru_cache(maxsize=1000)(logger.warning)


def _read_all(folder: Path) -> list[RuleFile]:
    found = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__")))
    paths = [path for path in found if path.suffix == ".toml"]
    unread = [path.name for path in found if path.suffix != ".toml"]
    if unread:
        shown = ", ".join([*unread[:_MAX_LISTED], *(["..."] if len(unread) > _MAX_LISTED else [])])
        _warn_once("Not read in the folder %s, since files of rules end in .toml: %s", folder, shown)
    if len(paths) > MAX_FILES:
        raise SettingError("EXTRACT_API_RULES", f"has over {MAX_FILES} files", "Use fewer files, with more in match.")
    files, faults = [], list[Violation]()
    for path in paths:
        reader = _Reader(path)
        files.append(reader.file)
        faults += reader.faults
    if faults:
        first, *others = faults
        remedy = "\n".join([first.remedy, *(f"{other.field} {other.rule}. {other.remedy}" for other in others[:20])])
        raise SettingError(first.field, first.rule, remedy)
    return files


def values_of(kind: str, texts: Mapping[str, str], url: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of texts in the types of their fields, and the faults of others, as rules with ``value`` have
    them on a page at a URL. Raises :class:`ImportError` without the extra ``server``."""
    from scrapy_ext.server.extraction import correct_item

    rules = {field: {"value": text} for field, text in texts.items()}
    item, report = correct_item(kind, "<html><body></body></html>", url, {}, rules)
    return item, {field: entry["fault"] for field, entry in report.items() if "fault" in entry}


class _Reader:
    """Reader of one file, which collects its faults."""

    def __init__(self, path: Path) -> None:
        #: As messages name it.
        self._shown = f"{path.parent.name}/{path.name}"
        self.faults: list[Violation] = []
        self._examples: dict[str, dict[str, Example]] = {}
        table = self._table(path)
        matches = self._matches(table.pop("match", None), path.stem)
        #: Host of values and of messages.
        self._host = matches[0].removeprefix("*.") if matches else "shop.example"
        kinds = {kind: self._kind(kind, rules) for kind, rules in table.items()}
        self.file = RuleFile(self._shown, matches, kinds, self._examples)
        for kind, examples in self._examples.items() if matches else ():
            for field, example in examples.items():
                if not self.file.is_for(host := host_of_url(example.url)):
                    rule = f"is on {host}, which is no host of this file"
                    self._fault(f"{kind}.{field}.url", rule, "Name a page of these hosts, or add its host to match.")

    def _fault(self, place: str, rule: str, remedy: str) -> None:
        self.faults.append(Violation(f"{self._shown}: {place}" if place else self._shown, rule, remedy))

    def _table(self, path: Path) -> dict[str, Any]:
        # Imported with the first file: most projects have none.
        from scrapy_ext.compatibility.toml import tomllib

        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                self._fault("", f"must have at most {MAX_FILE_BYTES} bytes", "Split it by site.")
                return {}
            # Some editors begin UTF-8 with a byte order mark.
            return tomllib.loads(path.read_text("utf-8-sig"))
        except IsADirectoryError:
            self._fault("", "is a folder", "Move its files into the folder around it, and remove it.")
        except OSError as error:
            self._fault("", f"cannot be read ({error.strerror})", "Correct its permissions.")
        except UnicodeDecodeError as error:
            self._fault("", f"must be UTF-8, and byte {error.start + 1} is not", "Convert it.")
        except RecursionError:
            self._fault("", "is nested too deeply", 'Write name = "h1.title" below [product], for example.')
        except ValueError as error:  # Of the parser, and of Python for a number with thousands of digits.
            self._fault("", f"is no TOML: {error}", 'Write name = "h1.title" below [product], for example.')
        return {}

    def _matches(self, given: object, stem: str) -> tuple[str, ...]:
        if given is None:
            host = _pattern(stem)
            if host is None or host.startswith("*"):
                remedy = 'Name it after one, such as shop.example.toml, or write match = ["shop.example"] in it.'
                self._fault("", f"has the name {stem!r:.80}, which is no host", remedy)
                return ()
            return tuple(filter(None, (host, _pattern(f"www.{host}"))))
        if not isinstance(given, list) or not 1 <= len(given) <= MAX_MATCHES:
            self._fault("match", f"must be a list of 1 to {MAX_MATCHES} hosts", 'Write match = ["shop.example"].')
            return ()
        found = []
        for host in given:
            pattern = _pattern(host) if isinstance(host, str) else None
            if pattern is None:
                remedy = 'Write "shop.example", or "*.shop.example" for all below it; without scheme, port and path.'
                self._fault("match", f"has {host!r:.80}, which is no host", remedy)
            else:
                found.append(pattern)
        return tuple(dict.fromkeys(found))

    def _kind(self, kind: str, rules: object) -> dict[str, dict[str, Any]]:
        if not isinstance(rules, dict) or kind not in RULE_FIELDS:
            self._fault(kind, "is no kind of item", f"The kinds that rules correct are {', '.join(RULE_FIELDS)}.")
            return {}
        members = {field: self._rule(kind, field, rule) for field, rule in rules.items()}
        faults = list(faults_of(members, kind))
        if not faults:
            faults += faults_of_kind(kind, members, kind)
            faults += [] if faults else self._faults_of_constants(kind, members)
        for fault in faults:
            self._fault(fault.field, fault.rule, fault.remedy)
        return members

    def _faults_of_constants(self, kind: str, rules: Mapping[str, dict[str, Any]]) -> Iterator[Violation]:
        """Yield the constants that are no values of their fields. Without the extra ``server`` the service finds them:
        each page then has the fault."""
        texts = {field: rule["value"] for field, rule in rules.items() if "value" in rule}
        empty = {field: "found an empty text" for field, text in texts.items() if not text.strip()}
        typed = {field: text for field, text in texts.items() if RULE_FIELDS[kind][field] not in TEXT_TYPES}
        try:
            faults = values_of(kind, typed, f"https://{self._host}/")[1] if typed else {}
        except ImportError:
            faults = {}
        for field, fault in {**empty, **faults}.items():
            yield Violation(
                f"{kind}.{field}.value",
                fault.replace("found", "is", 1),
                "Write the value that the page has, or remove the rule.",
            )

    def _rule(self, kind: str, field: str, rule: object) -> dict[str, Any]:
        """Return the rule of a field as requests have it: without the parts that are for the file alone."""
        if isinstance(rule, str):
            return {"css": rule}
        if not isinstance(rule, dict):
            self._fault(f"{kind}.{field}", "must be a CSS selector or a table", f'Write {field} = "h1.title".')
            return {"remove": True}
        if not any(name in rule for name in _OF_FILE):
            return rule
        example, url = rule.get("example"), rule.get("url")
        if not (isinstance(example, str) and isinstance(url, str) and host_of_url(url)):
            remedy = f'Write {field} = {{ example = "the value", url = "https://{self._host}/page" }}.'
            self._fault(f"{kind}.{field}", "must have both example and url, the page that has the value", remedy)
            return {"remove": True}
        self._examples.setdefault(kind, {})[field] = Example(example, url)
        kept = {name: value for name, value in rule.items() if name not in _OF_FILE}
        # With a selector, the example is what it must find on that page.
        return kept if "css" in kept or "xpath" in kept else {**kept, "example": example}


def host_of_url(url: str) -> str:
    """Return the host of an http URL, in the ASCII form that requests have; "" for other texts."""
    try:
        parts = urlsplit(url)
        return _ascii(parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _pattern(text: str) -> str | None:
    """Return a host, or ``*.`` and one, in the form of :func:`host_of_url`; None for one that no URL has."""
    star = "*." if text.startswith("*.") else ""
    try:
        host = _ascii(text[len(star) :])
    except ValueError:
        return None
    return star + host if len(host) <= _MAX_HOST and _HOST.fullmatch(host) else None


def _ascii(host: str) -> str:
    """Return a host in lower case, with international labels as browsers send them, and without the dot of the root.

    Raises :class:`ValueError`. ASCII labels stay: there are sites with an underscore.
    """
    if len(host) > _MAX_HOST + 1:
        raise ValueError("too long")
    labels = host.removesuffix(".").split(".")
    return ".".join(
        label.lower() if label.isascii() else idna.encode(label, uts46=True).decode("ascii") for label in labels
    )
