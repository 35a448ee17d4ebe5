"""An extractor that goes wrong in the way that a page's text names; run as a process in tests."""

import os
import sys
import time

import msgspec

from scrapy_ext.server.computing.worker import message, read_message
from scrapy_ext.server.extraction.auto_worker import ExtractionOutcome, ExtractionTask

while (body := read_message(sys.stdin.buffer)) is not None:
    task = msgspec.json.decode(body, type=ExtractionTask)
    if task.html == "hang":
        time.sleep(3600)
    if task.html == "die":
        os._exit(1)
    if task.html == "babble":
        sys.stdout.buffer.write(b"\xff" * 100)
        sys.stdout.buffer.flush()
    sys.stdout.buffer.write(message(msgspec.json.encode(ExtractionOutcome(item={"pid": os.getpid()}))))
    sys.stdout.buffer.flush()
