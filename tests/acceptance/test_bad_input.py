"""Errors of the user are reported once, with the remedy, an exit status that is not 0, and without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawls import Project
from tests.support.free_ports import held_port, number_of
from tests.support.servers import ForkedServer, RunningServer

SPIDERS = """
import scrapy

class One(scrapy.Spider):
    name = "one"
    start_urls = ["http://localhost:1/"]

    def parse(self, response):
        yield {"url": response.url}
"""
SECRET = "0123456789abcdef-secret"
SELECT_REACTOR = "TWISTED_REACTOR=twisted.internet.selectreactor.SelectReactor"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, SPIDERS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data: Path = tmp_path_factory.mktemp("server")
    server = ForkedServer(data)
    yield server
    server.stop()


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port on which nobody listens."""
    with held_port() as held:
        yield number_of(held)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["PLATFORM_URL=platform.example.com"], "PLATFORM_URL must be an http or https URL"),
        (["PLATFORM_URL=http://localhost:1"], "PLATFORM_API_KEY is not set, but PLATFORM_URL is"),
        (["PLATFORM_URL=http://u:p@localhost:1"], "PLATFORM_URL must not contain a key"),
        (["EXTRACT_API_URL=http://localhost:1", f"EXTRACT_API_KEY={SECRET}"], "EXTRACT_API_URL must end in /v1"),
        (["EXTRACT_API_URL=http://localhost:1/v1"], "EXTRACT_API_KEY is not set, but EXTRACT_API_URL is"),
        (["PLATFORM_PROJECT=x"], "PLATFORM_PROJECT must be of type int"),
        (["PLATFORM_PROJECT=0"], "PLATFORM_PROJECT must be at least 1"),
        (["PLATFORM_BATCH_SIZE=0"], "PLATFORM_BATCH_SIZE must be at least 1"),
        (["PLATFORM_JOB=1/2"], "PLATFORM_JOB is not a job"),
        (["PLATFORM_JOB=1/2/3"], "PLATFORM_JOB names 1/2/3, which does not exist"),
        ([SELECT_REACTOR], "TWISTED_REACTOR must be the one of asyncio"),
        pytest.param(
            [SELECT_REACTOR, "PLATFORM_ENABLED=0", "EXTRACT_API_ENABLED=0"],
            "TWISTED_REACTOR must be the one of asyncio",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_setting_that_is_wrong_is_named_with_the_remedy(project, settings, words):
    crawl = project.crawl("one", *(argument for setting in settings for argument in ("-s", setting)))
    assert crawl.returncode != 0
    (error,) = crawl.errors
    assert words in error
    assert "Traceback" not in crawl.log
    assert SECRET not in crawl.log
    assert crawl.reason == "bad_setting"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("FRONTIER_WORKER=1/1", "FRONTIER_WORKER must be 'index/count'"),
        pytest.param("FRONTIER_SLOTS=0", "FRONTIER_SLOTS must be at least 1", marks=pytest.mark.full),
        ("FRONTIER_NAME=my frontier", "FRONTIER_NAME cannot be used"),
        pytest.param("FRONTIER_PREFETCH=0", "FRONTIER_PREFETCH must be at least 1", marks=pytest.mark.full),
        ('EXTRACT_API_PARAMS={"browserHTML": true}', "EXTRACT_API_PARAMS has a field that cannot be sent"),
        pytest.param("FRONTIER_SLOTS=many", "FRONTIER_SLOTS must be of type int", marks=pytest.mark.full),
        ("DUPEFILTER_COLLECTION=a b", "DUPEFILTER_COLLECTION is not the name of a collection"),
        pytest.param(
            "PLATFORM_LOG_LEVEL=LOUD", "PLATFORM_LOG_LEVEL must be the name of a log level", marks=pytest.mark.full
        ),
        ('EXTRACT_API_RETRY_POLICY={"/x": 1}', "EXTRACT_API_RETRY_POLICY cannot be read"),
    ],
)
def test_a_component_that_cannot_be_built_says_why_in_one_line(project, setting, words):
    crawl = project.crawl("one", "-s", setting)
    assert crawl.returncode != 0
    (error,) = crawl.errors
    assert words in error
    assert "Traceback" not in crawl.log


