"""The process of automatic extraction (``computing.worker``): its tasks are pages, its answers items.

Each message is JSON (:class:`ExtractionTask`, :class:`ExtractionOutcome`).
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from scrapy_ext.api.extraction.fields import MARKDOWN
from scrapy_ext.api.extraction.records import FieldSource
from scrapy_ext.server.computing.worker import MEMORY, serve

#: What one PDF may need beside the file, in bytes.
PDF_MEMORY: Final = 512 * 1024**2


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
    #: The browser wrote the rectangles of elements into ``html``.
    boxes: bool = False
    #: Attributes to answer by rules.
    attributes: dict[str, Any] | None = None
    #: Whether to return the text of the page.
    text: bool = False
    #: Options of the Markdown to return; None: none.
    markdown: dict[str, Any] | None = None
    #: Rules that correct the item.
    rules: dict[str, dict[str, Any]] | None = None

    @property
    def output(self) -> str:
        """The kind, or the name of the other output, for messages."""
        return self.kind or MARKDOWN


class ExtractionOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a task: an item, or an error."""

    item: Any = None
    sources: dict[str, FieldSource] | None = None
    attributes: dict[str, Any] | None = None
    text: str | None = None
    markdown: str | None = None
    rules: dict[str, dict[str, Any]] | None = None
    error: str | None = None
    #: Whether the error is one of the request.
    unsupported: bool = False
    #: Whether the error is one of the file, which no other try can read.
    unreadable: bool = False


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
    from scrapy_ext.server.extraction.auto.pdf.reading import UnreadablePdfError

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
                rules=task.rules,
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


def _load(body: bytes) -> None:
    from scrapy_ext.server.extraction.auto import load

    task = msgspec.json.decode(body, type=ExtractionTask)
    load(task.kind, pdf=task.pdf is not None, markdown=task.markdown is not None)


def _answer(body: bytes) -> bytes:
    return msgspec.json.encode(_extract(msgspec.json.decode(body, type=ExtractionTask)))


if __name__ == "__main__":
    serve(_answer, _load)
