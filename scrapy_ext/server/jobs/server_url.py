"""The server that the jobs of a worker ask instead of the worker itself."""

from __future__ import annotations

from typing import Final

import aiohttp

from scrapy_ext.api.platform.keys import JobKey
from scrapy_ext.server.auth.attempt_tokens import AttemptTokens
from scrapy_ext.server.config.config import ConfigError
from scrapy_ext.server.store import Store
from scrapy_ext.server.store.jobs.attempts import Attempt, over

_SECONDS: Final = 15
#: One that never was: only a server with the same secret, which is in the database, can tell that it is over.
_NEVER: Final = Attempt(JobKey(1, 1, 1), 0)


async def check_server_url(url: str, store: Store) -> None:
    """See that jobs of this database may ask the server there; raises :class:`ConfigError`."""
    token = await AttemptTokens(store).token(_NEVER)
    where = f"{url}/jobs/{_NEVER.key}"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as session,
            session.get(where, auth=aiohttp.BasicAuth(token, ""), allow_redirects=False) as response,
        ):
            status, said = response.status, (await response.content.read(4096)).decode(errors="replace")
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        told = str(error) or type(error).__name__
        raise ConfigError(f"--url {url} cannot be reached ({told}). Start the server, or leave --url out.") from error
    if status == 403 and over(_NEVER).rule in said:
        return
    if status in (401, 403):
        raise ConfigError(f"--url {url} does not know this database's jobs ({status}): it has another database.")
    raise ConfigError(f"--url {url} is no platform: it answers {status}. Name a server of this database.")
