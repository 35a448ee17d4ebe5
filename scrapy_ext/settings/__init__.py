"""Table of all settings of the package.

The reference page of the documentation is generated from :data:`SETTINGS`. Components read a setting with
:meth:`Setting.read`, so that a wrong value gives one clear message wherever it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scrapy.settings import BaseSettings

from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.frontier import DEFAULT_SLOTS, MAX_SLOTS
from scrapy_ext.server.config.command_line import OPTIONS, SECRETS
from scrapy_ext.server.config.option import Option
from scrapy_ext.server.config.secret_files import SUFFIX
from scrapy_ext.settings.conversion import SettingType as SettingType
from scrapy_ext.settings.errors import SettingError as SettingError
from scrapy_ext.settings.setting import Setting as Setting
from scrapy_ext.settings.variables import read_from_dotenv
from scrapy_ext.settings.variables import variables as variables

_BOOL, _INT, _BOOL_OR_INT, _FLOAT, _STR, _LIST, _DICT = SettingType


#: Type of a setting by that of its default, or of the option that it is.
_TYPES: Final[Mapping[object, SettingType]] = {
    bool: _BOOL,
    int: _INT,
    bool | int: _BOOL_OR_INT,
    float: _FLOAT,
    list: _LIST,
    tuple[str, ...]: _LIST,
    dict: _DICT,
}


def _setting(name: str, default: object, meaning: str, kind: object = None, **flags: Any) -> Setting:
    """Add a setting; ``kind``: its Python type, if not that of the default. Any other type is text."""
    setting = Setting(name, _TYPES.get(kind or type(default), _STR), default, meaning, **flags)
    SETTINGS[name] = setting
    return setting


#: Every setting by name, in the order of the reference page.
SETTINGS: Final[dict[str, Setting]] = {}

# ── extraction ──
EXTRACT_API_ENABLED = _setting(
    "EXTRACT_API_ENABLED", True, "Route requests through the extraction API, by the downloader middleware."
)
EXTRACT_API_URL = _setting(
    "EXTRACT_API_URL",
    None,
    "Address of the extraction service, ending in /v1. Not set: the embedded service.",
    environment=True,
)
EXTRACT_API_KEY = _setting("EXTRACT_API_KEY", None, "Key of the extraction service.", environment=True, secret=True)
EXTRACT_API_TRANSPARENT_MODE = _setting(
    "EXTRACT_API_TRANSPARENT_MODE",
    False,
    "Route every request, not only those with meta extract_api. The add-on sets it to True.",
)
EXTRACT_API_PARAMS = _setting(
    "EXTRACT_API_PARAMS", {}, "Fields merged into every extraction request; None removes one."
)
EXTRACT_API_EXTRA_FIELDS = _setting(
    "EXTRACT_API_EXTRA_FIELDS",
    [],
    "Fields of the service that this version does not have: sent unchanged and unchecked.",
)
EXTRACT_API_STRICT = _setting(
    "EXTRACT_API_STRICT",
    False,
    "Refuse fields that the document of the API does not define: the extensions of the included service. Those in "
    "EXTRACT_API_EXTRA_FIELDS are sent.",
)
EXTRACT_API_RETRY_POLICY = _setting(
    "EXTRACT_API_RETRY_POLICY",
    {},
    "Attempts by problem type, merged over the defaults: {'/download/temporary-error': 5}.",
)
EXTRACT_API_MAX_REQUESTS = _setting(
    "EXTRACT_API_MAX_REQUESTS",
    0,
    "Close the spider after this many requests to the extraction service, retries included; 0: no limit.",
    least=0,
)
EXTRACT_API_MAX_COST = _setting(
    "EXTRACT_API_MAX_COST",
    0.0,
    "Close the spider before extraction costs more than this, by EXTRACT_API_PRICES; 0: no limit.",
    least=0,
)
EXTRACT_API_PRICES = _setting(
    "EXTRACT_API_PRICES",
    {},
    "Price of an extraction by its request kind, http and browser, and of each output on top of it.",
)
EXTRACT_API_LEDGER = _setting(
    "EXTRACT_API_LEDGER",
    True,
    "Keep answers on disk until their requests are finished, so that a resumed crawl does not pay twice.",
)
EXTRACT_API_MEMORY_LIMIT_MB = _setting(
    "EXTRACT_API_MEMORY_LIMIT_MB",
    0,
    "MiB of memory that all answers of the extraction service may take together, until their responses are freed; "
    "beyond it, requests wait. 0: an eighth of the memory of the machine or its container (64 to 1024), but at most a "
    "quarter of MEMUSAGE_LIMIT_MB.",
    least=0,
)
EXTRACT_API_STOP_GRACE = _setting(
    "EXTRACT_API_STOP_GRACE",
    20.0,
    "Seconds to wait for answers when the crawl is stopped by a signal; then the requests without one return to the "
    "queue.",
    least=0,
)
EXTRACT_API_SCRAPY_HEADERS = _setting(
    "EXTRACT_API_SCRAPY_HEADERS",
    False,
    "Send the headers of Scrapy to sites (User-Agent, Accept, Accept-Language), and none that only browsers send. By "
    "default sites see those of a browser, except for headers that you set.",
)
EXTRACT_API_RULES = _setting(
    "EXTRACT_API_RULES",
    None,
    "Folder of files with rules that correct automatic extraction. A relative path is one beside scrapy.cfg. Not set: "
    "extract_rules, if there is such a folder; empty: none.",
)
EXTRACT_API_LOG_REQUESTS = _setting(
    "EXTRACT_API_LOG_REQUESTS", False, "Log each extraction request at level DEBUG, without secrets."
)
EXTRACT_API_SNAPSHOTS_ON_ERROR = _setting(
    "EXTRACT_API_SNAPSHOTS_ON_ERROR",
    False,
    f"Keep the pages whose callbacks or errbacks raise, with their screenshots. A number: the most of a crawl; True: "
    f"{snapshots.USUAL}.",
    bool | int,
    least=0,
    most=snapshots.MOST,
)
EXTRACT_API_SNAPSHOTS_DIR = _setting(
    "EXTRACT_API_SNAPSHOTS_DIR",
    None,
    "Folder for these pages, as files. Not set: with the crawl's job on the platform; of a crawl without a job, in "
    "snapshots/<spider> of the project's .scrapy.",
)

# ── platform ──
PLATFORM_ENABLED = _setting(
    "PLATFORM_ENABLED", True, "Store job record, items, request records and logs on the platform."
)
PLATFORM_URL = _setting(
    "PLATFORM_URL",
    None,
    "Address of a platform that serves everything on one host. Not set: the embedded service.",
    environment=True,
)
PLATFORM_APP_URL = _setting(
    "PLATFORM_APP_URL", None, "Address for jobs (paths under /api/), if not PLATFORM_URL.", environment=True
)
PLATFORM_STORAGE_URL = _setting(
    "PLATFORM_STORAGE_URL", None, "Address of the storage, if not PLATFORM_URL.", environment=True
)
PLATFORM_JOBQ_URL = _setting(
    "PLATFORM_JOBQ_URL", None, "Address of the job queue, if not PLATFORM_URL.", environment=True
)
#: Addresses of the platform: of all of it, and of its parts.
PLATFORM_ADDRESSES: Final = (PLATFORM_URL, PLATFORM_STORAGE_URL, PLATFORM_APP_URL, PLATFORM_JOBQ_URL)
PLATFORM_API_KEY = _setting("PLATFORM_API_KEY", None, "Key of the platform.", environment=True, secret=True)
PLATFORM_IMPORT_KEY = _setting(
    "PLATFORM_IMPORT_KEY",
    None,
    "Key of the platform from which ``scrapy platform import`` copies projects.",
    environment=True,
    secret=True,
)
PLATFORM_PROJECT = _setting(
    "PLATFORM_PROJECT", 1, "Project ID. On a hosted platform, that of a project of yours.", environment=True, least=1
)
PLATFORM_JOB = _setting(
    "PLATFORM_JOB", None, "Job to resume, as project/spider/job. Not set: a new job.", environment=True
)
PLATFORM_TIMEOUT = _setting("PLATFORM_TIMEOUT", 60.0, "Seconds to wait for an answer of the platform.", least=1)
PLATFORM_RETRY_TIME = _setting(
    "PLATFORM_RETRY_TIME",
    0.0,
    "Seconds of failed attempts after which a write gives up and the crawl stops; 0: no limit, the crawl waits.",
    least=0,
)
PLATFORM_BATCH_SIZE = _setting("PLATFORM_BATCH_SIZE", 1000, "Maximum number of records in one write.", least=1)
PLATFORM_FLUSH_INTERVAL = _setting(
    "PLATFORM_FLUSH_INTERVAL", 2.0, "Seconds after which a record is sent, also in a small batch.", least=0.01
)
PLATFORM_BUFFER_BYTES = _setting(
    "PLATFORM_BUFFER_BYTES",
    16 * 2**20,
    "Bytes of unsent records above which the crawl waits for the platform.",
    least=0,
)
PLATFORM_ITEMS_MODE = _setting(
    "PLATFORM_ITEMS_MODE",
    "exact",
    "exact: an item is stored once, when its request is finished. streaming: at once, and again when its request is "
    "repeated after a crash.",
)
PLATFORM_ITEMS_STRICT = _setting(
    "PLATFORM_ITEMS_STRICT",
    False,
    "Refuse items with NaN, infinity or halves of surrogate pairs, instead of storing these as null or U+FFFD.",
)
PLATFORM_STATS_INTERVAL = _setting(
    "PLATFORM_STATS_INTERVAL",
    30.0,
    "Seconds between two writes of the crawl's stats to the job metadata; 0: only at the start and at the end.",
    least=0,
)
PLATFORM_LOG_LEVEL = _setting("PLATFORM_LOG_LEVEL", "INFO", "Lowest level of log records that are stored.")

# ── frontier ──
FRONTIER_ENABLED = _setting("FRONTIER_ENABLED", True, "Use FrontierScheduler as the scheduler, with the add-on.")
FRONTIER_NAME = _setting(
    "FRONTIER_NAME", None, "Name of the frontier. Not set: one of the job's own, removed when the job finishes."
)
FRONTIER_SLOTS = _setting(
    "FRONTIER_SLOTS",
    DEFAULT_SLOTS,
    "Number of virtual slots; must not change while a frontier exists. If it is not set, a job with several workers "
    "has four for each, and 8 at least.",
    least=1,
    most=MAX_SLOTS,
)
CRAWL_SPREAD = _setting(
    "CRAWL_SPREAD",
    True,
    "Spread the requests of a host over the workers of a job, which keep the limits of the host together. False: one "
    "worker has all of a host, with its cookies.",
)
FRONTIER_WORKER = _setting(
    "FRONTIER_WORKER",
    "0/1",
    "This worker's index, from 0, and the number of workers; or auto: workers come and go and share the slots. Several "
    "workers share a FRONTIER_NAME, and each has a job of its own.",
)
FRONTIER_KEEP_ALIVE = _setting(
    "FRONTIER_KEEP_ALIVE",
    False,
    "Wait for requests that others push into the frontier: True for ever, a number of seconds (over 1) until nothing "
    "has come for so long.",
    bool | int,
    least=0,
)
FRONTIER_LEASE_TIME = _setting(
    "FRONTIER_LEASE_TIME",
    30.0,
    "With several workers of one job (at least 6 there), or FRONTIER_WORKER auto: seconds without a report or "
    "heartbeat of a worker after which others take its slots. Set it above the longest time for which a callback "
    "blocks the event loop.",
    least=1,
)
FRONTIER_POLL_INTERVAL = _setting(
    "FRONTIER_POLL_INTERVAL",
    1.0,
    "With several workers or FRONTIER_KEEP_ALIVE: seconds between two polls for requests that others have sent; up to "
    "five times as many while a kept crawl waits.",
    least=0.05,
)
FRONTIER_MAX_ATTEMPTS = _setting(
    "FRONTIER_MAX_ATTEMPTS",
    1,
    "Attempts at a request whose callback or errback raises, before it is moved to slot dead-letters. Each attempt "
    "downloads again and repeats items for pipelines and feeds. Meta frontier_max_attempts overrides it.",
    least=1,
)
FRONTIER_ORDER = _setting(
    "FRONTIER_ORDER",
    None,
    "Order of requests of one host and priority: depth-first or breadth-first. Not set: that of "
    "SCHEDULER_MEMORY_QUEUE, by default depth-first.",
)
FRONTIER_PREFETCH = _setting(
    "FRONTIER_PREFETCH",
    300,
    "Number of requests in memory, read ahead of the downloader; up to ten times as many if reads take so long that "
    "the downloader would wait for them.",
    least=1,
)

# ── workers ──
CRAWL_WORKERS = _setting(
    "CRAWL_WORKERS",
    "1",
    "Number of processes of this machine that run a crawl together as one job; auto: one for each processor "
    "that it may use. For the commands scrapy crawl and scrapy runspider.",
)

# ── dupefilter ──
DUPEFILTER_COLLECTION = _setting(
    "DUPEFILTER_COLLECTION",
    None,
    "Collection whose pages, stored by any crawl, are skipped. CollectionDupeFilter alone: <spider>_seen.",
)
DUPEFILTER_COLLECTION_TYPE = _setting(
    "DUPEFILTER_COLLECTION_TYPE",
    "s",
    "Type of that collection. s: pages that were ever stored; cs: pages that were stored in the last month.",
)

# ── OpenTelemetry ──
OPENTELEMETRY_ENABLED = _setting(
    "OPENTELEMETRY_ENABLED",
    True,
    "Export traces and metrics of the crawl and its embedded server, where the environment names a collector "
    "(OTEL_EXPORTER_OTLP_ENDPOINT).",
)

# ── the embedded server ──
SERVER_DATA = _setting(
    "SERVER_DATA", "platform", "Data directory of the embedded server, relative to the project's .scrapy."
)
SERVER_START_TIMEOUT = _setting("SERVER_START_TIMEOUT", 60.0, "Seconds for the embedded server to start.", least=1)


def _meaning_of(option: Option) -> str:
    form = "False: " if option.value is True else f"{option.metavar}: " if option.repeatable else ""
    return f"{form}{option.meaning}. Also of `scrapy platform serve` and `worker` in the project."


for _option in OPTIONS:
    if _option.setting and _option.setting not in SETTINGS:
        _setting(
            _option.setting,
            list(_option.value) if _option.repeatable else _option.value,
            _meaning_of(_option),
            _option.type,
            environment=_option.variable == _option.setting,
            secret=_option.secret,
            separator=_option.separator,
        )
SERVER_DATABASE = SETTINGS["SERVER_DATABASE"]
#: Environment variables of secrets, whose values may also come from files.
_SECRETS: Final = {*SECRETS, *(name for name, setting in SETTINGS.items() if setting.environment and setting.secret)}
#: Environment variables that this package reads.
VARIABLES: Final = frozenset(
    {
        *(name for name, setting in SETTINGS.items() if setting.environment),
        *(option.variable for option in OPTIONS if option.variable),
        *_SECRETS,
        *(name + SUFFIX for name in _SECRETS),
    }
)
read_from_dotenv(VARIABLES)


def of_server(settings: BaseSettings) -> dict[str, Any]:
    """Return the values of the settings that are options of the server, by name; raises :class:`SettingError`."""
    return {option.setting: SETTINGS[option.setting].read(settings) for option in OPTIONS if option.setting}
