"""The order in which a finished batch becomes final."""

import asyncio

from scrapy_ext.crawl.commit import Committer
from scrapy_ext.crawl.tracking import OpenBatch


class Writer:
    def __init__(self, name, log):
        self.name, self.log = name, log

    async def flush(self):
        self.log.append(("start", self.name))
        await asyncio.sleep(0)
        self.log.append(("durable", self.name))


def committer(log, stages, acknowledge=None):
    async def delete(slot, ids):
        log.append(("acknowledged", slot, ids))

    def committed(batch):
        log.append(("committed", batch.id))

    return Committer(lambda: stages, acknowledge or delete, committed, lambda error: log.append(("failed", str(error))))


async def test_children_then_items_then_the_acknowledgement():
    log = []
    commits = committer(log, [[Writer("child 0", log), Writer("child 1", log)], [Writer("items", log)]])
    commits.start()
    commits.add(OpenBatch(0, "a", 1))
    await commits.close()
    assert log.index(("durable", "child 1")) < log.index(("start", "items"))
    assert log.index(("durable", "items")) < log.index(("acknowledged", 0, ["a"]))
    assert log[-1] == ("committed", "a")


async def test_batches_that_finish_during_a_commit_are_committed_together_after_it():
    log = []
    commits = committer(log, [])
    commits.start()
    commits.add(OpenBatch(0, "a", 1))
    await asyncio.sleep(0)
    for name in "bcd":
        commits.add(OpenBatch(0, name, 1))
    commits.add(OpenBatch(3, "e", 1))
    assert not commits.is_idle
    await commits.close()
    assert commits.is_idle
    acknowledged = [entry[1:] for entry in log if entry[0] == "acknowledged"]
    assert acknowledged == [(0, ["a"]), (0, ["b", "c", "d"]), (3, ["e"])]


async def test_a_failure_acknowledges_nothing_and_is_told():
    log = []

    class Broken:
        async def flush(self):
            raise RuntimeError("gone")

    commits = committer(log, [[Broken()]])
    commits.start()
    commits.add(OpenBatch(0, "a", 1))
    await commits.close()
    assert log == [("failed", "gone")]
    assert str(commits.failure) == "gone"
    assert not commits.is_idle
