"""Samples, as the clients write and read them."""

from __future__ import annotations

import pytest

SAMPLES = [[1_700_000_000_000 + n * 1000, n, n * 2, 2**40 + n] for n in range(5)]


@pytest.fixture
def samples(client, project_id):
    samples = client.get_job(f"{project_id}/1/1").samples
    for sample in SAMPLES:
        samples.write(sample)
    samples.flush()
    return samples


def test_what_is_written_is_read(samples):
    assert samples.list() == SAMPLES
    assert samples.list(count=2) == SAMPLES[:2]
    assert list(samples.iter(startts=SAMPLES[3][0])) == SAMPLES[3:]


def test_many_samples_in_batches(hubstorage, project_id):
    samples = hubstorage.get_job(f"{project_id}/1/1").samples
    for n in range(2500):
        samples.write([n, n])
    samples.close()
    assert [sample[0] for sample in samples.list()] == list(range(2500))
