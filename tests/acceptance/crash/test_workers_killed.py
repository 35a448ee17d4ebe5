"""Two workers and a server on one PostgreSQL, harmed in turn: no job is lost, none runs twice at once."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator

import pytest

from tests.support.crash.farm import Farm
from tests.support.postgresql import cluster

#: Longer than a node may be silent before its jobs are others'.
SILENCE = 15.0


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """For all tests of this file: what they harm they have replaced, and each has jobs of its own."""
    with cluster() as own, Farm(tmp_path_factory.mktemp("farm"), own) as farm:
        yield farm


async def kill_worker(farm: Farm) -> None:
    worker = max(farm.workers, key=lambda worker: len(farm.on(worker)))
    lost, killed = farm.on(worker), time.time()
    worker.kill()
    working = await farm.taken_over(lost, time.monotonic())
    print(
        f"a worker's jobs: given to others after {await farm.placed_after(lost, killed):.1f} s, at work {working:.1f} s"
    )
    farm.replace_worker(worker)


async def kill_server(farm: Farm) -> None:
    await farm.until(lambda: farm.on(farm.server), "the server has a job")
    lost = farm.on(farm.server)
    farm.server.kill()
    killed = time.monotonic()
    farm.replace_server()
    await farm.taken_over(lost, killed)


async def kill_database(farm: Farm, seconds: float) -> None:
    farm.cluster.kill()
    time.sleep(seconds)
    farm.cluster.start()
    await farm.goes_on(farm.jobs)


async def stop_worker(farm: Farm) -> None:
    """Stop a worker alone, not its jobs, for longer than others wait for it."""
    worker = max(farm.workers, key=lambda worker: len(farm.on(worker)))
    lost = farm.on(worker)
    worker.process.send_signal(signal.SIGSTOP)
    stopped = time.monotonic()
    await farm.taken_over(lost, stopped)
    await farm.until(lambda: time.monotonic() > stopped + SILENCE, "it was silent")
    worker.process.send_signal(signal.SIGCONT)
    await farm.until(lambda: "was found dead by others" in worker.log(), "it finds itself replaced")
    await farm.until(lambda: not {pid for _, pid in lost} & {pid for _, pid in farm.on(worker)}, "its jobs are dead")


async def cut_off_worker(farm: Farm) -> None:
    """Let nothing come through between a worker and the database, for longer than others wait for it."""
    worker = max(farm.workers, key=lambda worker: len(farm.on(worker)))
    lost = farm.on(worker)
    farm.gap(worker).cut()
    cut = time.monotonic()
    await farm.taken_over(lost, cut)
    await farm.until(lambda: time.monotonic() > cut + SILENCE, "it was cut off")
    farm.gap(worker).mend()
    await farm.until(lambda: not {pid for _, pid in lost} & {pid for _, pid in farm.on(worker)}, "its jobs are dead")


async def test_a_worker_the_server_and_the_database_are_killed_in_turn(farm: Farm) -> None:
    await farm.run(4)
    await kill_worker(farm)
    await kill_database(farm, 1)
    await kill_server(farm)
    await farm.check()


async def test_a_worker_that_is_stopped_or_cut_off_finds_itself_replaced(farm: Farm) -> None:
    await farm.run(3)
    await stop_worker(farm)
    await cut_off_worker(farm)
    await farm.check()


@pytest.mark.full
async def test_jobs_wait_for_a_database_that_is_away_for_long(farm: Farm) -> None:
    await farm.run(4)
    await kill_database(farm, 20)
    await farm.check()


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5), ids="seed-{}".format)
async def test_whatever_is_harmed_again_and_again(farm: Farm, seed: int) -> None:
    chance = random.Random(seed)
    await farm.run(5)
    for _ in range(5):
        harm = chance.choice([kill_worker, kill_server, stop_worker, cut_off_worker, None])
        await (harm(farm) if harm is not None else kill_database(farm, chance.uniform(0, 12)))
    await farm.check()
