"""A :class:`scrapy.Request` as JSON, and back, so that another process can run it.

The JSON is an object with ``v`` (the version of this form), every attribute that differs from that of
``Request(url)``, under the names of Scrapy, and ``parent`` (:mod:`scrapy_ext.crawl.frontier.marks`). Callback and
errback are names of spider methods. Values that JSON lacks are tagged objects: ``{"$type": "tuple", "value": [1, 2]}``.

Nothing is pickled and nothing is guessed. A request that this form cannot hold exactly raises
:class:`NotSerializableError`, and stays in the process that made it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from inspect import ismethod
from operator import attrgetter
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

from scrapy import Request, Spider
from scrapy.http import FormRequest, Headers, JsonRequest, XmlRpcRequest

from scrapy_ext.crawl.commit.tracking import RETURNED_KEY
from scrapy_ext.crawl.frontier.marks import AddedValue, from_stored, is_added, lines_of, to_stored
from scrapy_ext.crawl.session.scrapy_engine import values_of

VERSION: Final = 1

#: Meta keys of this package or of Scrapy's downloader, which only have a meaning in one process.
LOCAL_META: Final = frozenset({RETURNED_KEY, "download_latency"})

#: Classes that a stored request can name. A stored name never causes an import.
_CLASSES: Final[dict[str, type[Request]]] = {
    cls.__name__: cls for cls in (Request, FormRequest, JsonRequest, XmlRpcRequest)
}
_TAG: Final = "$type"
#: Limits of a whole number in JSON.
_LEAST, _MOST = -(2**63), 2**63 - 1
_MICROSECOND: Final = timedelta(microseconds=1)
_DEFAULT: Final = Request("data:,")
_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "method": str,
    "encoding": str,
    "priority": int,
    # Spiders set it to any true value.
    "dont_filter": bool,
}
_plain_values: Final[Callable[[Request], tuple[Any, ...]]] = attrgetter(*_PLAIN)
_PLAIN_DEFAULTS: Final = _plain_values(_DEFAULT)
_JSON_OPTIONS: Final = JsonRequest(_DEFAULT.url).dumps_kwargs


class NotSerializableError(ValueError):
    """A request with a value that JSON cannot hold; the message names the attribute and the reason."""


class UnreadableRequestError(ValueError):
    """A stored request that this spider cannot run: of another version, or with a callback that does not exist."""


def request_to_json(request: Request, spider: Spider) -> dict[str, Any]:
    """Return the JSON form of a request, to be encoded at once, since it may have members of the request itself; raises
    :class:`NotSerializableError`."""
    stored: dict[str, Any] = {"v": VERSION, "url": request.url}
    cls = type(request)
    if cls is not Request:
        if _CLASSES.get(cls.__name__) is not cls:
            raise NotSerializableError(f"its class {cls.__module__}.{cls.__qualname__} is not one of Scrapy's own")
        stored["class"] = cls.__name__
    plain = _plain_values(request)
    if plain != _PLAIN_DEFAULTS:
        stored |= {
            name: converted
            for (name, convert), value, default in zip(_PLAIN.items(), plain, _PLAIN_DEFAULTS, strict=True)
            if (converted := convert(value)) != default
        }
    for name in ("callback", "errback"):
        function = getattr(request, name)
        if function is not None:
            stored[name] = _method_name(spider, function, name)
    if request.body:
        stored["body"] = _encode_body(request.body)
    headers, cookies, flags, meta, cb_kwargs = values_of(request)
    if headers:
        stored["headers"] = _headers(headers)
    if cookies:
        stored["cookies"] = _encode(cookies, "cookies")
    if flags:
        stored["flags"] = _encode(list(flags), "flags")
    if meta and (kept := {key: value for key, value in meta.items() if key not in LOCAL_META}):
        stored["meta"] = _encode_members_of(kept, "meta")
    if cb_kwargs:
        stored["cb_kwargs"] = _encode_members_of(cb_kwargs, "cb_kwargs")
    if isinstance(request, JsonRequest) and request.dumps_kwargs != _JSON_OPTIONS:
        stored["dumps_kwargs"] = _encode(request.dumps_kwargs, "dumps_kwargs")
    return to_stored(request, stored)


def request_from_json(stored: object, spider: Spider) -> Request:
    """Return the request of a JSON form; raises :class:`UnreadableRequestError`."""
    if not isinstance(stored, dict) or stored.get("v") != VERSION:
        version = stored.get("v") if isinstance(stored, dict) else None
        raise UnreadableRequestError(f"its form has version {version!r}, this package reads {VERSION}")
    try:
        cls = _CLASSES[stored.get("class", "Request")]
        arguments: dict[str, Any] = {name: stored[name] for name in _PLAIN if name in stored}
        for name in ("cookies", "flags", "meta", "cb_kwargs", "dumps_kwargs"):
            if name in stored:
                arguments[name] = _decode(stored[name])
        if "headers" in stored:
            arguments["headers"] = {
                key.encode("latin-1"): [value.encode("latin-1") for value in values]
                for key, values in stored["headers"].items()
            }
        if "body" in stored:
            arguments["body"] = _decode_body(stored["body"])
        for name in ("callback", "errback"):
            if name in stored:
                arguments[name] = _method(spider, stored[name])
        # Some subclasses have defaults of their own.
        arguments.setdefault("dont_filter", False)
        request = cls(stored["url"], **arguments)
        from_stored(request, stored)
        return request
    except UnreadableRequestError:
        raise
    except Exception as error:  # A stored value may be anything; each decoder has errors of its own.
        raise UnreadableRequestError(f"{type(error).__name__}: {error}") from error


def _method_name(spider: Spider, function: Callable[..., Any], attribute: str) -> str:
    if ismethod(function) and function.__self__ is spider:
        name = function.__func__.__name__
        if getattr(spider, name, None) == function:
            return name
        bases: object = type(spider).__mro__
        other = _name_in_class(bases, function.__func__)
        if other is not None and getattr(spider, other, None) == function:
            return other
    raise NotSerializableError(f"its {attribute} {function!r} is not a method of the spider")


@lru_cache(maxsize=1000)
def _name_in_class(bases: tuple[type, ...], function: Callable[..., Any]) -> str | None:
    """Return the name of a method that differs from its function's own, as that of a private method or an alias."""
    return next((name for base in bases for name, value in vars(base).items() if value is function), None)


