"""A PostgreSQL with a standby: the cost of waiting for it, and what a failover loses without.

``commit``: single items posted by some clients, one call after the other. ``asynchronous`` does not wait for the
standby, ``on`` until it has written to its disk, ``remote_apply`` until readers of it see the data. All have a standby.

``lost``: the primary and the server are killed while clients post items, and the standby is promoted. ``lost`` counts
the items of calls that were answered with 200 and are not on it, in each round. Before the kill the standby was away
for ``hiccup`` seconds, as in a fault of the network.

``gap``: the primary alone is killed under the same load, and its standby promoted at once. ``promotion`` is the time
from the kill until the standby takes writes, ``gap`` the longest time between two answers. Primary, standby, server and
clients share the machine and its disk.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.load import Connection, request
from rig.rounds import alternate, median, options, percentile, report
from rig.services import Platform, platform

from tests.support.postgresql import Cluster
from tests.support.replication import replicated

_MODES = {
    "asynchronous": ("", "on"),
    "on": ("*", "on"),
    "remote_apply": ("*", "remote_apply"),
}
_ITEM = json.dumps({"url": "http://shop.example/1", "text": "x" * 900}).encode()


def main() -> None:
    given = options(
        __doc__,
        full={"calls": 400, "clients": 8, "rounds": 5, "seconds": 3.0, "hiccup": [0.0, 0.5]},
        quick={"calls": 40, "clients": 4, "rounds": 1, "seconds": 1.0, "hiccup": [0.0, 0.5]},
    )
    report(
        "postgresql_failover",
        clients=given.clients,
        rounds=given.rounds,
        commit=_commits(given.calls, given.clients, given.rounds),
        lost={
            f"{mode}, {hiccup:g} s": [_lost(mode, given.clients, given.seconds, hiccup) for _ in range(given.rounds)]
            for mode in ("asynchronous", "on")
            for hiccup in given.hiccup
        },
        gap=[_gap(given.clients, given.seconds) for _ in range(given.rounds)],
    )


# ── the cost of a commit ──


def _commits(calls: int, clients: int, rounds: int) -> dict[str, dict[str, float]]:
    jobs = count(1)
    with replicated() as pair, platform(database=pair.url) as server:

        def run(mode: str, clients: int) -> tuple[float, float, float]:
            _set(pair.primary, mode)
            seconds: list[float] = []

            def call(_number: int, _items: int, took: float) -> None:
                seconds.append(took)

            began = time.perf_counter()
            _post(server, clients, lambda: False, call, calls=calls, job=next(jobs))
            rate = len(seconds) / (time.perf_counter() - began)
            return median(seconds) * 1e3, percentile(seconds, 0.99) * 1e3, rate

        runs = {
            f"{mode}, {at_once}": lambda mode=mode, at_once=at_once: run(mode, at_once)
            for mode in _MODES
            for at_once in (1, clients)
        }
        found = alternate(rounds, runs)
    return {
        name: dict(
            zip(
                ("ms", "p99_ms", "per_second"),
                (round(median(part), 2) for part in zip(*results, strict=True)),
                strict=True,
            )
        )
        for name, results in found.items()
    }


def _set(primary: Cluster, mode: str) -> None:
    names, commit = _MODES[mode]
    postgres = primary.url("postgres")
    primary.query(postgres, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    primary.query(postgres, f"ALTER SYSTEM SET synchronous_commit = '{commit}'")
    primary.query(postgres, "SELECT pg_reload_conf()")
    time.sleep(1)  # sessions read the files between two statements


# ── what is lost ──


def _lost(mode: str, clients: int, seconds: float, hiccup: float) -> dict[str, int]:
    """Return the numbers of acknowledged and of lost items."""
    with replicated(asynchronous=mode == "asynchronous") as pair:
        acknowledged = [0] * clients
        with platform(database=pair.url) as server:
            with _posting(server, acknowledged) as stop:
                time.sleep(seconds)
                if hiccup:
                    assert pair.standby is not None
                    pair.standby.kill()
                    time.sleep(hiccup)
                pair.primary.kill()
                os.kill(server.pid, signal.SIGKILL)
                stop()
                counts = list(acknowledged)
                if hiccup:
                    pair.standby.start()
                pair.take_over()
            key = server.key
        with platform(database=pair.url, key=key) as server, Connection(server.port) as connection:
            stored = [_stored(connection, key, number) for number in range(clients)]
    missing = [max(0, known - there) for known, there in zip(counts, stored, strict=True)]
    return {"acknowledged": sum(counts), "lost": sum(missing)}


def _stored(connection: Connection, key: str, number: int) -> int:
    stats = json.loads(connection.ask(request("GET", f"/items/1/{number + 1}/1/stats", key)))
    return int(stats.get("totals", {}).get("input_values", 0))


# ── how long it takes ──


def _gap(clients: int, seconds: float) -> dict[str, float]:
    with replicated() as pair, platform(database=pair.url) as server:
        times: list[float] = []
        with _posting(server, [0] * clients, times) as stop:
            time.sleep(seconds)
            killed = time.perf_counter()
            pair.primary.kill()
            pair.take_over()
            promoted = time.perf_counter()
            while times[-1] < promoted + 1:
                time.sleep(0.05)
            stop()
    ordered = sorted(times)
    gap = max(after - before for before, after in pairwise(ordered))
    return {"promotion": round(promoted - killed, 2), "gap": round(gap, 2)}


# ── load ──


@contextmanager
def _posting(
    server: Platform, acknowledged: list[int], times: list[float] | None = None
) -> Generator[Callable[[], None]]:
    """Post items until ``stop`` is called; ``acknowledged`` counts those of each client."""
    ended = threading.Event()

    def answered(number: int, count: int, _: float) -> None:
        if not ended.is_set():
            acknowledged[number] = count
            if times is not None:
                times.append(time.perf_counter())

    load = threading.Thread(target=_post, args=(server, len(acknowledged), ended.is_set, answered))
    load.start()
    try:
        yield ended.set
    finally:
        ended.set()
        load.join()


def _post(
    server: Platform,
    clients: int,
    is_over: Callable[[], bool],
    answered: Callable[[int, int, float], None],
    *,
    calls: int = 10**9,
    job: int = 1,
) -> None:
    """Post items by clients at once, each with a job of its own.

    ``answered`` gets the number of the client, that of its items, and the seconds of the call.
    """

    def client(number: int) -> None:
        try:
            with Connection(server.port) as connection:
                for items in range(calls):
                    if is_over():
                        return
                    began = time.perf_counter()
                    connection.ask(request("POST", f"/items/1/{number + 1}/{job}?start={items}", server.key, _ITEM))
                    answered(number, items + 1, time.perf_counter() - began)
        except (OSError, RuntimeError):
            if not is_over():
                raise

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
