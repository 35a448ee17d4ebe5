"""Answers to ``customAttributes``: by rules, or by a language model (:mod:`.chat_attributes`).

An :class:`AttributeExtractor` declares its input (the answers of rules, or the text of the page) and returns the
answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import urlsplit

from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.config.extraction_limits import ServiceLimits
from scrapy_ext.server.extraction.auto_worker import ExtractionOutcome
from scrapy_ext.telemetry.families import Family


class AttributeExtractor(Protocol):
    """Interface of the ways to answer the attributes of a page."""

    #: Whether its input is the text of the page, rather than the answers of the rules.
    reads_text: bool

    async def answer(self, asked: dict[str, Any], found: ExtractionOutcome) -> dict[str, Any]:
        """Return ``values`` and ``metadata`` of ``customAttributes``. Never raises."""

    def metrics(self) -> Iterator[Family]:
        """Yield its metrics."""
        yield from ()

    async def stop(self) -> None:
        """Close its connections, if it has any."""


def attribute_extractor(config: ServerConfig, limits: ServiceLimits) -> AttributeExtractor:
    """Return the extractor of a server's configuration; raises :class:`ConfigError` for an invalid URL."""
    if config.attributes_url is None:
        return RuleAttributes()
    parts = urlsplit(config.attributes_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ConfigError(
            "--attributes-url must be an http or https address without credentials, such as https://models.example/v1. "
            "The key goes into the environment variable ATTRIBUTES_API_KEY."
        )
    if not config.attributes_model:
        raise ConfigError("--attributes-url needs --attributes-model, the name of the model.")
    # It imports an HTTP client, which few servers need for this.
    from scrapy_ext.server.extraction.chat_attributes import ChatAttributes

    return ChatAttributes(config.attributes_url, config.attributes_model, config.attributes_key, limits)


class RuleAttributes(AttributeExtractor):
    """Answers by rules, which the extraction itself has found."""

    reads_text = False

    async def answer(self, asked: dict[str, Any], found: ExtractionOutcome) -> dict[str, Any]:
        """Return ``values`` with null where no rule is certain."""
        return {"values": found.attributes or dict.fromkeys(asked), "metadata": {}}

    async def stop(self) -> None:
        """Do nothing: there are no connections."""
