"""A process of ``processes``: tasks on standard input, answers on standard output.

It computes with what strangers wrote, with libraries in C. So it is confined to computing before its first task, as far
as the system can: it reads the files of its Python alone, writes none, and has neither network nor other processes.

Each message has its length in four bytes, big-endian, before it. The process ends when its input does, also in the
middle of a task, so that it never outlives its server.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Final

#: Address space, in bytes. A task that needs more fails.
MEMORY: Final = 4 * 1024**3
#: New objects after which cycles of objects are searched: those of several tasks. With 700 as usual, searches take a
#: sixth of the time of a page.
COLLECT_AFTER: Final = 20_000
#: Signal of the timer of :func:`limit_time`. Without a handler it ends the process, also within a library in C.
OUT_OF_TIME: Final = signal.SIGPROF


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


def limit_time(seconds: float) -> None:
    """End this process once it has used so much processor time from now on; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def serve(answer: Callable[[bytes], bytes], load: Callable[[bytes], None], *, memory: int = MEMORY) -> None:
    """Answer messages until standard input ends. ``load`` imports what the first needs; then no other file is read."""
    # Output that a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logging.basicConfig(level=logging.ERROR)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    first = read_message(sys.stdin.buffer)
    if first is None:
        return
    _prepare(lambda: load(first))
    tasks.put(first)
    # A thread that had begun before would not be confined.
    threading.Thread(target=_read_tasks, args=(tasks,), daemon=True).start()
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    while True:
        body = answer(tasks.get())
        with contextlib.suppress(BrokenPipeError):
            answers.write(message(body))
            answers.flush()
        if not gc.get_freeze_count():
            # The libraries, imported for the first task, stay, and are not searched again.
            gc.collect()
            gc.freeze()


def _prepare(load: Callable[[], None]) -> None:
    """Import what the first task needs, so that its bytecode is stored, and confine this process."""
    from scrapy_ext.jobprocess.confinement.applying import compute_only

    with contextlib.suppress(Exception):  # The answer to the task has it.
        load()
    compute_only()


def _read_tasks(tasks: queue.SimpleQueue[bytes]) -> None:
    """Read tasks in a thread, so that the end of the input is noticed during the work on one."""
    while (body := read_message(sys.stdin.buffer)) is not None:
        tasks.put(body)
    os._exit(0)
