"""Warnings about settings and request meta that nothing reads: names with a typo, names of scrapy-zyte-api, and keys of
services whose address is not set.

There is at most one warning for each name and crawl. A name is reported if it begins with EXTRACT_API_ or
``extract_api``, the prefixes of this package, or if it is nearly one of its names, in any case; other names of users
and packages are ignored. The warning says only that scrapy-ext does not read the name: a project may have a setting of
its own that resembles one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from scrapy.settings import BaseSettings, default_settings
from scrapy.utils.project import ENVVAR

from scrapy_ext import environment
from scrapy_ext import settings as names
from scrapy_ext.crawl.session import zyte_api_names
from scrapy_ext.settings import SETTINGS, VARIABLES, SettingError

logger = logging.getLogger(__name__)

#: Every meta key that users set.
META_KEYS: Final = (
    "extract_api",
    "extract_api_automap",
    "extract_api_escalate",
    "extract_api_retry_policy",
    "frontier_max_attempts",
    "frontier_not_before",
    "frontier_slot",
)
#: Settings that can name components of scrapy-zyte-api.
_COMPONENTS: Final = ("ADDONS", "DOWNLOAD_HANDLERS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES")
#: Prefixes that no other package has.
_OUR_SETTINGS: Final = "EXTRACT_API_"
_OUR_META: Final = "extract_api"
#: Prefixes of settings and environment variables that may be meant for this package.
_PREFIXES: Final = (_OUR_SETTINGS, "PLATFORM_", "FRONTIER_", "SERVER_", "DUPEFILTER_")
_OF_ENVIRONMENT: Final = (_OUR_SETTINGS, "PLATFORM_")
#: Similarity from which the rest of a name after such a prefix counts as a typo: that of KEY and API_KEY.
_ALIKE: Final = 0.6
#: Similarity for a whole meta key: frontier_slots and frontier_slot have 0.96, extract_data and extract_api 0.78.
_ALIKE_META: Final = 0.82
#: Similarity for a whole setting with the typo in its prefix; that of PLATFROM_URL and PLATFORM_URL is 0.92.
_VERY_ALIKE: Final = 0.9
#: Limit of the remembered meta keys. Those of a spider that generates more are not checked any more.
_MOST_KEYS: Final = 10_000


class UnknownNames:
    def __init__(self, settings: BaseSettings) -> None:
        self._settings = settings
        self._seen: set[Any] = set(META_KEYS)
        self._is_zyte_api: bool | None = None

    @property
    def _is_zyte_api_used(self) -> bool:
        """Return true if scrapy-zyte-api is active as well, so that its names are read."""
        if self._is_zyte_api is None:
            self._is_zyte_api = any(map(_is_of_zyte_api, _components(self._settings)))
        return self._is_zyte_api

    def check_settings(self) -> None:
        """Warn of settings, environment variables and keys that nothing reads. Call it once."""
        defaults = vars(default_settings)
        given = [name for name in self._settings if name not in SETTINGS and name not in defaults]
        module = sys.modules.get(os.environ.get(ENVVAR, ""))
        given += _not_in_capitals(vars(module) if module is not None else {})
        for warning in _of_settings(given, is_zyte_api_used=self._is_zyte_api_used):
            logger.warning(warning)
        for warning in of_environment(os.environ):
            logger.warning(warning)
        for warning in _of_keys(self._settings):
            logger.warning(warning)

    def check_dotenv(self) -> None:
        """Warn of variables of the project's ``.env`` that nothing reads. Call it once."""
        path = environment.dotenv_file()
        if path is not None:
            for warning in of_dotenv(environment.names_in(path)):
                logger.warning(warning)

    def check_meta(self, meta: Mapping[Any, Any]) -> None:
        """Warn of keys of a request's meta that nothing reads. For most requests this costs one comparison of sets."""
        if not self._seen.issuperset(meta):
            self._check_unseen(meta)

    def _check_unseen(self, meta: Mapping[Any, Any]) -> None:
        if len(self._seen) > _MOST_KEYS:
            return
        for name in [key for key in meta if key not in self._seen]:
            self._seen.add(name)
            if isinstance(name, str) and (warning := self._of_meta(name)):
                logger.warning(warning)

    def _of_meta(self, name: str) -> str:
        if name.startswith(zyte_api_names.META_PREFIX):
            return "" if self._is_zyte_api_used else _theirs(f"The meta key {name}", name, zyte_api_names.META)
        if name.upper() in SETTINGS and not _nearest(name, META_KEYS, _VERY_ALIKE):
            return f"The meta key {name} is not read by scrapy-ext. {name.upper()} is a setting, for all requests."
        near = _nearest(name.lower(), META_KEYS, _ALIKE_META) or _reordered(name, META_KEYS)
        if near or name.lower().startswith(_OUR_META):
            return f"The meta key {name} is not read by scrapy-ext.{_did_you_mean(near)}"
        return ""