def test_a_platform_that_is_not_there_is_reported(project, unused_port):
    address = f"http://localhost:{unused_port}"
    crawl = project.crawl("one", "-s", f"PLATFORM_URL={address}", "-s", f"PLATFORM_API_KEY={SECRET}")
    assert crawl.returncode != 0
    assert crawl.reason == "platform_unavailable"
    (error,) = crawl.errors
    assert "Check PLATFORM_URL" in error
    assert SECRET not in crawl.log
    assert "Embedded server" not in crawl.log


def test_a_wrong_platform_key_is_reported(project, server):
    crawl = project.crawl("one", "-s", f"PLATFORM_URL={server.url}", "-s", f"PLATFORM_API_KEY={SECRET}")
    assert crawl.returncode != 0
    assert crawl.reason == "platform_bad_key"
    (error,) = crawl.errors
    assert "PLATFORM_API_KEY" in error
    assert SECRET not in crawl.log
    assert "Embedded server" not in crawl.log


def test_a_wrong_extraction_key_closes_the_spider_once_and_loses_no_request(project, server):
    remote = (
        *("-s", f"EXTRACT_API_URL={server.url}/v1", "-s", f"PLATFORM_URL={server.url}"),
        *("-s", f"PLATFORM_API_KEY={server.platform_key}"),
    )
    crawl = project.crawl("one", *remote, "-s", f"EXTRACT_API_KEY={SECRET}")
    assert (crawl.returncode, crawl.reason) == (1, "extract_api_bad_key")
    (error,) = crawl.errors
    assert "EXTRACT_API_KEY" in error
    assert SECRET not in crawl.log
    assert crawl.stat("extract_api/attempts") == 1
    job = crawl.log.rpartition("PLATFORM_JOB=")[2].split()[0]
    resumed = project.crawl("one", *remote, "-s", f"EXTRACT_API_KEY={server.extract_key}", "-s", f"PLATFORM_JOB={job}")
    assert resumed.reason == "finished"
    assert resumed.stat("extract_api/attempts") == 1, "the request of the first run was there again"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("what", ["nothing", "another path", "another service"])
def test_an_address_without_an_extraction_service_is_reported_and_loses_no_request(project, server, unused_port, what):
    address = {
        "nothing": f"http://localhost:{unused_port}/v1",
        "another path": f"{server.url}/elsewhere/v1",
        "another service": f"{server.url}/system/ts/v1",
    }[what]
    platform = ("-s", f"PLATFORM_URL={server.url}", "-s", f"PLATFORM_API_KEY={server.platform_key}")
    crawl = project.crawl("one", *platform, "-s", f"EXTRACT_API_URL={address}", "-s", f"EXTRACT_API_KEY={SECRET}")
    assert crawl.returncode != 0
    assert crawl.reason == "extract_api_unavailable"
    assert crawl.stat("frontier/acknowledged/requests") == 0
    assert SECRET not in crawl.log


@pytest.mark.long
def test_a_data_directory_that_cannot_be_made_is_reported(project):
    (project.folder / ".scrapy").write_text("a file where the folder should be")
    crawl = project.crawl("one")
    assert crawl.returncode != 0
    assert crawl.reason == "embedded_server_failed"
    assert str(project.folder / ".scrapy") in crawl.errors[0]


@pytest.mark.long
def test_a_proxy_that_cannot_be_read_is_reported_without_its_credentials(project):
    crawl = project.crawl("one", "-s", f"SERVER_PROXIES=US=http://me:{SECRET}@proxy")
    assert crawl.returncode != 0
    assert crawl.reason == "embedded_server_failed"
    assert "proxy US must have an address with a scheme (http, https, socks5) and a port" in crawl.log
    assert SECRET not in crawl.log