def _method(spider: Spider, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] | None = getattr(spider, name, None) if isinstance(name, str) else None
    if not callable(method):
        raise UnreadableRequestError(f"spider {spider.name!r} has no method {name!r}")
    return method


def _encode_body(body: bytes) -> Any:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return _tagged("bytes", base64.b64encode(body).decode())


def _decode_body(stored: object) -> bytes:
    return stored.encode() if isinstance(stored, str) else bytes(_decode(stored))


def _tagged(type: str, value: object) -> dict[str, Any]:
    return {_TAG: type, "value": value}


def _headers(headers: Headers) -> dict[str, list[str]]:
    return {
        key.decode("latin-1"): [value.decode("latin-1") for value in values if value is not None]
        for key, values in lines_of(headers)
        # Scrapy adds them again.
        if not is_added(values)
    }


def _encode_members_of(value: dict[Any, Any], place: str) -> Any:
    return value if _is_plain(value) else _encode(value, place)


def _is_plain(value: dict[Any, Any]) -> bool:
    """Return true if JSON has all members of a dict as they are, as of most: a look at them is faster than a copy."""
    for key, member in value.items():
        kind = type(member)
        is_plain = (
            member.isascii()
            if kind is str
            else member is None or kind is bool or (kind is int and _LEAST <= member <= _MOST)
        )
        if not is_plain or type(key) is not str or key == _TAG or not key.isascii():
            return False
    return True


def _encode(value: object, place: str) -> Any:
    encode = _ENCODERS.get(type(value))
    if encode is None:
        cls = type(value)
        if isinstance(value, str) and not isinstance(value, Enum):
            # A text of lxml has a reference to its element, as the link texts of CrawlSpider; it equals its characters.
            return _encode_text(str.__str__(value), place)
        if isinstance(value, AddedValue):
            return _encode(bytes(value), place)
        raise NotSerializableError(f"its {place} holds a {cls.__module__}.{cls.__qualname__}, which JSON cannot hold")
    try:
        return encode(value, place)
    except RecursionError:
        raise NotSerializableError(f"its {place} is nested too deep or contains itself") from None


