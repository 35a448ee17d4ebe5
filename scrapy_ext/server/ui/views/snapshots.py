"""``/ui/<project>/<spider>/<job>/snapshots``: the pages whose callbacks raised, with their screenshots.

Pages come from any site. Their text is shown escaped or sent as ``text/plain``, in a sandbox and never sniffed, so that
no browser takes it for a document of this server. Only PNG, JPEG and WebP are sent as images.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from scrapy_ext.api.platform import snapshots
from scrapy_ext.api.platform.snapshots import DamagedPartError, Part, StoredSnapshot
from scrapy_ext.api.platform.users import Action
from scrapy_ext.server.computing.threads import in_data_thread
from scrapy_ext.server.store.collections.selections import RecordSelection, prefix_range
from scrapy_ext.server.ui.frame import HEADERS, MissingError, UiPage, Visit
from scrapy_ext.server.ui.job_records import PATH, job_context, snapshots_of

_PER_PAGE: Final = 50
#: Characters of a page that are shown; the link to its source has all.
_SHOWN: Final = 200_000
_ONE: Final = PATH + "/snapshots/{id}"
#: A document with these headers runs nothing, loads nothing and has an origin of its own.
_FOREIGN: Final = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"}


async def _list(visit: Visit) -> Response:
    context = await job_context(visit, "snapshots")
    key, after = visit.key, visit.text("after")
    part = prefix_range(snapshots.list_prefix(key).encode())
    if snapshots.is_id(after):
        part = part._replace(low=snapshots.snapshot_key(key, after).encode(), after=True)
    records = [
        record
        async for page in visit.store.collections.scan(snapshots_of(key), RecordSelection((part,)), _PER_PAGE + 1)
        for record in page
    ]
    found = [snapshots.stored(key, record.key.decode(), record.value) for record in records[:_PER_PAGE]]
    following = records[_PER_PAGE - 1].key.decode().rpartition("/")[2] if len(records) > _PER_PAGE else None
    shown = [each for each in found if each is not None]
    return visit.rendered("snapshots.html", **context, snapshots=shown, after=after, following=following)


async def _show(visit: Visit) -> Response:
    context = await job_context(visit, "snapshots")
    stored = await _stored(visit)
    page = await _content(visit, stored, Part.PAGE)
    text = "" if page is None else page.decode("utf-8", "replace").replace("\r\n", "\n")
    return visit.rendered(
        "snapshot.html",
        **context,
        id=stored.id,
        snapshot=stored.snapshot,
        text=text[:_SHOWN],
        length=len(text),
        reasons=snapshots.REASONS,
    )


async def _page(visit: Visit) -> Response:
    """Send the page as plain text."""
    data = await _content(visit, await _stored(visit), Part.PAGE)
    if data is None:
        raise MissingError
    return Response(data, 200, _FOREIGN, media_type="text/plain; charset=UTF-8")


async def _screenshot(visit: Visit) -> Response:
    data = await _content(visit, await _stored(visit), Part.SCREENSHOT)
    if data is None:
        raise MissingError
    return Response(data, 200, _FOREIGN, media_type=snapshots.image_type(data))


async def _stored(visit: Visit) -> StoredSnapshot:
    """Return the snapshot of the path."""
    key, name = visit.key, visit.request.path_params["id"]
    if not snapshots.is_id(name):
        raise MissingError
    record_key = snapshots.snapshot_key(key, name)
    found = await visit.store.collections.get(snapshots_of(key), record_key.encode())
    stored = snapshots.stored(key, record_key, found.value) if found is not None else None
    if stored is None:
        raise MissingError
    return stored


async def _content(visit: Visit, stored: StoredSnapshot, part: Part) -> bytes | None:
    """Return a part of a snapshot, None if it lacks the part or pieces of it."""
    records = []
    for key in stored.keys_of(part):
        record = await visit.store.collections.get(snapshots_of(stored.job), key.encode())
        if record is None:
            return None
        records.append(record.value)
    try:
        return await in_data_thread(snapshots.unpack, part, records) if records else None
    except DamagedPartError:
        return None


PAGES: Final = (
    UiPage(PATH + "/snapshots", "jobs", _list, action=Action.RUN),
    UiPage(_ONE, "jobs", _show),
    UiPage(_ONE + "/page", "jobs", _page),
    UiPage(_ONE + "/screenshot", "jobs", _screenshot),
)
