"""Workers of one machine: their number, the command that they repeat, what they cannot share, and their locks."""

from __future__ import annotations

import logging
import os
import sys
from types import SimpleNamespace

import pytest
import scrapy
from scrapy import cmdline, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.http import Request, Response
from scrapy.settings import Settings

from scrapy_ext.api.platform import JobKey
from scrapy_ext.crawl.session import workers
from scrapy_ext.crawl.session.embedded import ServerAddress
from scrapy_ext.crawl.session.forked import is_forked, server_of
from scrapy_ext.crawl.session.group_locks import GroupLocks
from scrapy_ext.crawl.session.job import JobFile
from scrapy_ext.crawl.session.sharing import SharingWarnings, check_shareable
from scrapy_ext.crawl.session.workers import number_of_workers, settings_of, terminal_log
from scrapy_ext.jobprocess.messages import TerminalLog
from scrapy_ext.scheduler import FrontierScheduler
from scrapy_ext.settings import SettingError
from tests.support.crawlers import get_crawler

JOB = JobKey(1, 1, 7)


class Own(FrontierScheduler):
    pass


@pytest.mark.parametrize(
    ("given", "slots", "number"),
    [(None, 8, 1), ("1", 8, 1), (4, 8, 4), (" 4 ", 4, 4), ("256", 999, 256), ("auto", 8, 3), ("auto", 2, 2)],
)
def test_the_number_of_workers(given, slots, number, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 2, 5}, raising=False)
    settings = {"FRONTIER_SLOTS": slots, **({"CRAWL_WORKERS": given} if given else {})}
    assert number_of_workers(Settings(settings)) == number


def test_more_workers_than_slots_are_refused_if_their_number_is_set():
    assert number_of_workers(Settings({"CRAWL_WORKERS": 9})) == 9
    with pytest.raises(SettingError, match="CRAWL_WORKERS is 9, but the frontier has 8 slots"):
        number_of_workers(Settings({"CRAWL_WORKERS": 9, "FRONTIER_SLOTS": 8}))


@pytest.mark.parametrize("given", ["0", "-1", "257", "1.5", "many", "", "²"])
def test_another_number_is_refused(given):
    with pytest.raises(SettingError, match=r"CRAWL_WORKERS must be a number of workers from 1 to 256, or auto, got"):
        number_of_workers(Settings({"CRAWL_WORKERS": given}))


def test_several_workers_need_a_system_that_can_fork(monkeypatch):
    monkeypatch.delattr(os, "fork")
    assert number_of_workers(Settings()) == 1
    with pytest.raises(SettingError, match="must be 1 on this system, which cannot fork a process"):
        number_of_workers(Settings({"CRAWL_WORKERS": 2}))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("scrapy crawl books -a x=1", "crawl books -a x=1"),
        ("scrapy runspider books.py -s CRAWL_WORKERS=2", "runspider books.py -s CRAWL_WORKERS=2"),
        ("scrapy --nolog crawl books", "--nolog crawl books"),
        ("scrapy crawl books --pidfile pid --profile=p -L INFO", "crawl books -L INFO"),
        ("scrapy fetch http://a.example", None),
        ("scrapy own-command books", None),
    ],
)
def test_the_command_that_workers_repeat(command, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(execute=cmdline.execute))
    typed = command.split()
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-m", *typed])
    monkeypatch.setattr(sys, "argv", list(typed))
    cmdline._pop_command_name(sys.argv)
    assert workers._command_line() == (words and words.split())


@pytest.mark.parametrize("main", [SimpleNamespace(), SimpleNamespace(execute=print)], ids=["script", "another"])
def test_a_script_is_not_repeated(main, monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert workers._command_line() is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"FRONTIER_WORKER": "auto", "CRAWL_GROUP": "resume 2"},
            "FRONTIER_WORKER cannot be set beside CRAWL_WORKERS.* Remove it, or CRAWL_WORKERS",
        ),
        (
            {"FRONTIER_WORKER": "0/2", "CRAWL_GROUP": "2"},
            r"FRONTIER_WORKER cannot be set beside several workers of a job \(job_workers, --workers\).* Remove it, or "
            "run the job with one worker",
        ),
        ({"PLATFORM_ENABLED": False}, "PLATFORM_ENABLED must be True"),
        ({"FRONTIER_ENABLED": False}, "FRONTIER_ENABLED must be True"),
        ({"SCHEDULER": Scheduler}, r"SCHEDULER must be scrapy_ext\.scheduler\.FrontierScheduler"),
        ({"PLATFORM_ITEMS_MODE": "streaming"}, "PLATFORM_ITEMS_MODE must be exact"),
    ],
    ids=str,
)
def test_what_workers_cannot_share_is_refused(settings, message):
    check_shareable(Settings({"SCHEDULER": FrontierScheduler}))
    check_shareable(Settings({"SCHEDULER": Own, "EXTRACT_API_MAX_COST": 2}))
    with pytest.raises(SettingError, match=message):
        check_shareable(Settings({"SCHEDULER": FrontierScheduler, **settings}))