def _of_settings(given: Iterable[str], *, is_zyte_api_used: bool) -> Iterator[str]:
    for name in given:
        if name.startswith(zyte_api_names.SETTING_PREFIX):
            if not is_zyte_api_used:
                yield _theirs(f"The setting {name}", name, zyte_api_names.SETTINGS)
            continue
        near = _nearest_setting(name.upper(), SETTINGS)
        if near or name.upper().startswith(_OUR_SETTINGS):
            yield f"The setting {name} is not read by scrapy-ext.{_did_you_mean(near)}"


def _not_in_capitals(module: Mapping[str, Any]) -> list[str]:
    """Return settings of this package that a module defines in lower case, so that Scrapy ignores them."""
    return [name for name in module if not name.isupper() and name.upper() in SETTINGS and name.upper() not in module]


def of_environment(given: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each variable that looks like one of this package and is none."""
    read = [name for name, setting in SETTINGS.items() if setting.environment]
    for name in given:
        if not name.startswith(_OF_ENVIRONMENT) or name in VARIABLES:
            continue
        if name in SETTINGS:
            yield f"The environment variable {name} is not read. Set {name} in settings.py or with -s."
            continue
        near = _nearest_setting(name, read)
        if near or name.startswith(_OUR_SETTINGS):
            yield f"The environment variable {name} is not read by scrapy-ext.{_did_you_mean(near)}"


def _of_keys(settings: BaseSettings) -> Iterator[str]:
    """Yield a warning for each key of a service that is set without its address."""
    services = ((names.EXTRACT_API_KEY, (names.EXTRACT_API_URL,)), (names.PLATFORM_API_KEY, names.PLATFORM_ADDRESSES))
    for key, addresses in services:
        # The session reports values that cannot be read.
        with contextlib.suppress(SettingError):
            if key.read(settings) and not any(address.read(settings) for address in addresses):
                yield f"{key.name} has no effect without {addresses[0].name}: the embedded service is used."


def of_dotenv(given: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each variable of a ``.env`` that looks like one of this package and is none.

    The file belongs to the project, so that typos in prefixes count too."""
    for name in given:
        if name in SETTINGS and name not in VARIABLES:
            yield f"The variable {name} in .env is not read. Set {name} in settings.py or with -s."
        elif name not in VARIABLES:
            near = _nearest_setting(name, VARIABLES)
            if near or name.startswith(_OUR_SETTINGS):
                yield f"The variable {name} in .env is not read by scrapy-ext.{_did_you_mean(near)}"


def _nearest_setting(name: str, known: Collection[str]) -> str:
    """Return the known setting most similar to a name, empty if none is. After a common prefix, the rest is
    compared."""
    prefix = next(filter(name.startswith, _PREFIXES), "")
    if not prefix:
        return _nearest(name, known, _VERY_ALIKE)
    rests = [each.removeprefix(prefix) for each in known if each.startswith(prefix)]
    near = _nearest(name.removeprefix(prefix), rests, _ALIKE)
    return prefix + near if near else ""


def _nearest(name: str, known: Collection[str], likeness: float) -> str:
    """Return the known name most similar to a name, empty if none is."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=likeness)), "")


def _reordered(name: str, known: Collection[str]) -> str:
    """Return the known name with the same words in another order, empty if there is none."""
    return next((each for each in known if _words(each) == _words(name)), "")


def _words(name: str) -> list[str]:
    return sorted(re.split(r"[\W_]+", name.lower()))


def _did_you_mean(near: str) -> str:
    return f" Did you mean {near}?" if near else " Remove it, or see the list of names in the documentation."


def _theirs(subject: str, name: str, table: Mapping[str, zyte_api_names.Equivalent]) -> str:
    ours, note = zyte_api_names.equivalent(name, table)
    remedy = f"Use {ours} instead." if ours else "scrapy-ext has no equivalent."
    return " ".join(filter(None, (f"{subject} is of scrapy-zyte-api, which is not active.", remedy, note)))


def _components(settings: BaseSettings) -> Iterator[Any]:
    """Yield the components that settings name and do not switch off."""
    for setting in _COMPONENTS:
        for key, value in settings.getdict(setting).items():
            if value is not None:
                yield from (key, value)


def _is_of_zyte_api(component: object) -> bool:
    name = component if isinstance(component, str) else getattr(component, "__module__", "")
    return isinstance(name, str) and name.split(".")[0] == "scrapy_zyte_api"
