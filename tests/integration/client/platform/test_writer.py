from __future__ import annotations

from scrapy_ext.api.platform import JobKey
from scrapy_ext.client.platform import BatchWriter, PlatformClient, PlatformUrls
from scrapy_ext.client.retry import Backoff
from tests.support.played_server import PlayedServer, Reply, Request

SOON = Backoff(0.001, 0.002)


async def test_with_a_client_items_reach_their_indices_past_lost_answers(server: PlayedServer):
    stored: dict[int, dict] = {}
    faults = [Reply(drop=True), Reply(503, headers={"Retry-After": "0"}), Reply(500), Reply(502), Reply(cut=0)]

    def store(request: Request) -> Reply:
        """Stores, and then, at times, does not say so."""
        start = int(request.parameter("start") or 0)
        assert request.headers["content-range"] == f"items {start}-/*"
        stored.update(enumerate(request.lines(), start))
        return faults.pop() if faults else Reply()

    server.script = store
    key = JobKey(1, 2, 3)
    async with PlatformClient(PlatformUrls.single(server.url), "k" * 32, backoff=SOON) as client:

        async def send(body: bytes, index: int) -> None:
            await client.items.write(key, body, index, attempts=1)

        writer = BatchWriter(send, start=0, max_records=10, backoff=SOON)
        for n in range(35):
            writer.add(b'{"n": %d}' % n)
        await writer.close()
    assert stored == {n: {"n": n} for n in range(35)}
