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

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_ext import settings as names
from scrapy_ext.api.extraction.extract_rules import RULE_FIELDS, ExtractRule, faults_of, faults_of_kind
from scrapy_ext.api.violations import Violation
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.crawl.session.project import project_folder
from scrapy_ext.settings import SettingError

#: Folder of the files beside ``scrapy.cfg``, unless EXTRACT_API_RULES names another.
DEFAULT_FOLDER: Final = "extract_rules"
MAX_FILES: Final = 10_000
MAX_FILE_BYTES: Final = 200_000
MAX_MATCHES: Final = 100
_PATTERN: Final = re.compile(r"(?:\*\.)?[^\s*/:]{1,253}")
_OF_FILE: Final = ("example", "url")


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


class SiteRules:
    """The rules of all sites. Raises :class:`SettingError` for two files that are for the same host."""

    def __init__(self, files: Sequence[RuleFile] = ()) -> None:
        self.files = tuple(files)
        self._by_pattern: dict[str, RuleFile] = {}
        for file in files:
            for pattern in file.matches:
                other = self._by_pattern.setdefault(pattern, file)
                if other is not file:
                    raise SettingError(
                        f"{file.path}: match", f"has {pattern}, which {other.path} has too", "Remove it in one of them."
                    )

    @classmethod
    def of(cls, settings: BaseSettings) -> SiteRules:
        """Return the rules in the folder of the settings; raises :class:`SettingError` with every fault."""
        folder = folder_of(settings)
        return cls(_read_all(folder) if folder is not None else ())

    def __bool__(self) -> bool:
        return bool(self.files)

    def file_for(self, url: str) -> RuleFile | None:
        """Return the file for the host of a URL: the one that names it, else the longest pattern."""
        try:
            host = (urlsplit(url).hostname or "").rstrip(".")
        except ValueError:
            return None
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
                f"Run scrapy extract --explain {example.url} and add the selector that it shows.",
            )
        return self


def is_same_page(url: str, other: str) -> bool:
    return url.partition("#")[0].rstrip("/") == other.partition("#")[0].rstrip("/")


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
        raise SettingError("EXTRACT_API_RULES", f"names {given}, which is no folder", "Correct it, or make the folder.")
    return folder


def _read_all(folder: Path) -> list[RuleFile]:
    paths = sorted(folder.glob("*.toml"))
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


class _Reader:
    """Reader of one file, which collects its faults."""

    def __init__(self, path: Path) -> None:
        #: As messages name it.
        self._shown = f"{path.parent.name}/{path.name}"
        self.faults: list[Violation] = []
        self._examples: dict[str, dict[str, Example]] = {}
        table = self._table(path)
        matches = self._matches(table.pop("match", None), path.stem)
        kinds = {kind: self._kind(kind, rules) for kind, rules in table.items()}
        self.file = RuleFile(self._shown, matches, kinds, self._examples)

    def _fault(self, place: str, rule: str, remedy: str) -> None:
        self.faults.append(Violation(f"{self._shown}: {place}" if place else self._shown, rule, remedy))

    def _table(self, path: Path) -> dict[str, Any]:
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                self._fault("", f"must have at most {MAX_FILE_BYTES} bytes", "Split it by site.")
                return {}
            return tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            self._fault("", f"cannot be read ({error.strerror})", "Correct its permissions.")
        except UnicodeDecodeError as error:
            self._fault("", f"must be UTF-8, and byte {error.start + 1} is not", "Convert it.")
        except tomllib.TOMLDecodeError as error:
            self._fault("", f"is no TOML: {error}", 'Write name = "h1.title" below [product], for example.')
        return {}

    def _matches(self, given: object, stem: str) -> tuple[str, ...]:
        if given is None:
            given = [stem, f"www.{stem}"]
        if not isinstance(given, list) or not 1 <= len(given) <= MAX_MATCHES:
            self._fault("match", f"must be a list of 1 to {MAX_MATCHES} hosts", 'Write match = ["shop.example"].')
            return ()
        found = []
        for pattern in given:
            if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
                remedy = 'Write "shop.example", or "*.shop.example" for all below it; without scheme, port and path.'
                self._fault("match", f"has {pattern!r:.80}, which is no host", remedy)
            else:
                found.append(_ascii(pattern.lower()))
        return tuple(dict.fromkeys(found))

    def _kind(self, kind: str, rules: object) -> dict[str, dict[str, Any]]:
        if not isinstance(rules, dict) or kind not in RULE_FIELDS:
            self._fault(kind, "is no kind of item", f"The kinds that rules correct are {', '.join(RULE_FIELDS)}.")
            return {}
        members = {field: self._rule(kind, field, rule) for field, rule in rules.items()}
        faults = list(faults_of(members, kind))
        if not faults:
            faults += faults_of_kind(kind, members, kind)
        for fault in faults:
            self._fault(fault.field, fault.rule, fault.remedy)
        return members

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
        if not (isinstance(example, str) and isinstance(url, str) and urlsplit_host(url)):
            remedy = f'Write {field} = {{ example = "the value", url = "https://{self._host()}/page" }}.'
            self._fault(f"{kind}.{field}", "must have both example and url, the page that has the value", remedy)
            return {"remove": True}
        self._examples.setdefault(kind, {})[field] = Example(example, url)
        kept = {name: value for name, value in rule.items() if name not in _OF_FILE}
        # With a selector, the example is what it must find on that page.
        return kept if "css" in kept or "xpath" in kept else {**kept, "example": example}

    def _host(self) -> str:
        return Path(self._shown).stem


def urlsplit_host(url: str) -> str:
    """Return the host of an http URL; "" for other texts."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.scheme in ("http", "https") else ""


def _ascii(pattern: str) -> str:
    """Return a host as requests have it: in the ASCII form of an international name."""
    try:
        return ".".join(part if part.isascii() else part.encode("idna").decode("ascii") for part in pattern.split("."))
    except UnicodeError:
        return pattern
