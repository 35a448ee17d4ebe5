"""The options of the server's commands, and the configuration that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scrapy_ext.server.config import option_types as arguments
from scrapy_ext.server.config.config import LOG_FORMATS, ConfigError, ServerConfig
from scrapy_ext.server.store.engine.address import DatabaseUrl
from scrapy_ext.server.store.engine.errors import StoreError

#: Environment variables that hold secrets.
SECRETS: Final = ("EXTRACT_API_KEY", "PLATFORM_API_KEY", "SERVER_DATABASE", "SERVER_PROXIES", "ATTRIBUTES_API_KEY")
#: MiB of ``--memory``: a deploy counts for 20 MiB.
MIN_MEMORY: Final = 32
DEFAULT_DATA: Final = Path("data")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the server's options to a parser."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=arguments.port, default=8700, help="port to listen on, 0 for a free one (default: %(default)s)"
    )
    add_store_options(parser)
    parser.add_argument(
        "--extract-key",
        metavar="KEY",
        help="key of the extraction service; the environment variable EXTRACT_API_KEY does not show in process lists",
    )
    parser.add_argument("--platform-key", metavar="KEY", help="key of the platform; or PLATFORM_API_KEY, as above")
    add_extraction_options(parser)
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input is closed")
    parser.add_argument(
        "--no-runner", action="store_true", help="start no jobs here, add none of periodic jobs, and tell no webhooks"
    )
    add_runner_options(parser)
    parser.add_argument(
        "--deploy",
        choices=("all", "project", "none"),
        default="all",
        help="keys that may deploy code, which runs here: those that open all projects (default), also those that are "
        "limited to the project, or none",
    )
    parser.add_argument(
        "--log-format", choices=LOG_FORMATS, default="text", help="json: one object a line (default: %(default)s)"
    )
    parser.add_argument(
        "--slow-request",
        type=arguments.positive("seconds"),
        default=10.0,
        metavar="SECONDS",
        help="log requests that take so long (default: %(default)g)",
    )
    parser.add_argument(
        "--client-timeout",
        type=arguments.positive("seconds"),
        default=60.0,
        metavar="SECONDS",
        help="give up a client that sends or reads nothing for so long (default: %(default)g)",
    )
    add_bound_options(parser)
    parser.add_argument(
        "--open-metrics", action="store_true", help="show /metrics to anyone, not only with a key for all projects"
    )
    parser.add_argument(
        "--rate-limit",
        type=arguments.positive("requests a second"),
        metavar="N",
        help="requests a second that each key of the platform may make; more get 429 (default: no limit)",
    )
    parser.add_argument(
        "--rate-burst",
        type=arguments.whole("requests"),
        metavar="N",
        help="with --rate-limit: requests that may come at once (default: those of two seconds)",
    )
    for option, whose in (
        ("--extract-rate", "each key"),
        ("--domain-rate", "all keys together, for each domain,"),
        ("--key-domain-rate", "each organisation, or key without one, for each domain,"),
    ):
        told = f"extraction requests a second that {whose} may make; more get 429 (default: no limit)"
        parser.add_argument(option, type=arguments.positive("requests a second"), metavar="N", help=told)
    parser.add_argument(
        "--domain-requests",
        type=arguments.whole("requests"),
        metavar="N",
        help="extraction requests to one domain at once; others wait, and get 429 where too many do (default: 32)",
    )
    parser.add_argument(
        "--domain-delay",
        type=arguments.positive("seconds"),
        default=0.0,
        metavar="SECONDS",
        help="from the start of one extraction request to a domain to the next (default: none)",
    )


def add_bound_options(parser: argparse.ArgumentParser) -> None:
    """Add the bounds of the server's memory and connections."""
    parser.add_argument(
        "--memory",
        type=arguments.whole("MiB", least=MIN_MEMORY, why="with less, no version could be deployed"),
        metavar="MIB",
        help="memory that bodies, what they decode to, and answers may take together; more get 503, and a body that "
        "takes more alone 413 (default: a 32nd of the machine's memory or the control group's, but at least 512)",
    )
    parser.add_argument(
        "--connections",
        type=arguments.whole("connections"),
        metavar="N",
        help="connections that are open at once (default: 4096, but at most half of the files that may be open)",
    )
    parser.add_argument(
        "--connections-per-address",
        type=arguments.whole("connections"),
        metavar="N",
        help="connections from one address other than this machine's (default: three quarters of --connections)",
    )
    parser.add_argument(
        "--reverse-proxy",
        action="append",
        type=arguments.network,
        default=[],
        metavar="ADDRESS",
        help="address or network of a proxy before the server, for which --connections-per-address does not hold "
        "(repeatable)",
    )


