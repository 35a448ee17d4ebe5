"""Texts of alerts, as they are read at night."""

from __future__ import annotations

from scrapy_ext.api.platform.error_groups import ErrorGroup
from scrapy_ext.api.platform.verdicts import ERRORS, MONITOR, Reason, Verdict
from scrapy_ext.server.monitors.messages import Messages
from scrapy_ext.server.store.incidents import OpenIncident, Rule, Subject
from scrapy_ext.server.store.monitors.alerts import GroupNews
from scrapy_ext.server.store.verdicts import JobVerdict

NOW = 1_700_000_000_000
BOOKS = Subject(1, "books")
FEW = OpenIncident(
    rule=Rule(False, 1, "enough items"),
    key="",
    since=NOW - 5 * 60_000,
    last=NOW,
    jobs=3,
    job="1/2/7",
    sentence="items is 12, expected at least 800 (0.8 x the median of 10 runs)",
    over=None,
    announced=False,
)


def test_an_alert_names_spider_numbers_times_and_the_page_of_the_job() -> None:
    text = Messages("https://crawls.example").compose(GroupNews(BOOKS, [FEW], [], []), NOW)
    assert text.kind == "alert"
    assert text.title == "books (project 1): enough items fails"
    assert text.body == (
        "enough items: items is 12, expected at least 800 (0.8 x the median of 10 runs).\n"
        "Since 2023-11-14 22:08 UTC (5 min), 3 jobs.\n"
        "Job 1/2/7: https://crawls.example/ui/1/2/7\n\n"
        "All monitors: https://crawls.example/ui/1/monitors"
    )


def test_an_alert_has_the_verdict_on_the_job_and_the_errors_of_its_log_once() -> None:
    monitor = Reason(MONITOR, Verdict.RED, "monitor enough items failed: items is 12")
    errors = Reason(ERRORS, Verdict.AMBER, "14 errors in the log")
    groups = [
        ErrorGroup("KeyError: 'headline'", 12, NOW, NOW, 3, "", "parse", "shop.py:34"),
        *(ErrorGroup(f"further {n}\n\x1b[31m", 1, NOW, NOW, 9, "") for n in range(6)),
    ]
    verdict = JobVerdict(7, NOW, Verdict.RED, "", "finished", 12, 14, None, [monitor, errors], errors=groups)
    other = FEW._replace(rule=Rule(False, 2, "few errors"), sentence="errors is 14")
    news = GroupNews(BOOKS, [FEW, other], [], [], verdicts={"1/2/7": verdict})
    body = Messages("https://crawls.example").compose(news, NOW).body
    assert body.split("\n\n")[0].split("\n")[2:] == [
        "Job 1/2/7 (red): https://crawls.example/ui/1/2/7",
        "Also: 14 errors in the log.",
        "Errors of its log:",
        "- KeyError: 'headline' × 12 (parse, shop.py:34)",
        *(f"- further {n} [31m" for n in range(4)),
        "- and 2 more groups",
    ]
    assert body.count("Job 1/2/7 (red)") == 2
    assert body.count("KeyError") == 1


def test_an_alert_has_the_name_of_the_project() -> None:
    text = Messages(None).compose(GroupNews(BOOKS, [FEW], [], [], "shops\nof Ada"), NOW)
    assert text.title == "books (project 1, shops of Ada): enough items fails"


def test_without_a_public_address_a_message_has_the_key_of_the_job() -> None:
    text = Messages(None).compose(GroupNews(BOOKS, [FEW], [], []), NOW)
    assert text.body.endswith("Job 1/2/7")


def test_what_lasts_and_what_is_over_are_apart() -> None:
    errors = FEW._replace(rule=Rule(False, 2, "errors"), over=NOW)
    lasting = FEW._replace(rule=Rule(True, 3, "schema"), announced=True)
    messages = Messages(None)
    text = messages.compose(GroupNews(BOOKS, [FEW], [errors], [lasting]), NOW)
    assert (text.kind, text.title) == ("alert", "books (project 1): 2 monitors fail")
    assert [part.partition(":")[0] for part in text.body.split("\n\n")] == [
        "enough items",
        "Still failing",
        "schema",
        "Over",
        "errors",
    ]
    assert "errors: passes again since 2023-11-14 22:13 UTC, after 5 min. It was: items is 12" in text.body
    text = messages.compose(GroupNews(BOOKS, [], [errors], [lasting]), NOW)
    assert (text.kind, text.title) == ("recovery", "books (project 1): still schema fails")
    text = messages.compose(GroupNews(BOOKS, [], [errors], []), NOW)
    assert (text.kind, text.title) == ("recovery", "books (project 1): over, errors passes again")
    text = messages.compose(GroupNews(BOOKS, [], [], [lasting]), NOW + 3 * 24 * 3600_000)
    assert (text.kind, text.title) == ("reminder", "books (project 1): still schema fails")
    assert "(3 days)" in text.body


def test_many_incidents_and_foreign_text_make_a_message_of_bounded_length() -> None:
    hostile = FEW._replace(rule=Rule(False, 1, "a\r\nSubject: b\x1b[31m"), sentence="x\n" * 5000)
    text = Messages(None).compose(GroupNews(Subject(1, "s\nt"), [hostile] * 50, [], [hostile] * 50), NOW)
    assert "\n" not in text.title
    assert "\x1b" not in text.title + text.body
    assert text.body.count("And 40 more.") == 2
    assert len(text.body) < 15_000
