"""``/ui/extract``: a form to try the extraction service, with its ``statistics`` and the success of its ``proxies``.

A request is handled as by ``POST /v1/extract``, with the rights and limits of the session's key.
"""

from __future__ import annotations

from itertools import islice
from time import perf_counter
from typing import Any, Final

import msgspec
from starlette.responses import Response

from scrapy_ext.api.extraction import EXTRACT_TYPES, Problem, parse
from scrapy_ext.api.extraction.fields import EXTRACT_FROM
from scrapy_ext.api.extraction.rules import InvalidJsonError
from scrapy_ext.api.platform.users import Action
from scrapy_ext.api.violations import ContractError, refused
from scrapy_ext.server.auth.credentials import Caller
from scrapy_ext.server.http.answers import Refusal
from scrapy_ext.server.http.forms import Form
from scrapy_ext.server.http.request_context import context_of
from scrapy_ext.server.ui import playground
from scrapy_ext.server.ui.frame import Link, UiPage, Visit

_PATH: Final = "/ui/extract"
_TAGS: Final = 200
#: Pairs of a proxy and a site that are shown.
_PAIRS: Final = 300
_FORBIDDEN: Final = "Statistics cover all projects. Log in with a key of all projects."
_EXAMPLE: Final = Form((("browserHtml", "on"), ("screenshot", "on")))


async def _show(visit: Visit) -> Response:
    caller = await visit.services.keys.caller_of(visit.grant)
    return _rendered(visit, _EXAMPLE, refusal=_refusal(caller))


def _refusal(caller: Caller | None) -> str:
    return "This key was removed." if caller is None else caller.refusal


def _rendered(visit: Visit, form: Form, status: int = 200, /, **context: object) -> Response:
    given: dict[str, Any] = {
        "form": {name: form.get(name) or "" for name in ("url", "kind", "extractFrom", "more")},
        "ticked": {name for name in (*playground.TICKS, "fieldSources") if form.get(name) is not None},
        "ticks": playground.TICKS,
        "kinds": EXTRACT_TYPES,
        "sources": EXTRACT_FROM,
        "refusal": "",
        "wrong": [],
        "body": None,
        "problem": None,
        "result": None,
        "shown": None,
        "took": 0,
        "curl": "",
        "snippet": "",
        "trusted": visit.grant.all_projects,
    }
    return visit.rendered("extract.html", status, **{**given, **context})


async def _try(visit: Visit) -> Response:
    caller = await visit.services.keys.caller_of(visit.grant)
    if caller is None or caller.refusal:
        raise Refusal(403, _refusal(caller))
    form = visit.form
    try:
        body = playground.fields_of(form)
        request = parse(msgspec.json.encode(body))
    except InvalidJsonError as error:
        return _rendered(
            visit, form, 400, wrong=[refused("more", str(error), 'Write {"geolocation": "DE"}.').violations[0]]
        )
    except ContractError as error:
        return _rendered(visit, form, error.status, wrong=error.violations[:20])
    began = perf_counter()
    answer = await visit.services.extraction.tried(request, caller, context_of(visit.request.scope))
    took = round((perf_counter() - began) * 1000)
    url = visit.request.url
    code = {
        "took": took,
        "body": body,
        "curl": playground.as_curl(body, f"{url.scheme}://{url.netloc}"),
        "snippet": playground.as_request(body),
    }
    if isinstance(answer, Problem):
        return _rendered(visit, form, problem=answer, **code)
    return _rendered(visit, form, result=answer, shown=playground.shown(answer), **code)


async def _statistics(visit: Visit) -> Response:
    if not visit.grant.all_projects:
        raise Refusal(403, _FORBIDDEN)
    measures = visit.services.extraction.measures
    return visit.rendered(
        "extraction.html", ends=measures.ends(), callers=measures.callers(), tags=measures.tags.most(_TAGS)
    )


async def _proxies(visit: Visit) -> Response:
    if not visit.grant.all_projects:
        raise Refusal(403, _FORBIDDEN)
    pool = visit.services.extraction.pool
    rows = list(islice(pool.by_site(), _PAIRS + 1))
    return visit.rendered(
        "proxies.html", proxies=list(pool.totals()), rows=rows[:_PAIRS], is_cut=len(rows) > _PAIRS, most=_PAIRS
    )


PAGES: Final = (
    UiPage(_PATH, "extract", _show, _try, Action.EXTRACT),
    UiPage(_PATH + "/statistics", "extract", _statistics),
    UiPage(_PATH + "/proxies", "extract", _proxies),
)
LINKS: Final = (Link("extract", "Extract", _PATH + "?project={project}"),)