def add_extraction_options(parser: argparse.ArgumentParser) -> None:
    """Add what the extraction service is told: of a server, and of a worker for its own jobs."""
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="let pages of this host be fetched although its address is not public (repeatable). Without the option: "
        "those of the environment variable SERVER_ALLOW_HOSTS, which have commas between them",
    )
    parser.add_argument(
        "--connect-to",
        action="append",
        default=[],
        metavar="HOST:PORT=ADDRESS:PORT",
        help="connect there instead of resolving the host; * stands for every host (repeatable)",
    )
    parser.add_argument(
        "--proxy",
        action="append",
        default=[],
        metavar="COUNTRY:TYPE=http://USER:PASSWORD@HOST:PORT",
        help="send requests for this geolocation and ipType through a proxy; * stands for any (repeatable). With a "
        "password, better in the environment variable SERVER_PROXIES, whose proxies have spaces between them",
    )
    parser.add_argument(
        "--block-list",
        type=Path,
        metavar="FILE",
        help="extract nothing from these domains and those below them: one a line, # for comments",
    )
    parser.add_argument(
        "--obey-robots", action="store_true", help="fetch nothing that the robots.txt of its site refuses"
    )
    parser.add_argument(
        "--attributes-url",
        metavar="URL",
        help="answer customAttributes by the model behind this OpenAI-compatible address, such as "
        "https://models.example/v1 (default: by rules). Its key goes into the environment variable ATTRIBUTES_API_KEY",
    )
    parser.add_argument("--attributes-model", metavar="NAME", help="with --attributes-url: the name of the model")
    parser.add_argument("--no-verify-tls", action="store_true", help="accept any certificate of the pages fetched")
    parser.add_argument(
        "--browser-pages",
        type=arguments.whole("pages"),
        default=ServerConfig().max_browser_pages,
        metavar="N",
        help="pages that the browser loads at once; each takes up to 768 MiB of memory (default: %(default)s)",
    )
    parser.add_argument(
        "--browser",
        type=arguments.program,
        metavar="PATH",
        help="Chromium to use (default: Playwright's own, else from PATH)",
    )