def test_one_warning_tells_of_cookies_that_workers_do_not_share(caplog):
    crawler = get_crawler()
    warnings = SharingWarnings(crawler)
    assert warnings
    for meta, headers in (
        ({}, {}),
        ({"dont_merge_cookies": True}, {"Set-Cookie": "a=b"}),
        ({"cookiejar": 0}, {"Set-Cookie": "a=b"}),
        ({}, {"Set-Cookie": "a=b"}),
        ({}, {"Set-Cookie": "a=b"}),
    ):
        request = Request("http://a.example", meta=meta)
        response = Response(request.url, headers=headers)
        crawler.signals.send_catch_log(signals.response_received, response=response, request=request, spider=None)
    assert caplog.text.count("http://a.example sets a cookie. Each worker has its own cookies") == 1


@pytest.mark.parametrize(("state", "count"), [(None, 0), ({}, 0), ({"pages": 1}, 1)])
def test_a_warning_tells_of_a_state_that_workers_do_not_share(state, count, caplog):
    crawler = get_crawler()
    warnings = SharingWarnings(crawler)
    assert warnings
    crawler.signals.send_catch_log(signals.spider_closed, spider=SimpleNamespace(state=state), reason="finished")
    assert caplog.text.count("spider.state is not shared") == count


def test_a_forked_worker_has_the_server_and_the_job_of_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the folder of a worker is made there
    server = ServerAddress("http://127.0.0.1:9", "key-of-extraction", "key-of-platform", platform=True)
    own = Settings({"CRAWL_GROUP": "resume 3", "JOBDIR": "crawls/1"})
    assert not is_forked(own)
    assert server_of(own) is None
    forked = Settings(settings_of(2, own, JOB, server))
    assert is_forked(forked)
    assert server_of(forked) == server
    assert {name: forked[name] for name in ("PLATFORM_JOB", "CRAWL_GROUP", "JOBDIR")} == {
        "PLATFORM_JOB": "1/1/7", "CRAWL_GROUP": "3", "JOBDIR": os.path.join("crawls/1", "worker-2"),
    }  # fmt: skip
    assert "key-of" not in repr(server)
    remote = Settings(settings_of(1, Settings({"CRAWL_GROUP": "2"}), JOB, None))
    assert is_forked(remote)
    assert server_of(remote) is None
    assert "JOBDIR" not in settings_of(1, remote, JOB, None)


def test_the_log_of_forked_workers_is_that_of_the_command():
    settings = Settings({"LOG_FORMAT": "%(message)s", "LOG_DATEFORMAT": "%H", "LOG_LEVEL": "ERROR"})
    assert terminal_log(settings) == TerminalLog(None, 40, "%(message)s", "%H", "utf-8")
    settings.set("LOG_ENABLED", False)
    assert terminal_log(settings) is None
    settings.set("LOG_FILE", "log")
    assert terminal_log(settings) == TerminalLog("log", 40, "%(message)s", "%H", "utf-8")


def test_lines_of_several_workers_are_all_in_a_log_file(tmp_path):
    handler = logging.FileHandler(tmp_path / "log", "w")
    logging.root.addHandler(handler)
    try:
        handler.emit(logging.makeLogRecord({"msg": "first"}))
        workers.append_to_log_files()
        with (tmp_path / "log").open("a") as other:
            other.write("other\n")
        handler.emit(logging.makeLogRecord({"msg": "second"}))
    finally:
        logging.root.removeHandler(handler)
        handler.close()
    assert (tmp_path / "log").read_text() == "first\nother\nsecond\n"


class Spider(scrapy.Spider):
    name = "spider"


