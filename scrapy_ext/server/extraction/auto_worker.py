"""The process of automatic extraction: pages on standard input, items on standard output.

It parses what strangers wrote, with libraries in C. So it is confined to computing before its first page, as far as the
system can: it reads the files of its Python alone, writes none, and has neither network nor other processes.

Each message is JSON after its length in four bytes, big-endian. Input: ``kind``, ``url``, ``html`` with ``styles`` or
``pdf``, and the wanted output beside the item. Output: ``item`` and the rest, or ``error``, with ``unsupported`` for a
fault of the request and ``unreadable`` for one of the file. The process ends when its input does, also in the middle of
a page, so that it never outlives its server.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from scrapy_ext.api.extraction.fields import MARKDOWN

#: Address space, in bytes. A page that needs more fails.
MEMORY: Final = 4 * 1024**3
#: Of it, what one PDF may need beside the file.
PDF_MEMORY: Final = 512 * 1024**2
#: New objects after which cycles of objects are searched: those of several pages. With 700 as usual, searches take a
#: sixth of the time of a page.
COLLECT_AFTER: Final = 20_000


class ExtractionTask(msgspec.Struct, frozen=True):
    #: Kind of the item to extract; None: none.
    kind: str | None
    url: str
    html: str
    styles: bool = False
    #: A file to extract from instead of ``html``.
    pdf: bytes | None = None
    #: Whether to return the source of each field.
    sources: bool = False
    #: Attributes to answer by rules.
    attributes: dict[str, Any] | None = None
    #: Whether to return the text of the page.
    text: bool = False
    #: Options of the Markdown to return; None: none.
    markdown: dict[str, Any] | None = None

    @property
    def output(self) -> str:
        """The kind, or the name of the other output, for messages."""
        return self.kind or MARKDOWN


class ExtractionOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a task: an item, or an error."""

    item: Any = None
    sources: dict[str, str] | None = None
    attributes: dict[str, Any] | None = None
    text: str | None = None
    markdown: str | None = None
    error: str | None = None
    unsupported: bool = False
    #: Whether the error is one of the file, which no other try can read.
    unreadable: bool = False


def read_message(stream: BinaryIO) -> bytes | None:
    """Read the next message; None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "big")
    body = stream.read(size)
    return body if len(body) == size else None


def message(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def _extract(task: ExtractionTask) -> ExtractionOutcome:
    from scrapy_ext.server.extraction.auto import UnsupportedKindError, extract_more

    if task.pdf is not None:
        return _extract_from_pdf(task, task.pdf)
    options = msgspec.structs.asdict(task)
    del options["pdf"]
    try:
        return ExtractionOutcome(**extract_more(**options)._asdict())
    except UnsupportedKindError as error:
        return ExtractionOutcome(error=str(error), unsupported=True)
    except Exception:  # A page that fails does not end the process.
        return ExtractionOutcome(error=traceback.format_exc(limit=-5))


def _extract_from_pdf(task: ExtractionTask, pdf: bytes) -> ExtractionOutcome:
    from scrapy_ext.server.extraction.auto import extract_from_pdf
    from scrapy_ext.server.extraction.auto.pdf.document import UnreadablePdfError

    try:
        with _less_memory(PDF_MEMORY):
            found = extract_from_pdf(
                task.kind,
                pdf,
                task.url,
                sources=task.sources,
                attributes=task.attributes,
                text=task.text,
                markdown=task.markdown,
            )
        return ExtractionOutcome(**found._asdict())
    except UnreadablePdfError as error:
        return ExtractionOutcome(error=str(error), unreadable=True)
    except MemoryError:
        return ExtractionOutcome(error=f"needs more than {PDF_MEMORY // 1024**2} MiB of memory", unreadable=True)
    except Exception:  # As above.
        return ExtractionOutcome(error=traceback.format_exc(limit=-5))


@contextlib.contextmanager
def _less_memory(most: int) -> Iterator[None]:
    """Limit the memory of the process to what it has and ``most`` bytes more."""
    if sys.platform != "linux":
        yield
        return
    import resource

    held = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (min(MEMORY, held + most), MEMORY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _read_tasks(tasks: queue.SimpleQueue[bytes]) -> None:
    """Read tasks in a thread, so that the end of the input is noticed during the work on a page."""
    while (body := read_message(sys.stdin.buffer)) is not None:
        tasks.put(body)
    os._exit(0)


def _prepare(task: ExtractionTask) -> None:
    """Import what the first task needs, so that its bytecode is stored, and confine this process."""
    from scrapy_ext.jobprocess.confinement.computing import compute_only
    from scrapy_ext.server.extraction.auto import load

    with contextlib.suppress(Exception):  # The answer to the task has it.
        load(task.kind, pdf=task.pdf is not None, markdown=task.markdown is not None)
    compute_only()


def main() -> None:
    """Answer messages until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # Output that a library prints must not mix with the answers.
    os.dup2(2, 1)
    logging.basicConfig(level=logging.ERROR)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    first = read_message(sys.stdin.buffer)
    if first is None:
        return
    _prepare(msgspec.json.decode(first, type=ExtractionTask))
    tasks.put(first)
    # A thread that had begun before would not be confined.
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    while True:
        outcome = _extract(msgspec.json.decode(tasks.get(), type=ExtractionTask))
        with contextlib.suppress(BrokenPipeError):
            answers.write(message(msgspec.json.encode(outcome)))
            answers.flush()
        if not gc.get_freeze_count():
            # The libraries, imported for the first page, stay, and are not searched again.
            gc.collect()
            gc.freeze()


if __name__ == "__main__":
    main()
