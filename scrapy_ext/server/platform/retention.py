"""Retention rules of a project (``/api/projects/<project>/retention``) and of the server (``/api/retention``)."""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.platform.retention import FIELDS, MAX_COLLECTIONS, WHAT, Preview, Rule, rule_of
from scrapy_ext.server.http import schemas
from scrapy_ext.server.http.routes import Routes
from scrapy_ext.server.platform.rules import CONDITIONS, RulePaths, declare

ROUTES: Final = Routes()

_NEW: Final[schemas.Schema] = schemas.record(
    {
        **CONDITIONS,
        "what": schemas.array({"enum": [*WHAT]}, least=1, most=len(WHAT)),
        "collections": schemas.array({"type": "string", "maxLength": 255}, most=MAX_COLLECTIONS),
        "only_delivered": {"type": "boolean"},
    },
    "what",
    only=True,
)

declare(
    ROUTES,
    RulePaths(
        name="retention",
        noun="retention rule",
        done="removed",
        body=_NEW,
        fields=FIELDS,
        example='{"what": ["items"], "older_than": 90}',
        rule=Rule,
        preview=Preview,
        parse=lambda _, fields: rule_of(fields),
        rules=lambda store: store.retention,
    ),
)
