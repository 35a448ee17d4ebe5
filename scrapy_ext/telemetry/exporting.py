"""OpenTelemetry in this process: whether it is switched on, from its start to its end.

It is on where the environment names a collector (``OTEL_EXPORTER_OTLP_ENDPOINT``), or where the process has set a
provider of tracers by itself, which is then used.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from scrapy_ext.telemetry.families import Collect

if TYPE_CHECKING:
    from types import ModuleType

logger = logging.getLogger("scrapy_ext.telemetry")

DISABLED: Final = "OTEL_SDK_DISABLED"
_PROTOCOL: Final = "http/protobuf"
_MISSING: Final = (
    'Nothing is exported, because OpenTelemetry is missing. pip install "scrapy-ext[opentelemetry]"; an image is built '
    "with --build-arg EXTRAS=postgresql,opentelemetry"
)


@contextlib.asynccontextmanager
async def exporting(service: str, collect: Collect) -> AsyncIterator[None]:
    """Export traces and metrics within the block, if that is switched on. ``service`` is the default of the name.

    A fault is logged, and leaves it off: it is no reason to stop a crawl or a server.
    """
    telemetry = None
    try:
        is_traced, is_measured = (is_on(signal, os.environ) for signal in ("TRACES", "METRICS"))
        provider = _provider_of_process()
        if is_traced or is_measured or provider is not None:
            # In a thread, since this imports much.
            process = await asyncio.to_thread(_import)
            telemetry = process.Telemetry(service, collect if is_measured else None, provider, is_traced=is_traced)
    except ImportError:
        logger.warning("%s", _MISSING)
    except Exception as error:
        logger.warning("Nothing is exported to OpenTelemetry: %s", error)
    try:
        yield
    finally:
        if telemetry is not None:
            await telemetry.stop()


def is_on(signal: str, environ: Mapping[str, str]) -> bool:
    """Return true if the environment switches ``TRACES`` or ``METRICS`` on; raises :class:`ValueError`."""
    endpoints = (f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    if _is_disabled(environ) or not any(map(environ.get, endpoints)):
        return False
    if "otlp" not in (environ.get(f"OTEL_{signal}_EXPORTER") or "otlp").replace(" ", "").split(","):
        return False
    protocols = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next((name for name in protocols if environ.get(name)), "")
    if name and environ[name] != _PROTOCOL:
        raise ValueError(f"{name} must be {_PROTOCOL}, got {environ[name]!r}. Use the collector's port for HTTP.")
    return True


def _is_disabled(environ: Mapping[str, str]) -> bool:
    return environ.get(DISABLED, "").strip().lower() == "true"


def _provider_of_process() -> Any:
    """Return the provider of tracers that other code of this process has set, or None."""
    api: ModuleType | None = sys.modules.get("opentelemetry.trace")
    if api is None or _is_disabled(os.environ):
        return None
    provider = api.get_tracer_provider()
    return None if isinstance(provider, api.ProxyTracerProvider) else provider


def _import() -> Any:
    from scrapy_ext.telemetry import process  # It imports OpenTelemetry.

    return process
