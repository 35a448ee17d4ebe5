"""What a server is told when it starts; built from options, environment or settings by its starters."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from scrapy_ext.server.store.engine.address import DatabaseUrl

#: As many jobs as processors, twice: crawls wait for the network most of the time.
DEFAULT_UNITS = 2 * (os.cpu_count() or 1)
#: Forms of the log.
LOG_FORMATS = ("text", "json")


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says what to write instead."""


class ServerConfig(msgspec.Struct, kw_only=True, frozen=True):
    """One server. ``database``, if there is one, is used instead of ``data``.

    ``port`` 0 takes a free one. ``allow_hosts`` are ``host:port`` pairs that may be fetched although they
    resolve to an address that is not public; ``connect_to`` are ``host:port=address:port`` rules that replace
    name resolution (``*`` as host stands for every host) and are trusted in the same way. ``proxies`` are
    ``COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT`` rules for ``geolocation`` and ``ipType``;
    ``block_list`` is a file of domains from which nothing is extracted; ``obey_robots``
    refuses what robots.txt refuses. ``exit_with_stdin``
    ends the server when its standard input is closed, which is how an embedded server notices that its crawl
    is gone. ``log_format`` is ``text`` or ``json``; requests that take ``slow_request`` seconds are logged;
    a client that sends or reads nothing for ``client_timeout`` seconds in the middle of something is given up.
    ``memory`` (MiB) is what requests and answers may hold together (None: :func:`memory.default_limit`),
    ``connections`` how many are open at once (None: as files may be opened), ``connections_per_address`` those of one
    address (None: most of these) that is not of ``reverse_proxies``.
    ``open_metrics`` shows the metrics without a key. ``rate_limit`` requests a second are taken from each key of the
    platform, ``rate_burst`` at once (None: as many as in two seconds).
    ``extract_rate``, ``domain_rate`` and ``key_domain_rate`` are requests a second of each key of the extraction
    service, for each domain, and of each organisation (or key without one) for each domain. A
    domain gets ``domain_requests`` extraction requests at once (None: ``Limits.domain_requests``), ``domain_delay``
    seconds apart. ``attributes_url`` is an OpenAI-compatible address that answers ``customAttributes`` with
    ``attributes_model``; without one, rules do.
    With ``runner``, jobs run here, and periodic ones at their times: those of ``units`` at once, which need no other
    tags of a node than ``node_tags``. Each has ``unit_memory`` MiB of memory for each of its units, ``job_timeout``
    seconds (None: no limit), and ``stop_grace`` seconds to end when it is asked to. ``local_project`` is the folder of
    a Scrapy project, whose jobs are those of project ``local_project_id``.
    Code of deployed versions runs as ``job_user`` (``auto``: a user for each project where the server is root;
    ``none``: the server's; else a name or number), reads ``job_read`` besides its own files, and does not reach
    the addresses of ``job_deny`` (``NETWORK`` or ``NETWORK PORT``).
    ``environments`` is the folder for those of deployed versions (None: below ``data``; with a ``database``, in the
    user's cache). ``deploy`` says which keys may deploy code: ``all`` (those that open all projects), ``project``
    (also those of the project), or ``none``.
    A ``worker`` runs jobs of ``database`` and serves nobody but these; with ``door``, the address of a server, they
    ask that one.
    """

    host: str = "127.0.0.1"
    port: int = 8700
    data: Path = Path("data")
    database: DatabaseUrl | None = None
    extract_key: str | None = None
    platform_key: str | None = None
    allow_hosts: tuple[str, ...] = ()
    connect_to: tuple[str, ...] = ()
    verify_tls: bool = True
    browser_path: str | None = None
    max_browser_pages: int = 6
    proxies: tuple[str, ...] = ()
    block_list: Path | None = None
    obey_robots: bool = False
    exit_with_stdin: bool = False
    log_format: str = "text"
    slow_request: float = 10.0
    client_timeout: float = 60.0
    memory: int | None = None
    connections: int | None = None
    connections_per_address: int | None = None
    reverse_proxies: tuple[str, ...] = ()
    open_metrics: bool = False
    rate_limit: float | None = None
    rate_burst: int | None = None
    extract_rate: float | None = None
    domain_rate: float | None = None
    key_domain_rate: float | None = None
    attributes_url: str | None = None
    attributes_model: str | None = None
    attributes_key: str | None = None
    domain_requests: int | None = None
    domain_delay: float = 0.0
    runner: bool = True
    units: int = DEFAULT_UNITS
    node_tags: tuple[str, ...] = ()
    unit_memory: int = 1024
    job_timeout: float | None = None
    stop_grace: float = 30.0
    local_project: Path | None = None
    local_project_id: int = 1
    worker: bool = False
    door: str | None = None
    environments: Path | None = None
    deploy: str = "all"
    job_user: str = "auto"
    job_read: tuple[str, ...] = ()
    job_deny: tuple[str, ...] = ()

    @property
    def environments_folder(self) -> Path:
        """Where the environments of deployed versions are."""
        if self.environments is not None:
            return self.environments
        if self.database is None:
            return self.data / "environments"
        cache = os.environ.get("XDG_CACHE_HOME")
        return (Path(cache) if cache else Path.home() / ".cache") / "scrapy-ext" / "environments"
