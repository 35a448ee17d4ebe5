"""The comparisons of the referee: what must be there with what is there. Each returns one sentence a fault.

Nothing here asks anybody: what is compared is handed over, so that the tests can hand over what is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.crash.maze import is_held_back

_SHOWN = 5


class Verdict(NamedTuple):
    """The end of a run. ``cut_short``: "Interrupted after 60 s of 300 s: ", or nothing."""

    records: int
    jobs: int
    harms: int
    faults: Sequence[str]
    cut_short: str = ""

    @property
    def sentence(self) -> str:
        counts = ((self.records, "acknowledged record"), (self.jobs, "job"), (self.harms, "harm"))
        seen = self.cut_short + ", ".join(counted(number, name) for number, name in counts)
        if not self.faults:
            return f"{seen}: nothing lost, nothing doubled."
        return f"{seen}: {counted(len(self.faults), 'fault')}."


def counted(number: int, name: str) -> str:
    """A number with the name of what it counts: 1 harm, 2 harms."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def items_once(what: str, found: Counter[str], expected: Counter[str]) -> list[str]:
    """Each item is there as often as it must be."""
    faults = []
    if lost := expected - found:
        faults.append(f"{what}: lost {_shown(lost)}")
    if more := found - expected:
        # One that changed is lost as it was, and is there as something that nobody stored.
        doubled, strange = Counter[str](), Counter[str]()
        for name, count in more.items():
            (doubled if name in expected else strange)[name] = count
        faults += [f"{what}: doubled {_shown(doubled)}"] * bool(doubled)
        faults += [f"{what}: changed, never stored like this: {_shown(strange)}"] * bool(strange)
    return faults


def items_at_least_once(what: str, found: Counter[str], expected: Counter[str], *, runs: int) -> list[str]:
    """Each item is there, at most once for each process that ran the job."""
    faults = []
    if lost := Counter(expected.keys() - found.keys()):
        faults.append(f"{what}: lost {_shown(lost)}")
    most = Counter({name: count * runs for name, count in expected.items()})
    if more := found - most:
        faults.append(f"{what}: more often than its {runs} runs: {_shown(more)}")
    return faults


def items_at_most(what: str, found: Counter[str], expected: Counter[str]) -> list[str]:
    """Of a job that was killed and is not run again: no item twice, and none that nobody yields."""
    return [f"{what}: too many {_shown(more)}"] if (more := found - expected) else []


def hits_of_maze(
    what: str, hits: Counter[str], expected: Counter[str], dead_letters: Iterable[str], jumps: int = 0
) -> list[str]:
    """A maze of one process was fetched as often as an undisturbed one, but for what a callback that always fails, and
    a request that cannot be stored, repeat (:mod:`tests.support.crash.maze`).

    ``jumps``: how often the clock went forward meanwhile. Twisted measures timeouts by the clock of the day, so that
    each request under way at a jump is over its ``DOWNLOAD_TIMEOUT``, and Scrapy sends it again.
    """
    failing = {"/" + address.partition("/")[2] for address in dead_letters}
    settled = [path for path in hits | expected if not is_held_back(path) and path not in failing]
    of = ({path: counter[path] for path in settled} for counter in (hits, expected))
    found, wanted = map(Counter, of)
    often = Counter({path: count for path, count in (found - wanted).items() if count > jumps})
    rarely = wanted - found
    return [f"{what}: pages fetched {dict(often)} too often, {dict(rarely)} too rarely"] if often or rarely else []


def paid_once(what: str, hits: Mapping[str, int], wanted: Iterable[str], most: int) -> list[str]:
    """Each page was fetched for an answer, and at most so often."""
    missing = Counter(page for page in wanted if not hits.get(page))
    faults = [f"{what}: never fetched {_shown(missing)}"] if missing else []
    often = Counter({page: count for page, count in hits.items() if count > most})
    return faults + ([f"{what}: fetched more than {most} times: {_shown(often)}"] if often else [])


def processes_at_once(job: str, pulses: Mapping[int, tuple[float, float]], most: int = 1) -> list[str]:
    """No more processes of a job worked at once than it has workers. ``pulses``: of each, its first and its last sign
    of work."""
    ordered = sorted(pulses.items(), key=lambda each: each[1])
    faults = []
    for place, (pid, (first, _)) in enumerate(ordered):
        others = {other: last for other, (_, last) in ordered[:place] if last >= first}
        if len(others) >= most:
            named = " and ".join(map(str, [*others, pid]))
            seconds = sorted(others.values())[-most] - first
            faults.append(f"job {job}: processes {named} worked at once, for {seconds:.1f} s")
    return faults


def ran_once_each(jobs: Sequence[Mapping[str, Any]]) -> list[str]:
    """No minute of a schedule has two jobs."""
    runs = Counter((job["periodic_job_id"], job["periodic_time"]) for job in jobs)
    return [f"periodic job {number} ran {n} times for minute {minute}" for (number, minute), n in runs.items() if n > 1]


def end_of_job(job: str, metadata: Mapping[str, Any], *, killed: bool, shared: bool = False) -> list[str]:
    """A job is finished for a reason that fits what was done to it. ``killed``: a process of its own was. ``shared``:
    others may take over what it had."""
    reason = metadata.get("close_reason")
    losses = metadata.get("nodes_lost", 0)
    is_script = str(metadata.get("spider", "")).startswith("py:")
    excused = (
        (metadata.get("state") == "finished" and reason == "finished")
        or (reason == "killed by SIGKILL" and killed)
        or (reason == "node_lost" and (losses >= 5 or (is_script and losses)))
        or (reason == "frontier_lease_lost" and shared)
    )
    if metadata.get("state") == "finished" and excused:
        return []
    return [f"job {job} ({metadata.get('spider')}): {metadata.get('state')}, {reason}, {losses} nodes lost"]


def _shown(counter: Counter[str]) -> str:
    listed = [f"{count} x {name}" if count > 1 else name for name, count in sorted(counter.items())]
    return f"{counter.total()} [{', '.join(listed[:_SHOWN])}{', …' if len(listed) > _SHOWN else ''}]"
