"""Time of the server: the first call of the clients."""

from __future__ import annotations

import time


def test_the_clock_needs_no_key(hubstorage):
    assert abs(hubstorage.server_timestamp() - time.time() * 1000) < 60_000
