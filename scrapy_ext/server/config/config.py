"""The configuration of a server or of a worker: a table with one entry for each option.

An entry has the field, its type and default, and an :class:`~scrapy_ext.server.config.option.Option` with the unit, the
meaning and the commands. The command line and its help, the environment variables, the Scrapy settings of the embedded
server and the reference of options are generated from it.
"""

# Not `from __future__ import annotations`: the entries are in the annotations.

import os
from pathlib import Path
from typing import Annotated, Final

import msgspec

from scrapy_ext.api.masking import without_user
from scrapy_ext.server.config import option as kinds
from scrapy_ext.server.config.option import Option, Role
from scrapy_ext.server.store.engine.address import DatabaseUrl

#: Two units per processor: crawls wait for the network most of the time.
_UNITS: Final = 2 * (os.cpu_count() or 1)
#: With one process alone, a page that takes long would hold up all others.
_EXTRACTION_PROCESSES: Final = max(2, os.cpu_count() or 1)
#: MiB of ``--memory``: a deploy counts for 20 MiB.
MIN_MEMORY: Final = 32


class ConfigError(ValueError):
    """An invalid configuration; the message has the correction, and no credentials of URLs."""

    def __init__(self, message: str) -> None:
        super().__init__(without_user(message))


class ServerConfig(msgspec.Struct, kw_only=True, frozen=True):
    """The configuration of one server, or of one worker."""

    # The formatter would make this table three times as long.
    # fmt: off
    # ── address, data and keys ──
    host: Annotated[str, Option(meaning="address to listen on", roles=Role.SERVER)] = "127.0.0.1"
    port: Annotated[int, Option(
        meaning="port to listen on, 0 for a free one",
        roles=Role.SERVER, read=kinds.port)] = 8700
    data: Annotated[Path, Option(
        meaning="directory of the SQLite database; of a worker, of deployed code",
        roles=Role.NODE | Role.STORE, metavar="DIR",
        default="that of the project, .scrapy/platform; data for a worker and python -m scrapy_ext.server"
    )] = Path("data")
    database: Annotated[DatabaseUrl | None, Option(
        meaning="postgresql://USER@HOST:PORT/DATABASE instead of --data; of a worker, that of its server. A "
        "password is better in the environment",
        roles=Role.NODE | Role.STORE, metavar="URL", variable="SERVER_DATABASE", setting="SERVER_DATABASE",
        secret=True)] = None
    #: A worker runs jobs of ``database`` and serves these alone.
    worker: bool = False
    server_url: Annotated[str | None, Option(
        meaning="send storage and extraction requests of jobs to the server at this address (http://HOST:PORT) "
        "instead of to this worker",
        roles=Role.WORKER, names=("--url",), read=kinds.server_url)] = None
    extract_key: Annotated[str | None, Option(
        meaning="key of the extraction service",
        roles=Role.SERVER, metavar="KEY", variable="EXTRACT_API_KEY", secret=True)] = None
    platform_key: Annotated[str | None, Option(
        meaning="key of the platform",
        roles=Role.SERVER, metavar="KEY", variable="PLATFORM_API_KEY", secret=True)] = None
    public_url: Annotated[str | None, Option(
        meaning="address at which people open the pages, such as https://crawls.example.com, for logins and for links "
        "in the messages of alerts",
        roles=Role.SERVER, read=kinds.server_url, metavar="URL", variable="SERVER_PUBLIC_URL")] = None

    # ── login of people by OpenID Connect ──
    oidc_issuer: Annotated[str | None, Option(
        meaning="let people log in to the pages at this OpenID Connect provider, such as https://login.example.com; "
        "needs --public-url and --oidc-client-id. The client's secret goes into the environment variable "
        "SERVER_OIDC_CLIENT_SECRET",
        roles=Role.SERVER, read=kinds.server_url, metavar="URL", variable="SERVER_OIDC_ISSUER")] = None
    oidc_client_id: Annotated[str | None, Option(
        meaning="with --oidc-issuer: the client that is registered at the provider for this server",
        roles=Role.SERVER, metavar="ID", variable="SERVER_OIDC_CLIENT_ID")] = None
    oidc_client_secret: Annotated[str | None, Option(
        meaning="with --oidc-issuer: the secret of the client",
        roles=Role.SERVER, names=(), variable="SERVER_OIDC_CLIENT_SECRET", secret=True)] = None
    oidc_name: Annotated[str | None, Option(
        meaning="with --oidc-issuer: the provider's name on the login page",
        roles=Role.SERVER, metavar="NAME", default="its host")] = None
    oidc_scope: Annotated[str, Option(
        meaning="with --oidc-issuer: the scopes to request; some providers send groups with one of their own only",
        roles=Role.SERVER, metavar="SCOPES")] = "openid profile email"
    oidc_groups_claim: Annotated[str, Option(
        meaning="with --oidc-issuer: the claim with the groups of a person",
        roles=Role.SERVER, metavar="NAME")] = "groups"
    oidc_allowed: Annotated[tuple[str, ...], Option(
        meaning="people who may log in: @DOMAIN or ADDRESS of an e-mail address that the provider has verified, or "
        "group:NAME",
        roles=Role.SERVER, read=kinds.allowed_user, metavar="RULE", variable="SERVER_OIDC_ALLOWED",
        default="all whom the provider lets in; without a role, they see nothing")] = ()
    oidc_roles: Annotated[tuple[str, ...], Option(
        meaning="give the role view, run or manage in a project, or in all, to the people of a group; the group * is "
        "everybody who may log in",
        roles=Role.SERVER, names=("--oidc-role",), read=kinds.group_role, metavar="GROUP=PROJECT:ROLE",
        variable="SERVER_OIDC_ROLES", default="roles are given with scrapy platform users")] = ()

    # ── extraction: of a server, and of a worker for its own jobs ──
    allow_hosts: Annotated[tuple[str, ...], Option(
        meaning="allow pages of this host although its address is not public",
        names=("--allow-host",), metavar="HOST:PORT", variable="SERVER_ALLOW_HOSTS", setting="SERVER_ALLOW_HOSTS")] = ()
    connect_to: Annotated[tuple[str, ...], Option(
        meaning="connect to this address instead of resolving the host; * stands for every host",
        metavar="HOST:PORT=ADDRESS:PORT", setting="SERVER_CONNECT_TO")] = ()
    proxies: Annotated[tuple[str, ...], Option(
        meaning="send requests for this geolocation and ipType through an HTTP, HTTPS or SOCKS5 proxy; * stands for "
        "any. A password is better in the environment, with spaces between several proxies",
        names=("--proxy",), metavar="COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT", variable="SERVER_PROXIES",
        separator=None, setting="SERVER_PROXIES", secret=True)] = ()
    ban_detection: Annotated[bool, Option(
        meaning="return block and challenge pages of sites as results, instead of trying again by another proxy and by "
        "the browser",
        setting="SERVER_BAN_DETECTION")] = True
    block_list: Annotated[Path | None, Option(
        meaning="file of domains from which, with their subdomains, nothing is extracted: one per line, # for comments",
        metavar="FILE")] = None
    obey_robots: Annotated[bool, Option(meaning="fetch nothing that the robots.txt of its site refuses")] = False
    attributes_url: Annotated[str | None, Option(
        meaning="answer customAttributes by the model behind this OpenAI-compatible address, such as "
        "https://models.example/v1. Its key goes into the environment variable ATTRIBUTES_API_KEY",
        metavar="URL", default="by rules")] = None
    attributes_model: Annotated[str | None, Option(
        meaning="with --attributes-url: the name of the model",
        metavar="NAME")] = None
    attributes_key: Annotated[str | None, Option(
        meaning="with --attributes-url: the key of the model",
        names=(), variable="ATTRIBUTES_API_KEY", secret=True)] = None
    verify_tls: Annotated[bool, Option(
        meaning="accept any certificate of the pages fetched",
        setting="SERVER_VERIFY_TLS")] = True
    browser_pages: Annotated[int, Option(
        meaning="pages that the browser loads at once; each takes up to 768 MiB of memory",
        unit="pages")] = 6
    extraction_processes: Annotated[int, Option(
        meaning="processes of automatic extraction, each with one page at a time and about 80 MiB of memory; they "
        "start when they are needed",
        unit="processes", default=f"the processors, 2 at least: {_EXTRACTION_PROCESSES}")] = _EXTRACTION_PROCESSES
    browser: Annotated[str | None, Option(
        meaning="Chromium to use",
        read=kinds.program, metavar="PATH", default="Playwright's own, else from PATH")] = None

    # ── process ──
    status_address: Annotated[str | None, Option(
        meaning="answer GET /healthz, /readyz and /metrics at this address, without a key",
        roles=Role.WORKER, read=kinds.listen_address, metavar="HOST:PORT", default="none")] = None
    exit_with_stdin: Annotated[bool, Option(meaning="end when standard input is closed")] = False
    log_format: Annotated[str, Option(meaning="json: one object per line", choices=("text", "json"))] = "text"

    # ── jobs ──
    runner: Annotated[bool, Option(
        meaning="start no jobs here, neither for periodic jobs, check none by monitors, and send nothing to webhooks "
        "and targets of alerts",
        roles=Role.SERVER)] = True
    units: Annotated[int, Option(
        meaning="units of concurrent jobs on this node; 0: none here, but periodic jobs start and webhooks are sent",
        unit="units", least=0, default=f"twice the processors, {_UNITS}")] = _UNITS
    node_tags: Annotated[tuple[str, ...], Option(
        meaning="tags of this node; a job runs only on nodes that have all tags that it needs",
        names=("--node-tags", "--tags"), read=kinds.tags, metavar="A,B")] = ()
    unit_memory: Annotated[int, Option(
        meaning="memory of a job for each of its units; a job with more is killed",
        unit="MiB")] = 1024
    job_timeout: Annotated[float | None, Option(
        meaning="stop jobs that run so long, unless the job or its project sets PLATFORM_JOB_TIMEOUT",
        unit="seconds", default="never")] = None
    stop_grace: Annotated[float, Option(meaning="from the stop request of a job to its kill", unit="seconds")] = 30.0
    local_project: Annotated[Path | None, Option(
        meaning="run jobs of the Scrapy project in this folder",
        read=kinds.project_folder, metavar="DIR",
        default="of scrapy platform serve, the current project")] = None
    local_project_id: Annotated[int, Option(
        meaning="number of that project on the platform",
        setting="PLATFORM_PROJECT", default="the setting PLATFORM_PROJECT, or 1")] = 1
    environments: Annotated[Path | None, Option(
        meaning="folder for the environments of deployed versions",
        metavar="DIR", default="environments in the data directory; with --database, ~/.cache/scrapy-ext/environments"
    )] = None
    job_user: Annotated[str, Option(
        meaning="user for the processes of deployed versions: name or number of one for all, none for the server's "
        "own, or auto: one for each project where the server is root, else the server's",
        metavar="NAME")] = "auto"
    job_read: Annotated[tuple[str, ...], Option(
        meaning="allow deployed versions to read this file or folder, too",
        read=kinds.existing_path, metavar="PATH")] = ()
    job_deny: Annotated[tuple[str, ...], Option(
        meaning="deny deployed versions connections to this network, such as 10.0.0.0/8 or [fd00::1]:443; cloud "
        "metadata and the server's database are always denied",
        read=kinds.denied_address, metavar="NETWORK[:PORT]")] = ()
    job_opentelemetry: Annotated[bool, Option(
        meaning="give deployed versions the environment variables OTEL_…, so that they export traces and metrics, too; "
        "they can read a token in them")] = False
    deploy: Annotated[str, Option(
        meaning="keys that may deploy code, which runs here: those for all projects, also those limited to the "
        "project, or none",
        roles=Role.SERVER, choices=("all", "project", "none"))] = "all"

    mcp_allow_write: Annotated[bool, Option(
        meaning="offer agents at /mcp the tools that run, stop and schedule crawls, and those that fetch pages, if "
        "their key may use them; without it they only read",
        roles=Role.SERVER)] = False

    # ── pages ──
    item_images: Annotated[bool, Option(
        meaning="show images of items on the pages; the server fetches them from their sites, as it fetches pages to "
        "extract",
        roles=Role.SERVER)] = False

    # ── removal of old data: the same on all servers of a database ──
    keep_deleted: Annotated[int, Option(
        meaning="list deleted jobs for so long, without their data",
        roles=Role.SERVER, unit="days", least=0)] = 30
    keep_activity: Annotated[int, Option(
        meaning="keep activity messages for so long",
        roles=Role.SERVER, unit="days", least=0)] = 365
    keep_activity_messages: Annotated[int, Option(
        meaning="of these, keep so many of the newest in each project",
        roles=Role.SERVER, unit="messages")] = 1_000_000
    keep_deliveries: Annotated[int, Option(
        meaning="list the delivered and given up deliveries of webhooks for so long, at most a hundred of each",
        roles=Role.SERVER, unit="days", least=0)] = 30
    keep_monitor_results: Annotated[int, Option(
        meaning="keep the results of monitors, and the messages of alerts, for so long",
        roles=Role.SERVER, unit="days", least=0)] = 90
    keep_dead_letters: Annotated[int, Option(
        meaning="keep failed requests in a job's own frontier for so long after the job has finished",
        roles=Role.SERVER, unit="days", least=0)] = 30
    archive_targets: Annotated[tuple[str, ...], Option(
        meaning="folder or bucket to which rules may deliver finished jobs: file:///DIR, s3://BUCKET/PREFIX, "
        "gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. Credentials are those of the environment or the machine",
        roles=Role.SERVER, names=("--archive-target",), read=kinds.archive_target, metavar="URL",
        variable="SERVER_ARCHIVE_TARGETS")] = ()

    # ── limits ──
    slow_request: Annotated[float, Option(
        meaning="log requests that take so long",
        roles=Role.SERVER, unit="seconds")] = 10.0
    client_timeout: Annotated[float, Option(
        meaning="disconnect a client that sends or reads nothing for so long",
        roles=Role.SERVER, unit="seconds")] = 60.0
    memory: Annotated[int | None, Option(
        meaning="memory for bodies, their decoded values and answers, all together; a request without room gets 503, "
        "and a body that needs more alone 413",
        roles=Role.SERVER, unit="MiB", least=MIN_MEMORY, why="with less, no version could be deployed",
        default="a 32nd of the machine's memory or the control group's, but at least 512")] = None
    connections: Annotated[int | None, Option(
        meaning="open connections",
        roles=Role.SERVER, unit="connections", default="4096, but at most half of the files that may be open")] = None
    connections_per_address: Annotated[int | None, Option(
        meaning="connections from one address other than this machine's",
        roles=Role.SERVER, unit="connections", default="three quarters of --connections")] = None
    reverse_proxies: Annotated[tuple[str, ...], Option(
        meaning="address or network of a proxy before the server, exempt from --connections-per-address",
        roles=Role.SERVER, names=("--reverse-proxy",), read=kinds.network, metavar="ADDRESS")] = ()
    open_metrics: Annotated[bool, Option(
        meaning="make /metrics public, without a key for all projects",
        roles=Role.SERVER)] = False
    rate_limit: Annotated[float | None, Option(
        meaning="platform requests per second of each key; more get 429",
        roles=Role.SERVER, unit="requests per second", default="no limit")] = None
    rate_burst: Annotated[int | None, Option(
        meaning="with --rate-limit: requests at once",
        roles=Role.SERVER, unit="requests", default="those of two seconds")] = None
    extract_rate: Annotated[float | None, Option(
        meaning="extraction requests per second of each key; more get 429",
        roles=Role.SERVER, unit="requests per second", default="no limit")] = None
    domain_rate: Annotated[float | None, Option(
        meaning="extraction requests per second to each domain, of all keys together; more get 429",
        roles=Role.SERVER, unit="requests per second", default="no limit")] = None
    key_domain_rate: Annotated[float | None, Option(
        meaning="extraction requests per second to each domain, of each organisation or key without one; more get 429",
        roles=Role.SERVER, unit="requests per second", default="no limit")] = None
    domain_requests: Annotated[int | None, Option(
        meaning="concurrent extraction requests to one domain; others wait, and too many get 429",
        roles=Role.SERVER, unit="requests", default="32")] = None
    domain_delay: Annotated[float, Option(
        meaning="between the starts of extraction requests to a domain",
        roles=Role.SERVER, unit="seconds", default="none")] = 0.0

    # fmt: on

    @property
    def environments_folder(self) -> Path:
        """The folder of the environments of deployed versions."""
        if self.environments is not None:
            return self.environments
        if self.database is None:
            return self.data / "environments"
        cache = os.environ.get("XDG_CACHE_HOME")
        return (Path(cache) if cache else Path.home() / ".cache") / "scrapy-ext" / "environments"
