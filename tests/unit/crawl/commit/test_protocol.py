"""Exactly once, in every order of events: processes that die, sleep and wake up again at every step of a commit.

The platform is a few dicts, a process is its state machine, and a scheduler picks what happens next. A process that is
replaced is not gone: what it had begun may still happen, before or after anything that its successor does, and it goes
on until it finds out. A dead process is one of which nothing more is picked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial

import pytest

from scrapy_ext.crawl.commit import protocol
from scrapy_ext.crawl.commit.events import (
    Acknowledge,
    Acknowledged,
    Action,
    Append,
    Appended,
    Checkpoint,
    ChunkStored,
    Due,
    Event,
    Failed,
    FlushChildren,
    Flushed,
    Forget,
    Lot,
    OpenBatch,
    Payload,
    Read,
    ReadHead,
    Refused,
    Report,
    Stage,
    Staged,
    Stop,
    StoreChunk,
    Stored,
)
from scrapy_ext.crawl.commit.protocol import Commits, State, Takeover, Verdict, verdict

#: By fingerprint: the items of a page, and the requests that it leads to.
PAGES: dict[str, tuple[list[bytes], list[str]]] = {
    "a": ([b"a1", b"a2"], ["b"]),
    "b": ([b"b1"], []),
    "c": ([], []),
}
ITEMS = sorted(item for items, _ in PAGES.values() for item in items)


class Platform:
    """Durable state, and its invariants."""

    def __init__(self) -> None:
        self.queue = {"batch-1": ["a", "c"]}
        self.known = {"a", "c"}
        self.journal: list[Checkpoint] = []
        self.payloads: dict[tuple[str, int], list[bytes]] = {}
        self.items: dict[int, bytes] = {}

    def enqueue(self, fps: set[str]) -> None:
        for fp in sorted(fps - self.known):
            self.known.add(fp)
            self.queue[f"batch-{len(self.known)}"] = [fp]

    def store(self, owner: str, number: int, start: int, size: int) -> None:
        payload = self.payloads[owner, number]
        assert len(payload) == size, "a record names a payload as it is"
        for index, item in enumerate(payload, start):
            assert self.items.setdefault(index, item) == item, "an item keeps its place"

    def acknowledge(self, batch: str) -> None:
        for fp in self.queue.pop(batch, []):
            items, children = PAGES[fp]
            assert set(children) <= self.known, "children are durable before their parent is acknowledged"
            assert set(items) <= set(self.items.values()), "items are stored before their request is acknowledged"

    def forget(self, owner: str, numbers: list[int]) -> None:
        for number in numbers:
            redo = self.journal[-1].redo
            named = redo is not None and redo.owner == owner and number in [chunk.number for chunk in redo.chunks]
            assert not named, "the newest record finds its payloads"
            self.payloads.pop((owner, number), None)


class Process:
    """A process of the crawl, from its takeover on."""

    def __init__(self, platform: Platform, name: str) -> None:
        self.platform = platform
        self.name = name
        self.number = 0
        self.commits: Commits | None = None
        self.takeover = Takeover(Checkpoint(worker=name))
        self.actions: list[Action] = self.takeover.begin()
        self.batches: dict[str, OpenBatch] = {}
        self.to_run: list[Stored] = []
        self.sent: set[str] = set()

    def moves(self) -> list[Callable[[], None]]:
        """Events that can happen next, likely ones first."""
        moves: list[Callable[[], None]] = [partial(self.carry_out, action) for action in self.actions]
        if self.commits is None or self.is_stopped:
            return moves
        self.read()
        if self.to_run:
            moves += [self.run, self.run_with_early_items, self.fail_once]
        if self.commits.state is State.IDLE and self.commits.is_waiting:
            moves.append(partial(self.feed, Due()))
        return moves

    @property
    def is_stopped(self) -> bool:
        return self.commits is not None and self.commits.state is State.STOPPED

    # ── the crawl ──

    def read(self) -> None:
        assert self.commits is not None
        for batch_id, fps in self.platform.queue.items():
            if batch_id not in self.batches:
                done = int(self.commits.checkpoint.progress.done.get(0, {}).get(batch_id, "0"), 16)
                batch = self.batches[batch_id] = OpenBatch(0, batch_id, len(fps), done)
                self.to_run += [Stored(fp, {}, batch, n) for n, fp in enumerate(fps) if not done >> n & 1]

    def run(self, payloads: list[Payload] | None = None, skipped: int = 0) -> None:
        assert self.commits is not None
        stored = self.to_run.pop(0)
        items, children = PAGES[stored.fp]
        self.sent.update(children)
        self.commits.add(Lot(items[skipped:], stored, payloads or ()))

    def stage_first_item(self) -> list[Payload]:
        assert self.commits is not None
        items = PAGES[self.to_run[0].fp][0][:1]
        if not items:
            return []
        stage = self.commits.stage_early(items)
        self.actions.append(stage)
        return [stage.payload]

    def run_with_early_items(self) -> None:
        payloads = self.stage_first_item()
        self.run(payloads, len(payloads))

    def fail_once(self) -> None:
        assert self.commits is not None
        self.sent.update(PAGES[self.to_run[0].fp][1])
        self.commits.discard(self.stage_first_item())
        self.run()

    # ── the protocol ──

    def carry_out(self, action: Action) -> None:
        self.actions.remove(action)
        self.feed(self.outcome(action))

    def outcome(self, action: Action) -> Event | None:
        platform = self.platform
        match action:
            case FlushChildren():
                platform.enqueue(self.sent)
                return Flushed()
            case Stage(number, items):
                platform.payloads[self.name, number] = items
                return Staged(number)
            case ReadHead():
                head = deepcopy(platform.journal[-1]) if platform.journal else Checkpoint()
                return Read(len(platform.journal), head)
            case Append(checkpoint, number):
                number = number or self.number + 1
                if len(platform.journal) >= number:
                    return Refused(RuntimeError("fenced"))
                platform.journal.append(deepcopy(checkpoint))
                self.number = number
                return Appended()
            case StoreChunk(redo, chunk):
                platform.store(redo.owner, chunk.number, chunk.start, chunk.count)
                return ChunkStored()
            case Acknowledge(batches):
                for batch in batches.get(0, ()):
                    platform.acknowledge(batch)
                return Acknowledged()
            case Forget(numbers):
                platform.forget(self.name, list(numbers))
        return None

    def feed(self, event: Event | None) -> None:
        if event is None:
            return
        machine = self.commits or self.takeover
        self.actions += [action for action in machine.receive(event) if not isinstance(action, Report | Stop)]
        if self.commits is None and self.takeover.state is State.IDLE:
            start = max(self.platform.items, default=-1) + 1
            self.commits = Commits(self.takeover.checkpoint, "7/1/1", self.name, start)


def crawl(choose: Callable[[int], int], lives: int = 3) -> None:
    """A crawl, until nothing can happen any more. ``choose`` picks one of so many things that can happen next; the last
    is that the process is replaced, dead or not."""
    platform = Platform()
    processes = [Process(platform, "process-1")]
    while True:
        newest = processes[-1]
        moves = newest.moves()
        if not moves and not newest.is_stopped:
            check(platform)
        moves += [move for former in processes[-2::-1] for move in former.moves()]
        if not moves:
            break
        can_be_replaced = len(processes) < lives
        picked = choose(len(moves) + can_be_replaced)
        if picked == len(moves):
            processes.append(Process(platform, f"process-{len(processes) + 1}"))
        else:
            moves[picked]()
    check(platform)


def check(platform: Platform) -> None:
    assert platform.queue == {}, "nothing is lost"
    assert sorted(platform.items.values()) == ITEMS, "each item is stored once"
    assert sorted(platform.items) == list(range(len(ITEMS)))


def orders(most: int) -> Iterator[Callable[[int], int]]:
    """All orders that differ from the likely one in ``most`` picks at most."""
    waiting: list[list[int]] = [[]]
    while waiting:
        given = waiting.pop()
        made: list[int] = []
        counts: list[int] = []

        def choose(count: int, given: list[int] = given, made: list[int] = made, counts: list[int] = counts) -> int:
            counts.append(count)
            made.append(given[len(made)] if len(made) < len(given) else 0)
            return made[-1]

        yield choose
        if sum(map(bool, given)) < most:
            for step in range(len(given), len(made)):
                waiting += [[*made[:step], other] for other in range(1, counts[step])]


def test_every_order_with_two_surprises_stores_each_item_once() -> None:
    count = 0
    for choose in orders(2):
        crawl(choose)
        count += 1
    assert count > 1000


@pytest.mark.full
def test_every_order_with_three_surprises_stores_each_item_once() -> None:
    for choose in orders(3):
        crawl(choose, lives=4)


@pytest.mark.long(keep=50)
@pytest.mark.parametrize("seed", range(200))
def test_random_orders_with_many_deaths_store_each_item_once(seed: int) -> None:
    crawl(random.Random(seed).randrange, lives=6)


def test_a_process_that_is_replaced_at_each_step_leaves_its_successor_the_rest() -> None:
    """Killed before its first step, its second, and so on; and nothing of it happens any more."""
    for killed_at in range(40):
        platform = Platform()
        dead = Process(platform, "dead")
        for _ in range(killed_at):
            if moves := dead.moves():
                moves[0]()
        successor = Process(platform, "successor")
        while moves := successor.moves():
            moves[0]()
        check(platform)


# ── the tables ──


def committing(*lots: Lot) -> Commits:
    commits = Commits(Checkpoint(), "7/1/1", "me", 0)
    for lot in lots:
        commits.add(lot)
    return commits


def reach(state: State) -> Commits:
    """A commit of one item in a state."""
    commits = committing(Lot([b"1"], Stored("a", {}, OpenBatch(0, "batch", 1), 0)))
    events: list[Event] = [Due(), Flushed(), Staged(1), Appended(), ChunkStored(), Acknowledged()]
    if state is State.STOPPED:
        commits.receive(Failed(RuntimeError("no")))
    while commits.state is not state:
        commits.receive(events.pop(0))
    return commits


LIVE = [State.IDLE, State.STAGING, State.APPENDING, State.STORING, State.ACKNOWLEDGING]


@pytest.mark.parametrize("state", LIVE)
def test_an_action_that_fails_for_good_stops_it_in_each_state(state: State) -> None:
    commits = reach(state)
    error = RuntimeError("no")
    assert commits.receive(Failed(error)) == [Stop(error)]
    assert commits.state is State.STOPPED
    assert commits.failure is error


@pytest.mark.parametrize("state", [*LIVE, State.STOPPED])
def test_what_is_not_in_the_table_changes_no_state(state: State) -> None:
    commits = reach(state)
    commits.add(Lot([b"2"]))
    for event in (Due(), Appended(), Acknowledged(), Refused(RuntimeError("no")), Read(1, Checkpoint())):
        if (state, type(event)) not in protocol.COMMITS:
            assert commits.receive(event) == []
            assert commits.state is state


def test_a_record_waits_for_the_children_and_for_each_payload() -> None:
    commits = committing()
    early = commits.stage_early([b"1"])
    commits.add(Lot([b"2"], payloads=[early.payload]))
    _, stage = commits.receive(Due())
    assert isinstance(stage, Stage)
    for event in (Staged(stage.number), Flushed()):
        assert commits.receive(event) == []
        assert commits.state is State.STAGING
    assert [type(action) for action in commits.receive(Staged(early.number))] == [Append]


def test_a_writer_that_is_refused_stores_and_acknowledges_nothing() -> None:
    commits, error = reach(State.APPENDING), RuntimeError("fenced")
    assert commits.receive(Refused(error)) == [Stop(error)]
    assert not commits.is_idle


def test_a_takeover_that_is_refused_reads_again() -> None:
    takeover = Takeover(Checkpoint(worker="heir", slots=[1]))
    takeover.begin()
    takeover.receive(Read(3, Checkpoint(worker="former", idle=True)))
    assert takeover.receive(Refused(RuntimeError("it wrote once more"))) == [ReadHead()]
    (append,) = takeover.receive(Read(4, Checkpoint(worker="former", start_items=7)))
    assert append == Append(Checkpoint(worker="heir", slots=[1], start_items=7), 5)


@pytest.mark.parametrize(
    ("interrupted", "failed", "left", "expected"),
    [
        (False, False, 0, Verdict.COMMIT),
        (False, True, 1, Verdict.RUN_AGAIN),
        (False, True, 0, Verdict.DEAD_LETTER),
        (True, False, 0, Verdict.LEAVE),
        (True, True, 1, Verdict.LEAVE),
    ],
)
def test_a_complete_request_is_committed_unless_it_is_to_run_again(
    interrupted: bool, failed: bool, left: int, expected: Verdict
) -> None:
    assert verdict(is_interrupted=interrupted, has_failed=failed, attempts_left=left) is expected


def test_a_record_of_a_worker_of_a_group_names_the_stream_of_its_items():
    for attempt in (None, 4):
        commits = Commits(Checkpoint(), "7/1/1", "me", 0, attempt)
        commits.add(Lot([b"item"]))
        _, stage = commits.receive(Due())
        commits.receive(Flushed())
        (append,) = commits.receive(Staged(stage.number))
        redo = append.checkpoint.redo
        assert (redo.job, redo.writer, [chunk.start for chunk in redo.chunks]) == ("7/1/1", attempt, [0])
