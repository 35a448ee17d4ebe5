"""Each spider's run by plain Scrapy and in every wiring, made once for the tests that are to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.parity.comparison import Comparison


@pytest.fixture(scope="session")
def comparison(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    """The outcomes of all spiders that this session's tests name."""
    params = [getattr(item, "callspec", None) for item in request.session.items]
    spiders = sorted({spec.params["spider"] for spec in params if spec is not None and "parity" in spec.params})
    with Comparison(spiders, tmp_path_factory.mktemp("parity")) as comparison:
        yield comparison
