"""Targets of deliveries: folders, S3, Google Cloud Storage and Azure, all through obstore, and those of rules.

Every object is whole or absent: a cloud shows it after its last part, and a folder after it was renamed. obstore does
not sync local files, so that is done here: a file and its folders are on the disk when :meth:`Target.put` returns.

Credentials come from the environment of the server or from its instance. They are never in a URL, and query strings,
which may have signatures, are cut from errors.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import structs

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

from scrapy_ext.api.platform.deliveries import DeliveryPreview, NewDeliveryRule, is_within, rule_of
from scrapy_ext.api.platform.formats import Format
from scrapy_ext.api.platform.rules import JobsPreview
from scrapy_ext.api.violations import refused
from scrapy_ext.formats import Compression, MissingLibraryError, check_installed

T = TypeVar("T")

#: Bytes of a part of an upload, and parts that are sent at once.
PART: Final = 5 * 1024 * 1024
_PARTS_AT_ONCE: Final = 2
#: Bytes of one piece when an object is read.
_PIECE: Final = 1024 * 1024
_CLIENT: Final[ClientConfig] = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=120)}
_RETRIES: Final[RetryConfig] = {
    "max_retries": 5,
    "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=10), "base": 2},
    "retry_timeout": timedelta(minutes=3),
}
_QUERY: Final = re.compile(r"\?[^\s\"')]*")
_LONGEST_REASON: Final = 300


class TargetError(Exception):
    """A target refuses a call, or cannot be reached."""


class ObjectMissingError(TargetError):
    """There is no such object."""


@lru_cache(maxsize=100)
def open_target(url: str) -> Target:
    """Return the target at a URL, which was checked; raise :class:`TargetError`."""
    from obstore.exceptions import BaseError

    try:
        return Target(url)
    except (BaseError, OSError, ValueError) as error:
        raise TargetError(_reason(url, error)) from None


def root_of(url: str, targets: Sequence[str]) -> str | None:
    """Return the allowed target that a URL is or is below."""
    return next((target for target in targets if is_within(url, [target])), None)


def check_target(target: str, targets: Sequence[str]) -> None:
    """Raise :class:`TargetError` for a target below no allowed one, or below one whose folder does not exist."""
    root = root_of(target, targets)
    if root is None:
        raise TargetError(f"{target} is not an allowed target: start the server with --archive-target")
    try:
        if root.startswith("file:") and not _folder_of(root).is_dir():
            raise TargetError(f"{root}: there is no such folder. Create it, or mount its file system")
    except OSError as error:
        raise TargetError(_reason(target, error)) from None


def create_folder(url: str) -> None:
    """Create the folder of a local target, which was checked; raise :class:`TargetError`."""
    if not url.startswith("file:"):
        return
    try:
        _folder_of(url).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise TargetError(_reason(url, error)) from None


def _folder_of(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


class Target:
    """A folder or a prefix in a bucket, with objects by path."""

    def __init__(self, url: str) -> None:
        # Most servers have no archive, and start without its library.
        from obstore.store import LocalStore, from_url

        self.url = url.rstrip("/")
        parts = urlsplit(url)
        #: The folder of a local target.
        self._folder: Path | None = None
        self._store: ObjectStore
        if parts.scheme == "file":
            self._folder = _folder_of(url)
            self._store = LocalStore(prefix=self._folder)
        else:
            # Servers of other makers, on the operator's own network, may have no TLS.
            is_plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
            client: ClientConfig = {**_CLIENT, "allow_http": True} if is_plain and parts.scheme == "s3" else _CLIENT
            self._store = from_url(self.url, client_options=client, retry_config=_RETRIES)

    async def put(self, path: str, pieces: AsyncIterable[bytes]) -> None:
        """Write an object, in parts of bounded memory; raise :class:`TargetError`, or the error of ``pieces``."""
        iterator = aiter(pieces)
        first: deque[bytes] = deque()
        length = 0
        async for piece in iterator:
            first.append(piece)
            length += len(piece)
            if length >= PART:
                break
        else:
            # One request instead of three.
            await self._call(self._store.put_async(path, b"".join(first), use_multipart=False))
            await self._sync(path)
            return
        failure: list[BaseException] = []

        async def rest() -> AsyncIterator[bytes]:
            try:
                while first:
                    yield first.popleft()
                async for piece in iterator:
                    yield piece
            except Exception as error:
                failure.append(error)
                raise

        try:
            await self._call(self._store.put_async(path, rest(), chunk_size=PART, max_concurrency=_PARTS_AT_ONCE))
        except Exception as error:
            raise (failure[0] if failure else error) from None
        await self._sync(path)

    async def create(self, path: str, data: bytes) -> None:
        """Write an object that does not exist; raise :class:`TargetError` if it does."""
        await self._call(self._store.put_async(path, data, mode="create", use_multipart=False))
        await self._sync(path)

    async def read(self, path: str) -> AsyncIterator[bytes]:
        """Yield the contents of an object; raise :class:`TargetError`."""
        found = await self._call(self._store.get_async(path))
        stream = aiter(found.stream(min_chunk_size=_PIECE))
        while (piece := await self._call(anext(stream, None))) is not None:
            yield bytes(piece)

    async def remove_folder(self, path: str, first: str) -> None:
        """Remove all objects in a folder, ``first`` before the others; raise :class:`TargetError`."""
        if self._folder is not None:
            # With the temporary files of interrupted writes, which obstore does not list.
            await asyncio.to_thread(_remove_local, self._folder / path, first)
            return
        found = [f"{path}/{first}"]
        pages = aiter(self._store.list(prefix=f"{path}/"))
        while (page := await self._call(anext(pages, None))) is not None:
            found += [entry["path"] for entry in page if entry["path"] != found[0]]
        for name in found:
            try:
                await self._call(self._store.delete_async(name))
            except ObjectMissingError:
                continue

    async def _call(self, call: Awaitable[T]) -> T:
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            return await call
        except FileNotFoundError as error:
            raise ObjectMissingError(_reason(self.url, error)) from None
        except (AlreadyExistsError, BaseError, OSError) as error:
            raise TargetError(_reason(self.url, error)) from None

    async def _sync(self, path: str) -> None:
        if self._folder is not None:
            try:
                await asyncio.to_thread(_complete_local, self._folder, self._folder / path)
            except OSError as error:
                raise TargetError(_reason(self.url, error)) from None


def _reason(url: str, error: Exception) -> str:
    """Return the first line of an error, without query strings."""
    line = str(error).strip().partition("\n")[0] or type(error).__name__
    return f"{url}: {_QUERY.sub('', line)[:_LONGEST_REASON]}"


def _complete_local(root: Path, file: Path) -> None:
    """Make a file private, and sync it and every folder from its own up to the root, which may all be new."""
    file.chmod(0o600)
    path = file
    while True:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if path == root:
            return
        path = path.parent


def _remove_local(folder: Path, first: str) -> None:
    try:
        (folder / first).unlink(missing_ok=True)
        if folder.is_dir():
            shutil.rmtree(folder)
    except OSError as error:
        raise TargetError(f"{folder}: {error.strerror or error}") from None


class ArchiveTargets(NamedTuple):
    """The URLs that the operator allows rules to deliver to."""

    urls: tuple[str, ...] = ()

    def rule_of(self, fields: Mapping[str, Any]) -> NewDeliveryRule:
        """Return the rule with these fields; raise :class:`ContractError` for one that this server cannot apply."""
        new = rule_of(fields)
        if not is_within(new.target, self.urls):
            remedy = (
                f"Targets of this server: {', '.join(self.urls)}."
                if self.urls
                else "Its operator adds --archive-target."
            )
            raise refused("target", "is not one that this server may deliver to", remedy)
        try:
            check_installed(Format.JSON_LINES, Compression(new.compression))
            if new.parquet:
                check_installed(Format.PARQUET, Compression.NONE)
        except MissingLibraryError as error:
            raise refused("parquet", "is not supported by this server", str(error)) from None
        return new

    async def preview(self, rule: NewDeliveryRule, found: JobsPreview) -> DeliveryPreview:
        """Return the preview of a rule for which these jobs were found, with the reason for which it would wait."""
        try:
            await asyncio.to_thread(check_target, rule.target, self.urls)
        except TargetError as error:
            failure: str | None = str(error)
        else:
            failure = None
        return DeliveryPreview(**structs.asdict(found), failure=failure)
