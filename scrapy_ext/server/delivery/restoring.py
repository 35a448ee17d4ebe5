"""Restores of archived jobs: objects are read, compared with the manifest, and written back with indexes and times.

``store.restores`` has the states and their invariants. A restore runs in the server that received the request. It ends
with the server, and can be started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, NoReturn

import msgspec

from scrapy_ext.api.compression import DamagedError, Inflater
from scrapy_ext.api.platform.deliveries import MANIFEST, is_within
from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.api.violations import ContractError
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.delivery import manifest as manifests
from scrapy_ext.server.delivery.manifest import DeliveredObject, DeliveredRecords, Manifest
from scrapy_ext.server.delivery.targets import Target, TargetError, open_target
from scrapy_ext.server.store import Store, StoreError
from scrapy_ext.server.store.read_ahead import ahead, closing, in_thread
from scrapy_ext.server.store.records.chunks import MAX_LINES
from scrapy_ext.server.store.records.progress import Layout
from scrapy_ext.server.store.records.segments import Segment, StoredChunk, pack_segments
from scrapy_ext.server.store.restores import Restore, RestoreLostError

#: Maximum bytes of a manifest.
_LARGEST_MANIFEST: Final = 64 * 1024 * 1024
#: Bytes of inflated text that are split at once.
_TEXT: Final = 512 * 1024
#: Maximum bytes of a line: a record has 1 MiB at most as it is sent, and six times as many with all characters escaped.
_LONGEST_LINE: Final = 16 * 1024 * 1024
#: Maximum chunks of one transaction, and their bytes beside the last one.
_CHUNKS: Final = 32
_BYTES: Final = 1024 * 1024
#: Chunks that are compressed at once.
_PACKED_AHEAD: Final = 2
#: Seconds between two polls for the end of a removal.
_POLL: Final = 0.05
_ZSTD_WINDOW: Final = 27

_decode_layout: Final = msgspec.json.Decoder(Layout).decode

logger = logging.getLogger(__name__)


class NotRestorableError(Exception):
    """An archive cannot be restored: objects are missing or changed."""


class Restores:
    """Restores that run in this server, from the targets that its operator allows."""

    def __init__(self, store: Store, targets: Sequence[str]) -> None:
        self._store = store
        self._targets = targets
        self._running: set[asyncio.Task[None]] = set()

    async def start(self, key: JobKey) -> None:
        """Start the restore of a job; raise :class:`ContractError` when it cannot start."""
        restore = await self._store.restores.claim(key)
        task = asyncio.create_task(self._run(restore))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Interrupt the restores; they can be repeated."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _run(self, restore: Restore) -> None:
        try:
            await self._restore(restore)
        except RestoreLostError:
            logger.info("The restore of job %s has ended: the job was deleted, or it is restored again", restore.key)
            await self._fail(restore, "The job or its archive has changed.")
        except asyncio.CancelledError:
            await self._fail(restore, "The server was stopped. Restore the job again.")
            raise
        except (NotRestorableError, TargetError, StoreError, ContractError) as error:
            logger.warning("Job %s was not restored: %s", restore.key, error)
            await self._fail(restore, str(error))
        except Exception as error:
            logger.exception("Job %s was not restored", restore.key)
            await self._fail(restore, f"Unexpected error: {type(error).__name__}. The server's log has more.")

    async def _fail(self, restore: Restore, failure: str) -> None:
        # Otherwise it expires.
        with contextlib.suppress(StoreError):
            await self._store.restores.fail(restore, failure)
            self._store.deleted.set()

    async def _restore(self, restore: Restore) -> None:
        while not await self._store.restores.prepare(restore):
            self._store.deleted.set()
            await asyncio.sleep(_POLL)
        manifests_by_folder: dict[str, tuple[Target, str, Manifest]] = {}
        for kind, (archive, records) in restore.archives.items():
            if archive not in manifests_by_folder:
                manifests_by_folder[archive] = await self._manifest(restore.key, archive)
            target, folder, manifest = manifests_by_folder[archive]
            delivered = manifest.kinds.get(kind)
            if delivered is None or delivered.records != records:
                raise NotRestorableError(f"{archive}/{MANIFEST} has not the {records} {kind} that the job had")
            await self._write(restore, kind, delivered, target, folder)
        await self._store.restores.finish(restore)
        logger.info("Job %s was restored", restore.key)

    async def _manifest(self, key: JobKey, archive: str) -> tuple[Target, str, Manifest]:
        """Return the target of an archive, its folder there, and its manifest, which is that of the delivery."""
        root = next((url.rstrip("/") for url in self._targets if is_within(archive, [url])), None)
        if root is None:
            raise NotRestorableError(f"{archive} is in no allowed target: start the server with --archive-target")
        target, folder = open_target(root), archive[len(root) + 1 :]
        data = bytearray()
        async for piece in target.read(f"{folder}/{MANIFEST}"):
            data += piece
            if len(data) > _LARGEST_MANIFEST:
                raise NotRestorableError(f"{archive}/{MANIFEST} is too large")
        expected = await self._store.deliveries.manifest(key, archive)
        if expected is not None and hashlib.sha256(data).hexdigest() != expected:
            raise NotRestorableError(f"{archive}/{MANIFEST} was changed")
        try:
            manifest = manifests.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NotRestorableError(f"{archive}/{MANIFEST} is damaged: {error}") from None
        if manifest.version > manifests.VERSION or manifest.job != str(key):
            raise NotRestorableError(f"{archive}/{MANIFEST} is of a newer version, or of another job")
        return target, folder, manifest

    async def _write(
        self, restore: Restore, kind: str, delivered: DeliveredRecords, target: Target, folder: str
    ) -> None:
        """Write the records of a kind, and compare them with the manifest before they become readable."""
        start = delivered.start
        async with (
            closing(_lines(target, folder, delivered)) as pages,
            closing(_lines(target, folder, delivered.times)) as layouts,
            _Writes(self._store, restore, kind) as writes,
        ):
            lines = _Lines(pages)
            packed = ahead(_segments(lines, layouts), functools.partial(in_thread, pack_segments), _PACKED_AHEAD)
            async with closing(packed) as chunks:
                async for chunk in chunks:
                    await writes.add(start, chunk)
                    start += chunk.records
                    if start - delivered.start > delivered.records:
                        break
            if await lines.any_left() or start - delivered.start != delivered.records:
                raise NotRestorableError(f"{delivered.object} has not the {delivered.records} records of its manifest")


class _Writes:
    """Transactions of some chunks each. The next chunks are read and compressed during a transaction."""

    def __init__(self, store: Store, restore: Restore, kind: str) -> None:
        self._store = store
        self._restore = restore
        self._kind = kind
        self._chunks: list[tuple[int, StoredChunk]] = []
        self._bytes = 0
        self._writing: asyncio.Task[None] | None = None

    async def add(self, start: int, chunk: StoredChunk) -> None:
        """Add a chunk with the index of its first record."""
        self._chunks.append((start, chunk))
        self._bytes += len(chunk.body)
        if len(self._chunks) >= _CHUNKS or self._bytes >= _BYTES:
            await self._begin()

    async def _begin(self) -> None:
        """Begin to write the chunks after those before them were written."""
        if self._writing is not None:
            await self._writing
        chunks, self._chunks, self._bytes = self._chunks, [], 0
        self._writing = asyncio.create_task(self._store.restores.write(self._restore, self._kind, chunks))

    async def __aenter__(self) -> _Writes:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        if error is None and self._chunks:
            await self._begin()
        if self._writing is None:
            return
        # A restore that has failed is over when its last transaction is.
        await asyncio.wait([self._writing])
        failure = self._writing.exception()
        if error is None and failure is not None:
            raise failure


class _Lines:
    """Lines of an object, taken chunk by chunk."""

    def __init__(self, pages: AsyncIterator[list[bytes]]) -> None:
        self._pages = pages
        self._lines: list[bytes] = []
        self._at = 0

    async def take(self, layout: Layout) -> list[Segment]:
        """Return the next lines, with the times of a layout."""
        number = sum(part for part, _ in layout)
        while len(self._lines) - self._at < number:
            if (page := await anext(self._pages, None)) is None:
                raise NotRestorableError("The archive has fewer records than times")
            self._lines = self._lines[self._at :] + page
            self._at = 0
        segments = []
        for part, ts in layout:
            segments.append(Segment(ts, self._lines[self._at : self._at + part]))
            self._at += part
        return segments

    async def any_left(self) -> bool:
        """Return true when there are more lines; reads the object to its end, where its hash is compared."""
        return self._at < len(self._lines) or await anext(self._pages, None) is not None


async def _segments(lines: _Lines, layouts: AsyncIterator[list[bytes]]) -> AsyncIterator[list[Segment]]:
    """Yield the lines of each chunk."""
    async for page in layouts:
        for layout in map(_layout, page):
            yield await lines.take(layout)


def _layout(line: bytes) -> Layout:
    try:
        layout = _decode_layout(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotRestorableError(f"The times of the records are damaged: {error}") from None
    if any(number <= 0 for number, _ in layout) or not 0 < sum(number for number, _ in layout) <= MAX_LINES:
        raise NotRestorableError("The times of the records are damaged")
    return layout


async def _lines(target: Target, folder: str, delivered: DeliveredObject) -> AsyncIterator[list[bytes]]:
    """Yield the lines of an object; raise :class:`NotRestorableError` at its end if it is not that of the manifest."""
    digest, size, text = hashlib.sha256(), 0, _Text(_inflater(delivered.object))
    async for piece in target.read(f"{folder}/{delivered.object}"):
        size += len(piece)
        if size > delivered.size:
            _refuse(delivered, "it is longer")
        await in_data_thread(digest.update, piece)
        pages = text.pages(piece)
        try:
            while (lines := await in_data_thread(next, pages, None)) is not None:
                yield lines
        except (DamagedError, EOFError) as error:
            _refuse(delivered, str(error))
    if size != delivered.size or digest.hexdigest() != delivered.sha256 or text.rest:
        _refuse(delivered, "its contents have changed")


class _Text:
    """Lines of a compressed text, inflated in steps of bounded memory. ``rest``: the beginning of the next line."""

    def __init__(self, inflater: Any) -> None:
        self._inflater = inflater
        self.rest = b""

    def pages(self, data: bytes) -> Iterator[list[bytes]]:
        """Yield the lines that further data completes."""
        pieces, held = [self.rest], 0
        for piece in self._inflater.feed(data):
            pieces.append(piece)
            held += len(piece)
            if held >= _TEXT:
                yield self._lines(pieces)
                pieces, held = [self.rest], 0
        if lines := self._lines(pieces):
            yield lines

    def _lines(self, pieces: list[bytes]) -> list[bytes]:
        *lines, self.rest = b"".join(pieces).split(b"\n")
        if len(self.rest) > _LONGEST_LINE:
            raise DamagedError(f"it has a line of more than {_LONGEST_LINE} bytes")
        return lines


def _refuse(delivered: DeliveredObject, reason: str) -> NoReturn:
    raise NotRestorableError(f"{delivered.object} is not the object of its manifest: {reason}") from None


def _inflater(name: str) -> Any:
    return _ZstdInflater() if name.endswith(".zst") else Inflater(sys.maxsize)


class _ZstdInflater:
    def __init__(self) -> None:
        # With the first such object: the library takes half a megabyte of memory.
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd

        self._error = zstd.ZstdError
        self._stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the next output; raise :class:`DamagedError`."""
        try:
            yield self._stream.decompress(data, _TEXT)
            while not self._stream.needs_input and not self._stream.eof:
                yield self._stream.decompress(b"", _TEXT)
        except self._error as error:
            raise DamagedError(str(error)) from None
