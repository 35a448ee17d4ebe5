"""The process that automatic extraction runs in: pages in on standard input, items out on standard output.

Each message is JSON after its length in four bytes, big end first. In: ``kind``, ``url``, ``html``, ``styles`` and
what is wanted beside the item. Out: ``item`` and that, or ``error`` with ``unsupported`` to say that it is the
request's fault. The process ends when its input does, also in the middle of a page, so that it never outlives its
server, whatever became of that.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import traceback
from typing import Any, BinaryIO, Final

import msgspec

#: Address space, in bytes. A page that needs more fails alone.
MEMORY: Final = 4 * 1024**3


class Task(msgspec.Struct, frozen=True):
    """A page to extract from."""

    kind: str
    url: str
    html: str
    styles: bool = False
    #: Whether to say what each field is from.
    sources: bool = False
    #: Attributes to answer by rules.
    attributes: dict[str, Any] | None = None
    #: Whether to give the text of the page.
    text: bool = False


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of it: an item, or an error."""

    item: Any = None
    sources: dict[str, str] | None = None
    attributes: dict[str, Any] | None = None
    text: str | None = None
    error: str | None = None
    unsupported: bool = False


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head)
    body = stream.read(size)
    return body if len(body) == size else None


def message(body: bytes) -> bytes:
    """A message as it is sent."""
    return len(body).to_bytes(4) + body


def _extract(task: Task) -> Outcome:
    from scrapy_ext.server.extraction.auto import UnsupportedKindError, extract_more

    try:
        found = extract_more(
            task.kind,
            task.html,
            task.url,
            styles=task.styles,
            sources=task.sources,
            attributes=task.attributes,
            text=task.text,
        )
        return Outcome(item=found.item, sources=found.sources, attributes=found.attributes, text=found.text)
    except UnsupportedKindError as error:
        return Outcome(error=str(error), unsupported=True)
    except Exception:  # One page's failure is not the process's.
        return Outcome(error=traceback.format_exc(limit=-5))


def _read_for_ever(tasks: queue.SimpleQueue[bytes]) -> None:
    """In a thread of its own, so that the end of the input is seen while a page is worked on."""
    while (body := read_message(sys.stdin.buffer)) is not None:
        tasks.put(body)
    os._exit(0)


def main() -> None:
    """Answer messages until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # What a library prints must not stand between answers.
    os.dup2(2, 1)
    logging.basicConfig(level=logging.ERROR)
    _limit_memory()
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_for_ever, args=(tasks,), daemon=True).start()
    while True:
        outcome = _extract(msgspec.json.decode(tasks.get(), type=Task))
        with contextlib.suppress(BrokenPipeError):
            answers.write(message(msgspec.json.encode(outcome)))
            answers.flush()


def _limit_memory() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    main()
