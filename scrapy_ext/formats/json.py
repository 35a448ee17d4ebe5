"""JSON and JSON lines: the stored bytes of records, unchanged."""

from __future__ import annotations

from scrapy_ext.formats.encoder import Encoder, Page


class JsonLinesEncoder(Encoder):
    decodes = False

    def page(self, records: Page) -> bytes:
        return b"\n".join(records) + b"\n"


class JsonEncoder(Encoder):
    decodes = False

    def __init__(self) -> None:
        self._separator = b""

    def begin(self) -> bytes:
        return b"["

    def page(self, records: Page) -> bytes:
        separator, self._separator = self._separator, b","
        return separator + b",".join(records)

    def end(self) -> bytes:
        return b"]\n"