def add_runner_options(parser: argparse.ArgumentParser) -> None:
    """Add what a node that runs jobs is told."""
    parser.add_argument(
        "--units",
        type=arguments.whole("units"),
        default=ServerConfig().units,
        metavar="N",
        help="units of the jobs that run here at once (default: twice the processors, %(default)s)",
    )
    parser.add_argument(
        "--node-tags",
        "--tags",
        type=arguments.tags,
        default=(),
        metavar="A,B",
        help="tags of this node: jobs that need one of them run only where it is",
    )
    parser.add_argument(
        "--unit-memory",
        type=arguments.whole("MiB"),
        default=ServerConfig().unit_memory,
        metavar="MIB",
        help="memory of a job for each of its units; one that has more is killed (default: %(default)s)",
    )
    parser.add_argument(
        "--job-timeout",
        type=arguments.positive("seconds"),
        metavar="SECONDS",
        help="stop jobs that run so long, where neither the job nor its project sets PLATFORM_JOB_TIMEOUT (default: "
        "never)",
    )
    parser.add_argument(
        "--stop-grace",
        type=arguments.positive("seconds"),
        default=30.0,
        metavar="SECONDS",
        help="from asking a job to stop to killing it (default: %(default)g)",
    )
    parser.add_argument(
        "--local-project",
        type=arguments.project_folder,
        metavar="DIR",
        help="run jobs of the Scrapy project in this folder (default: the one that the command is given in)",
    )
    parser.add_argument(
        "--local-project-id",
        type=arguments.whole(),
        metavar="N",
        help="the project that it is on the platform (default: the setting PLATFORM_PROJECT, or 1)",
    )
    parser.add_argument(
        "--environments",
        type=Path,
        metavar="DIR",
        help="folder for the environments of deployed versions (default: environments in the data directory; with "
        "--database, ~/.cache/scrapy-ext/environments)",
    )

    parser.add_argument(
        "--job-user",
        default=ServerConfig().job_user,
        metavar="NAME",
        help="user for the processes of deployed versions: name or number of one for all, none for the server's own, "
        "or auto (default): one for each project where the server is root, else the server's",
    )
    parser.add_argument(
        "--job-read",
        type=arguments.existing_path,
        action="append",
        default=[],
        metavar="PATH",
        help="let deployed versions read this file or folder, too (repeatable)",
    )
    parser.add_argument(
        "--job-deny",
        type=arguments.denied_address,
        action="append",
        default=[],
        metavar="NETWORK[:PORT]",
        help="let deployed versions not connect there, such as 10.0.0.0/8 or [fd00::1]:443 (repeatable); cloud "
        "metadata and the server's database are denied anyway",
    )


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--data`` and ``--database``, of which one may be given."""
    store = parser.add_mutually_exclusive_group()
    store.add_argument(
        "--data",
        type=Path,
        help="directory of the SQLite database (default: that of the project, .scrapy/platform; data for python -m "
        "scrapy_ext.server)",
    )
    store.add_argument(
        "--database",
        type=arguments.database_url,
        metavar="URL",
        help="postgresql://USER@HOST:PORT/DATABASE instead; with a password, better in the environment variable "
        "SERVER_DATABASE, which does not show in process lists",
    )


def store_from(options: argparse.Namespace, environ: Mapping[str, str]) -> Path | DatabaseUrl:
    """The database that options and environment name, an option before the environment; raises ConfigError."""
    if options.data is not None:
        return Path(options.data)
    if options.database is not None:
        found: DatabaseUrl = options.database
        return found
    given = environ.get("SERVER_DATABASE")
    try:
        return DatabaseUrl(given) if given else DEFAULT_DATA
    except StoreError as error:
        raise ConfigError(f"SERVER_DATABASE: {error}") from None


def config_from(options: argparse.Namespace, environ: Mapping[str, str]) -> ServerConfig:
    """The configuration that parsed options and the environment make; an option wins. Raises ConfigError."""
    store = store_from(options, environ)
    return ServerConfig(
        host=options.host,
        port=options.port,
        data=store if isinstance(store, Path) else DEFAULT_DATA,
        database=store if isinstance(store, DatabaseUrl) else None,
        extract_key=options.extract_key or environ.get("EXTRACT_API_KEY") or None,
        platform_key=options.platform_key or environ.get("PLATFORM_API_KEY") or None,
        exit_with_stdin=options.exit_with_stdin,
        log_format=options.log_format,
        slow_request=options.slow_request,
        client_timeout=options.client_timeout,
        memory=options.memory,
        connections=options.connections,
        connections_per_address=options.connections_per_address,
        reverse_proxies=tuple(options.reverse_proxy),
        open_metrics=options.open_metrics,
        rate_limit=options.rate_limit,
        rate_burst=options.rate_burst,
        extract_rate=options.extract_rate,
        domain_rate=options.domain_rate,
        key_domain_rate=options.key_domain_rate,
        domain_requests=options.domain_requests,
        domain_delay=options.domain_delay,
        runner=not options.no_runner,
        deploy=options.deploy,
        **extraction_from(options, environ),
        **runner_from(options),
    )


def extraction_from(options: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the configuration that :func:`add_extraction_options` asks for."""
    return {
        "allow_hosts": tuple(options.allow_host or filter(None, environ.get("SERVER_ALLOW_HOSTS", "").split(","))),
        "connect_to": tuple(options.connect_to),
        "proxies": (*options.proxy, *environ.get("SERVER_PROXIES", "").split()),
        "block_list": options.block_list,
        "obey_robots": options.obey_robots,
        "verify_tls": not options.no_verify_tls,
        "browser_path": options.browser,
        "max_browser_pages": options.browser_pages,
        "attributes_url": options.attributes_url,
        "attributes_model": options.attributes_model,
        "attributes_key": environ.get("ATTRIBUTES_API_KEY") or None,
    }


def runner_from(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of the configuration that :func:`add_runner_options` asks for."""
    return {
        "units": options.units,
        "node_tags": options.node_tags,
        "unit_memory": options.unit_memory,
        "job_timeout": options.job_timeout,
        "stop_grace": options.stop_grace,
        "local_project": options.local_project,
        "local_project_id": options.local_project_id or 1,
        "environments": options.environments,
        "job_user": options.job_user,
        "job_read": tuple(options.job_read),
        "job_deny": tuple(options.job_deny),
    }
