"""The server's log on standard error: lines of text, or one JSON object per line.

A message may contain text of clients. Control characters are escaped and further lines indented, so that it controls no
terminal and imitates no line of the server.
"""

from __future__ import annotations

import logging
import sys
import time
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Any, Final

import msgspec

from scrapy_ext.api.violations import escaped
from scrapy_ext.telemetry.spans import trace_id

#: The id of the current request.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
#: Seconds between two lines of a repeated fault.
_INTERVAL: Final = 60.0
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start(form: str) -> None:
    """Send log records to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Lines(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class Lines(logging.Formatter):
    """Formatter of a line of text with indented further lines."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record)).replace("\n", "\n  ")


class JsonLines(logging.Formatter):
    """Formatter of one object per line: ``time`` (UTC), ``level``, ``logger``, ``message``, and if present
    ``request_id``, ``trace_id``, the fields of a request, and ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": getattr(record, "event", None) or record.getMessage(),
        }
        if request_id := REQUEST_ID.get():
            line["request_id"] = request_id
        if trace := trace_id():
            line["trace_id"] = trace
        line.update(fields or {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return escaped(msgspec.json.encode(line).decode())


class Repeats:
    """Count of a fault that every request meets while it lasts, and that is logged once per minute."""

    def __init__(self) -> None:
        self._logged = float("-inf")
        self._since = 0

    def due(self) -> int:
        """Count an occurrence; return the number since the last line if a line is due now, else 0."""
        self._since += 1
        now = time.monotonic()
        if now - self._logged < _INTERVAL:
            return 0
        count, self._logged, self._since = self._since, now, 0
        return count