@pytest.mark.parametrize(
    ("settings", "group"),
    [
        ({}, None),
        ({"PLATFORM_JOB": "1/1/7"}, "resume 1"),
        ({"JOBDIR": "crawl"}, "resume 1"),
        ({"PLATFORM_JOB": "1/1/8"}, None),
        ({"PLATFORM_JOB": "seven"}, None),
        ({"CRAWL_WORKERS": "many"}, None),
        ({"PLATFORM_JOB": "1/1/7", "_SCRAPY_EXT_FORKED": {}}, None),
        ({"PLATFORM_JOB": "1/1/7", "CRAWL_GROUP": "3"}, "3"),
        ({"CRAWL_GROUP": "2..8"}, "2..8"),
        ({"CRAWL_WORKERS": 2}, None),
    ],
    ids=str,
)
def test_a_job_that_several_workers_began_is_resumed_as_theirs(settings, group, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    locks = GroupLocks(tmp_path / "data", JOB)
    locks.join()
    locks.close()
    JobFile(".").write(JOB)
    crawler = Crawler(
        Spider, {"SERVER_DATA": str(tmp_path / "data"), **settings, "JOBDIR": settings.get("JOBDIR") and "."}
    )
    workers.begin_workers(crawler)
    assert crawler.settings.get("CRAWL_GROUP") == group
    # This process is not a command of Scrapy.
    assert ("CRAWL_WORKERS is ignored" in caplog.text) == (settings.get("CRAWL_WORKERS") == 2)


# ── locks ──


def test_a_job_is_resumed_only_when_no_worker_lives(tmp_path):
    first, second, third = (GroupLocks(tmp_path, JOB) for _ in range(3))
    assert not first.exist()
    assert first.is_last()
    first.join()
    second.join()
    assert third.exist()
    assert not third.is_last()
    assert not first.is_last()
    second.release()
    assert not third.is_last()
    first.release()
    assert third.is_last()


@pytest.mark.parametrize("is_finished", [True, False])
def test_the_last_worker_removes_the_files_of_a_finished_job(is_finished, tmp_path):
    first, second = GroupLocks(tmp_path, JOB), GroupLocks(tmp_path, JOB)
    assert first.is_last()
    first.join()
    assert first.keep()
    second.join()
    if is_finished:
        first.note_finished()
    first.release()
    assert sorted(os.listdir(tmp_path / "groups")) == ["1-1-7", "1-1-7.keeper"]
    second.release()
    assert GroupLocks(tmp_path, JOB).exist() != is_finished
    assert bool(os.listdir(tmp_path / "groups")) != is_finished


def test_one_worker_is_the_keeper_until_it_has_ended(tmp_path):
    first, second = GroupLocks(tmp_path, JOB), GroupLocks(tmp_path, JOB)
    first.join()
    second.join()
    assert first.keep()
    assert first.keep()
    assert not second.keep()
    first.close()
    assert second.keep()


def test_an_attempt_is_gone_when_its_process_is(tmp_path):
    locks, other = GroupLocks(tmp_path, JOB), GroupLocks(tmp_path, JOB)
    locks.join()
    other.join()
    assert not locks.is_gone(5)
    # The process has made the file, and has no lock yet.
    (tmp_path / "groups" / "1-1-7.5").touch()
    assert not locks.is_gone(5)
    other.hold(5)
    assert not locks.is_gone(5)
    other.close()
    assert locks.is_gone(5)
    assert not locks.is_gone(50)


@pytest.mark.parametrize("is_resumed", [True, False])
def test_the_files_of_attempts_are_removed_with_the_others_and_by_a_resume(is_resumed, tmp_path):
    locks, again = GroupLocks(tmp_path, JOB), GroupLocks(tmp_path, JOB)
    locks.join()
    locks.hold(5)
    if is_resumed:
        locks.close()
        assert again.is_last()
        again.join()
        assert os.listdir(tmp_path / "groups") == ["1-1-7"]
    else:
        locks.note_finished()
        locks.release()
        assert os.listdir(tmp_path / "groups") == []


def test_others_are_the_processes_that_live(tmp_path):
    locks = GroupLocks(tmp_path, JOB)
    assert locks.is_last()
    locks.join()
    with (tmp_path / "groups" / "1-1-7").open("a") as file:
        file.write(f"{os.getppid()}\n{2**31 - 1}\n")
    assert locks.others() == [os.getppid()]
    assert GroupLocks(tmp_path, JOB).others() == [os.getppid()]


def test_a_file_that_was_removed_meanwhile_is_made_again(tmp_path):
    first, second = GroupLocks(tmp_path, JOB), GroupLocks(tmp_path, JOB)
    first.join()
    (tmp_path / "groups" / "1-1-7").unlink()
    second.join()
    first.join()
    assert not second.is_last()