def _encode_text(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotSerializableError(f"its {place} holds text that is not Unicode") from None
    return value


def _encode_int(value: int, _place: str) -> Any:
    return value if _LEAST <= value <= _MOST else _tagged("int", str(value))


def _encode_float(value: float, _place: str) -> Any:
    return value if math.isfinite(value) else _tagged("float", repr(value))


def _encode_mapping(value: Mapping[Any, Any], place: str) -> Any:
    if all(type(key) is str for key in value) and _TAG not in value:
        return {_encode_text(key, place): _encode(member, f"{place}[{key!r}]") for key, member in value.items()}
    return _tagged("dict", [[_encode(key, place), _encode(member, place)] for key, member in value.items()])


def _encode_members(value: Any, place: str) -> list[Any]:
    return [_encode(member, place) for member in value]


def _encode_time(value: datetime | time, place: str) -> Any:
    """Return ISO 8601 where it holds the whole value: it lacks the zone, the name of an offset and the fold.

    A zone of another library with one offset, such as pytz's UTC, comes back as a ``timezone`` of that offset and name.
    """
    if (fixed := _fixed(value.tzinfo)) is not None:
        value = value.replace(tzinfo=fixed)
    if not value.fold and (value.tzinfo is None or _is_plain_offset(value.tzinfo)):
        return _tagged(type(value).__name__, value.isoformat())
    local = value.replace(tzinfo=None, fold=0).isoformat()
    return _tagged(f"{type(value).__name__} in zone", [local, value.fold, _encode(value.tzinfo, place)])


def _decode_in_zone(cls: type[datetime] | type[time], stored: list[Any]) -> datetime | time:
    local, fold, zone = stored
    return cls.fromisoformat(local).replace(fold=fold, tzinfo=_decode(zone))


def _fixed(zone: tzinfo | None) -> timezone | None:
    """Return the offset and the name of a zone of another library, if it has one for all times."""
    if zone is None or type(zone) in (timezone, ZoneInfo):
        return None
    try:
        offset, name = zone.utcoffset(None), zone.tzname(None)
    except (AttributeError, NotImplementedError, TypeError):  # a zone that needs a time
        return None
    if offset is None:
        return None
    return timezone(offset) if name is None else timezone(offset, name)


def _is_plain_offset(zone: tzinfo) -> bool:
    return type(zone) is timezone and len(_parts_of(zone)) == 1


def _parts_of(zone: timezone) -> tuple[Any, ...]:
    """Return the offset of a timezone, and its name if it was given one: `tzname` makes one of the offset."""
    parts: tuple[Any, ...] = zone.__getinitargs__()  # type: ignore[attr-defined]
    return parts


def _encode_timezone(value: timezone, place: str) -> Any:
    offset, *name = _parts_of(value)
    return _tagged("timezone", [offset // _MICROSECOND, *_encode_members(name, place)])


def _decode_timezone(stored: list[Any]) -> timezone:
    offset, *name = stored
    return timezone(offset * _MICROSECOND, *name)


def _encode_zone(value: ZoneInfo, place: str) -> Any:
    if value.key is None:
        raise NotSerializableError(f"its {place} holds a zone that was read from a file, which JSON cannot hold")
    return _tagged("zone", value.key)


def _encode_path(value: PurePath, place: str) -> Any:
    return _tagged(type(value).__name__, _encode_text(str(value), place))


def _decode_uuid(stored: list[Any]) -> UUID:
    text, is_safe = stored
    return UUID(text, is_safe=SafeUUID(is_safe))


#: Each class is stored by its name: a path of this system is not one of another.
_PATHS: Final = (PurePosixPath, PureWindowsPath, type(Path()))
_ENCODERS: Final[dict[type, Callable[[Any, str], Any]]] = {
    type(None): lambda value, _place: value,
    bool: lambda value, _place: value,
    int: _encode_int,
    float: _encode_float,
    str: _encode_text,
    list: _encode_members,
    dict: _encode_mapping,
    tuple: lambda value, place: _tagged("tuple", _encode_members(value, place)),
    set: lambda value, place: _tagged("set", _encode_members(value, place)),
    frozenset: lambda value, place: _tagged("frozenset", _encode_members(value, place)),
    bytes: lambda value, _place: _tagged("bytes", base64.b64encode(value).decode()),
    datetime: _encode_time,
    time: _encode_time,
    timedelta: lambda value, _place: _tagged("timedelta", [value.days, value.seconds, value.microseconds]),
    timezone: _encode_timezone,
    ZoneInfo: _encode_zone,
    date: lambda value, _place: _tagged("date", value.isoformat()),
    Decimal: lambda value, _place: _tagged("decimal", str(value)),
    UUID: lambda value, _place: _tagged("uuid", [str(value), value.is_safe.value]),
    **dict.fromkeys(_PATHS, _encode_path),
}

_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": int,
    "float": float,
    "dict": lambda pairs: {_decode(key): _decode(value) for key, value in pairs},
    "tuple": lambda members: tuple(_decode(member) for member in members),
    "set": lambda members: {_decode(member) for member in members},
    "frozenset": lambda members: frozenset(_decode(member) for member in members),
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "datetime in zone": lambda stored: _decode_in_zone(datetime, stored),
    "time": time.fromisoformat,
    "time in zone": lambda stored: _decode_in_zone(time, stored),
    "timedelta": lambda parts: timedelta(*parts),
    "timezone": _decode_timezone,
    "zone": ZoneInfo,
    "date": date.fromisoformat,
    "decimal": Decimal,
    "uuid": _decode_uuid,
    **{cls.__name__: cls for cls in _PATHS},
}


def _decode(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_decode(member) for member in stored]
    if isinstance(stored, dict):
        if _TAG in stored:
            return _DECODERS[stored[_TAG]](stored["value"])
        return {key: _decode(value) for key, value in stored.items()}
    return stored
