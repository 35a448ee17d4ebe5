"""Reading of a project's spiders in a process in its environment, which is not trusted."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from scrapy_ext.api.platform.jobs import SCRIPT, is_name
from scrapy_ext.api.platform.versions import MAX_SPIDER, SpiderList, left_out
from scrapy_ext.compatibility.python import TIMEOUT_ERRORS
from scrapy_ext.jobprocess.child import Child, Ended, Supervision, run
from scrapy_ext.jobprocess.confinement import Confinement

#: Maximum seconds of reading the spiders.
READ_SECONDS: Final = 60.0
#: Maximum bytes of the answer, and spiders.
_MAX_ANSWER: Final = 8 * 1024 * 1024
_MAX_SPIDERS: Final = 10_000
#: Maximum lines about modules that cannot be imported, and their characters.
_MAX_LINES: Final = 100
_MAX_LINE: Final = 400

_decode: Final = msgspec.json.Decoder(SpiderList).decode


class ReadingError(Exception):
    """The spiders cannot be read; the message is shown to the user of the project."""


async def read_spiders(
    python: str,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float = READ_SECONDS,
    confinement: Confinement | None = None,
) -> SpiderList:
    """Return the spiders of the project in ``folder``; raise :class:`ReadingError`."""
    receiving, sending = os.pipe()
    os.set_blocking(receiving, False)
    answer, pipe = bytearray(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def receive() -> None:
        with contextlib.suppress(BlockingIOError):
            piece = os.read(receiving, 256 * 1024)
            if len(answer) <= _MAX_ANSWER:  # the rest is discarded
                answer.extend(piece)
            if not piece:
                loop.remove_reader(receiving)
                pipe.set()

    loop.add_reader(receiving, receive)
    try:
        starting = Child.start(
            [python, "-m", "scrapy_ext.server.jobs.versions.spider_list", str(sending)],
            folder=folder,
            environment=environment,
            given=b"",
            descriptors=[sending],
            supervision=None if confinement is None else Supervision(confinement),
        )
        ended = await run(starting, seconds=seconds)
        os.close(sending)
        sending = -1
        with contextlib.suppress(*TIMEOUT_ERRORS):  # a remaining process may hold the other end
            await asyncio.wait_for(pipe.wait(), 5)
    except TIMEOUT_ERRORS:
        raise ReadingError(
            f"naming its spiders took over {seconds:g} s. Does a module do work when imported?"
        ) from None
    finally:
        loop.remove_reader(receiving)
        os.close(receiving)
        if sending >= 0:
            os.close(sending)
    return _checked(bytes(answer), ended)


def _checked(answer: bytes, ended: Ended) -> SpiderList:
    if ended.status != 0:
        raise ReadingError(f"its settings or spiders cannot be imported:\n{ended.output[-16_000:]}")
    if len(answer) > _MAX_ANSWER:
        raise ReadingError(f"the list of its spiders is over {_MAX_ANSWER} bytes")
    try:
        found = _decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ReadingError("the list of its spiders is not valid") from None
    spiders = found.spiders
    if not spiders and found.unreadable:
        raise ReadingError(f"it has no spiders, but {left_out(found.unreadable)}")
    if not spiders:
        raise ReadingError("it has no spiders. Check SPIDER_MODULES in its settings, and that the archive has them")
    if len(spiders) > _MAX_SPIDERS:
        raise ReadingError(f"it has over {_MAX_SPIDERS} spiders")
    names = Counter(spider.name for spider in spiders)
    for spider in spiders:
        if not is_name(spider.name) or spider.name.startswith(SCRIPT) or names[spider.name] > 1:
            raise ReadingError(f"{spider.name[:60]!r} cannot be the name of a spider")
        if len(msgspec.json.encode(spider)) > MAX_SPIDER:
            raise ReadingError(f"the arguments of spider {spider.name[:60]!r} take over {MAX_SPIDER} bytes")
    found.unreadable = [line[:_MAX_LINE] for line in found.unreadable[:_MAX_LINES]]
    return found
