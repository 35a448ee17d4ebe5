"""Lines of requests that programs push into frontiers."""

from __future__ import annotations

import json

import msgspec
from scrapy import Request, Spider
from scrapy.utils.request import fingerprint

from scrapy_ext.api.platform.feeding import FORM_VERSION, parsed
from scrapy_ext.api.platform.frontier import slot_of_url
from scrapy_ext.api.violations import ContractError
from scrapy_ext.crawl.frontier.identity import slot_of
from scrapy_ext.crawl.frontier.serialize import UnreadableRequestError, request_from_json
from tests.fuzz.target import target

_SPIDER = Spider(name="fuzz")


@target(
    "pushed-lines",
    [
        b"https://example.com/?b=1&a=2#c",
        b'"https://example.com/"',
        b'{"url":"https://example.com/\xc3\xa4","method":"post","body":"a=1","priority":-3,"dont_filter":true}',
        b'{"url":"https://a.example/","headers":{"A":"b","C":["d","\xc3\xa9"]},"cookies":{"a":"b"},"flags":["x"]}',
        b'{"url":"https://example.com/","meta":{"frontier_slot":"a","depth":1},"cb_kwargs":{"n":[1,null]}}',
        b'{"url":"https://a.example/","body":{"$type":"bytes","value":"/wA="},"encoding":"latin-1","class":"FormRequest"}',
        b'{"url":"http://[::1","v":1}',
        b'{"url":"https://]x/","meta":{"verbatim_url":true}}',
        b'{"url":"data:,x","callback":"parse","errback":"parse","fp":"00ff"}',
        b'{"url":"https://example.com/","meta":{"a":{"$type":"tuple","value":[1]},"b":{"$type":"none"}}}',
        b'{"url":"https://x/%ff\\ud83d\\ude00?","meta":{"verbatim_url":true}}',
        b'{"url":' * 50,
    ],
    refuses=(ContractError,),
    calls=(20_000, 400),
)
def pushed_lines(data: bytes) -> None:
    """A line that is accepted is valid JSON again, and stands for the same request, fingerprint and slot in a crawl."""
    pushed = parsed(data, "line 1")
    form = msgspec.json.decode(msgspec.json.encode(pushed.form))
    assert json.loads(json.dumps(form)) == form
    assert form["v"] == FORM_VERSION
    record = pushed.record("push", 0)
    assert record.fp
    assert -(2**31) <= record.p < 2**31
    try:
        request: Request = request_from_json(form, _SPIDER)
    except UnreadableRequestError:
        return  # a callback or a tag that this spider does not have: it goes to the dead letters
    assert request.url == form["url"]
    assert str(slot_of(request, 8)) == str(slot_of_url(form["url"], pushed.chosen_slot, 8))
    if not pushed.names_fp:
        assert fingerprint(request).hex() == pushed.fp
