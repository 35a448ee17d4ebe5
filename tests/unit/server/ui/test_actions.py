"""Actions that pages and routes declare: what is not declared needs the role manage."""

from __future__ import annotations

import re
from pathlib import Path

from scrapy_ext.api.platform.users import LEAST, Action, Role
from scrapy_ext.server.routes import ROUTES
from scrapy_ext.server.ui.views import PAGES
from tests.support.docs_tables import rows_of

GUIDE = Path(__file__).parents[4] / "docs" / "howto" / "users.rst"


def test_the_forms_that_need_less_than_manage_are_these() -> None:
    forms = {page.path: page.action for page in PAGES if page.act is not None and page.action is not Action.MANAGE}
    assert forms == {
        "/ui/{project:number}/jobs": Action.RUN,  # the view itself requires MANAGE for deletions
        "/ui/{project:number}/jobs/run": Action.RUN,
        "/ui/{project:number}/{spider:number}/{job:number}/tags": Action.TAG,
        "/ui/extract": Action.EXTRACT,
        "/ui/users": None,  # for managers of users
    }


def test_the_calls_that_need_less_than_manage_are_these() -> None:
    calls = {f"{route.method} {route.shown}" for route in ROUTES if route.action not in (Action.MANAGE, Action.READ)}
    comments = [call for call in calls if " /api/comments/" in call or " /comments/" in call]
    assert calls - set(comments) == {
        "POST /api/run.json",
        "POST /api/schedule.json",
        "POST /api/jobs/stop.json",
        "POST /api/jobs/update.json",
        "POST /schedule.json",
        "POST /cancel.json",
        "POST /jobq/{project}/cancel",
        "POST /jobq/{project}/{spider}/{job}/cancel",
    }
    assert len(comments) == 2 * 6
    assert all(route.action is Action.READ for route in ROUTES if route.method == "GET")


def test_the_guide_has_the_table_of_roles() -> None:
    table = {re.sub("`", "", row[0]): row[1] for row in rows_of(GUIDE.read_text("utf-8"), "Give roles")}
    for role in Role:
        for action, least in LEAST.items():
            assert (action.value in table[role.value]) == (least is role), (role, action)
