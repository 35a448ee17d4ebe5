"""A crawl that was killed goes on without paying again for what it had an answer to and had not finished."""

from __future__ import annotations

import base64
import signal
from pathlib import Path

import pytest

from tests.support.crash.lives import until
from tests.support.faulty_service import NEVER, PAGE, page
from tests.support.planned_crawls import WITH_FRONTIER, Plan, pages, setting

PAGES = 8


def text_of(number: int) -> bytes:
    return f"<html><h1>only here: page {number}</h1></html>".encode()


def is_on_disk(folder: Path, texts: list[bytes]) -> bool:
    """Return True if answers with these pages are in some file of the crawl."""
    files = [path for path in (folder / ".scrapy").rglob("*") if path.is_file()]
    stored = b"".join(path.read_bytes() for path in files)
    return all(base64.b64encode(text) in stored for text in texts)


@pytest.mark.long
@pytest.mark.parametrize("ledger", [True, pytest.param(False, marks=pytest.mark.full)])
def test_what_was_answered_and_not_finished_is_not_posted_again(tmp_path, service, ledger):
    """Eight pages are in callbacks without end, and two at the service, when the process is killed."""
    # The first requests of each run are sent before it is known what the service accepts.
    service.extensions = ("followRedirect", "responseCookies")
    wave = pages("site.example", PAGES)
    texts = [text_of(number) for number in range(PAGES)]
    for url, text in zip(wave, texts, strict=True):
        service.plays(url.removeprefix("https://"), page(text))
    service.plays("silent.example", NEVER)
    crawls = Plan(tmp_path, service, {"EXTRACT_API_LEDGER": ledger}, WITH_FRONTIER)
    running = crawls.start([*wave, *pages("silent.example", 2)], options=("-a", "endless=1"))
    until(lambda: len(crawls.outcomes) == PAGES and service.count("silent.example") == 2, "all were asked for")
    if ledger:
        until(lambda: is_on_disk(tmp_path, texts), "the answers are on disk")
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()

    service.plays("silent.example", PAGE)
    crawl = crawls.crawl([*wave, *pages("silent.example", 2)], options=setting("PLATFORM_JOB", "1/1/1"))
    assert (crawl.returncode, crawl.reason, crawl.errors) == (0, "finished", [])
    again = crawls.outcomes[PAGES:]
    assert sorted(outcome.planned for outcome in again) == sorted([*wave, *pages("silent.example", 2)])
    assert {outcome.planned: outcome.text for outcome in again if "silent" not in outcome.planned} == {
        url: text.decode() for url, text in zip(wave, texts, strict=True)
    }
    assert service.count("site.example") == (PAGES if ledger else 2 * PAGES)
    assert service.count("silent.example") == 4, "whether these were billed nobody knows, and the pages are needed"
    assert len(crawls.project.items("1/1/1")) == PAGES + 2


def test_a_crawl_that_is_finished_leaves_no_answers_behind(tmp_path, service):
    text = text_of(0)
    service.plays("site.example", page(text))
    crawls = Plan(tmp_path, service, source=WITH_FRONTIER)
    assert crawls.crawl(pages("site.example", 3)).reason == "finished"
    assert not is_on_disk(tmp_path, [text])
