"""The server's log on standard error: lines of text, or one JSON object a line.

What users send may be in a message. It steers no terminal, and begins no line that could be taken for one of the
server's: control characters are escaped, and lines after the first of a message are indented."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from scrapy_ext.api.control_characters import escaped

#: The id of the request that this code runs for.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start(form: str) -> None:
    """Send what is logged from now on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Lines(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class Lines(logging.Formatter):
    """A line of text, and what belongs to it below."""

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record."""
        return escaped(super().format(record)).replace("\n", "\n  ")


class JsonLines(logging.Formatter):
    """One object a line: ``time`` (UTC), ``level``, ``logger``, ``message``, and where there are such,
    ``request_id``, the fields of a request, and ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": getattr(record, "event", None) or record.getMessage(),
        }
        if request_id := REQUEST_ID.get():
            line["request_id"] = request_id
        line.update(fields or {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return escaped(msgspec.json.encode(line).decode())
