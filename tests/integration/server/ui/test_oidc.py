"""Login of people by OpenID Connect: who gets in, with which rights, and what a faulty provider achieves."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import aiohttp
import lxml.html
import pytest
import pytest_asyncio

from scrapy_ext.api.platform.users import Role
from scrapy_ext.client.platform import PlatformClient
from scrapy_ext.client.platform.transport import PlatformUrls
from scrapy_ext.server.auth.api_keys import add_key
from scrapy_ext.server.store import Store
from scrapy_ext.server.ui.views import PAGES
from tests.support.eventually import eventually_async
from tests.support.http import Http
from tests.support.oidc_provider import ADA, SECRET, OidcProvider
from tests.support.page_forms import done, page, rows, submit
from tests.support.postgresql import Cluster
from tests.support.servers import ForkedServer, RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

HTML = {"Accept": "text/html,*/*;q=0.8"}
PUBLIC = "http://127.0.0.1:8700"


class Person:
    """A browser, as far as it keeps cookies and follows redirects between the server and the provider."""

    def __init__(self, server: RunningServer, address: str = "127.0.0.1") -> None:
        self.url = server.url
        connector = aiohttp.TCPConnector(local_addr=(address, 0))
        jar = aiohttp.CookieJar(unsafe=True)
        self.session = aiohttp.ClientSession(cookie_jar=jar, headers=HTML, connector=connector)
        self.set_cookies: list[str] = []
        self.email = ADA["email"]

    async def get(self, path: str, **headers: str) -> tuple[int, str, str]:
        """Return status, location and text of a page; the server's public address leads to the server."""
        url = (path if path.startswith("http") else self.url + path).replace(PUBLIC, self.url)
        async with self.session.get(url, headers=headers, allow_redirects=False) as answer:
            self.set_cookies += answer.headers.getall("Set-Cookie", [])
            return answer.status, answer.headers.get("Location", ""), await answer.text()

    async def begin(self, onward: str = "/") -> str:
        """Begin a login; return the provider's answer, an address of the server."""
        _, url, text = await self.get(f"/login/oidc?next={quote(onward, safe='')}&moved=1")
        assert url, text
        return (await self.get(url))[1]

    async def log_in(self, onward: str = "/") -> tuple[int, str]:
        """Return status and text of the answer at the end of a login."""
        status, _, text = await self.get(await self.begin(onward))
        return status, text

    async def token(self) -> str:
        document = lxml.html.document_fromstring((await self.get("/ui/none"))[2])
        return document.xpath("//input[@name='token']/@value")[0]

    async def post(self, path: str, fields: dict[str, str], token: str = "") -> tuple[int, str]:
        data, headers = {"token": token or await self.token(), **fields}, {"Origin": self.url}
        async with self.session.post(self.url + path, data=data, headers=headers, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def is_logged_in(self) -> bool:
        return (await self.get("/ui/none"))[1] != "/login?next=%2Fui%2Fnone"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[OidcProvider]:
    async with OidcProvider() as provider:
        yield provider


def running(provider: OidcProvider, data: Path, *options: str, **more: Any) -> RunningServer:
    environment = {"SERVER_OIDC_CLIENT_SECRET": SECRET}
    return ForkedServer(data, options=(*provider.options(PUBLIC), *options), environment=environment, **more)


#: Roles of groups; projects of tests have smaller numbers.
RULES = ("--oidc-role", "ops=9007:manage", "--oidc-role", "ops=9008:view")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """One server for these tests, each with a person and a project of its own."""
    with running(provider, tmp_path_factory.mktemp("oidc") / "data", *RULES) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def person(server: RunningServer, provider: OidcProvider, project: int) -> AsyncIterator[Person]:
    """Somebody whom the provider knows, at an address of their own."""
    provider.person = {**ADA, "sub": f"person-{project}", "email": f"p{project}@example.com"}
    person = Person(server, f"127.0.3.{project % 250 + 1}")
    person.email = f"p{project}@example.com"
    yield person
    await person.session.close()
    provider.person, provider.error, provider.change_claims = dict(ADA), "", lambda _: None


@pytest_asyncio.fixture(loop_scope="module")
async def http(server: RunningServer) -> AsyncIterator[Http]:
    async with Http(server.url, server.platform_key) as http:
        yield http


async def number_of(http: Http, person: Person) -> int:
    (user,) = (await http.get(f"/api/users?q={person.email}")).json
    return user["id"]


async def give(http: Http, person: Person, roles: dict[int | str, str | None]) -> None:
    number = await number_of(http, person)
    answer = await http.call("PATCH", f"/api/users/{number}", json.dumps({"roles": roles}).encode())
    assert answer.status == 200, answer.text


async def test_a_person_logs_in_and_sees_nothing_before_an_operator_gives_a_role(
    person: Person, http: Http, project: int
) -> None:
    _, _, login = await person.get("/login?next=%2Fui%2F7%2Fjobs")
    links = lxml.html.document_fromstring(login).xpath("//a[contains(@class, 'button')]/@href")
    assert links == ["/login/oidc?next=/ui/7/jobs"]
    status, text = await person.log_in("/ui/7/jobs?state=running")
    assert status == 200
    assert re.search(r'content="0; url=/ui/7/jobs\?state=running"', text)
    for path in ("/", f"/ui/{project}/jobs", "/ui/projects", "/ui/usage", "/ui/nodes", "/ui/keys", "/ui/activity"):
        status, onward, text = await person.get(path)
        if onward:
            status, _, text = await person.get(onward)
        assert status == 403, path
        assert "you have no role in any project yet" in text
        assert person.email in text
    assert (await person.get("/ui/users"))[0] == 403
    await give(http, person, {project: "view"})
    assert (await person.get(f"/ui/{project}/jobs"))[0] == 200
    assert (await person.get(f"/ui/{project + 100_000}/jobs"))[0] == 404


RUN = {"spider": "books", "arguments": "", "priority": "2", "units": "1", "tags": "", "job_settings": ""}


async def test_a_changed_role_has_effect_at_the_next_request_and_so_has_the_end_of_a_user(
    person: Person, http: Http, project: int
) -> None:
    await person.log_in()
    one = f"/api/users/{await number_of(http, person)}"
    for roles, seen, ran in (
        ({project: "view"}, 200, 403),
        ({project: "run"}, 200, 303),
        ({project: "manage"}, 200, 400),  # the job is pending
        ({project: None}, 403, 403),
        ({"all": "view"}, 200, 403),
        ({project: "run"}, 200, 400),
        ({project: None, "all": None}, 403, 403),
    ):
        await give(http, person, roles)
        assert (await person.get(f"/ui/{project}/jobs"))[0] == seen, roles
        assert (await person.post(f"/ui/{project}/jobs/run", RUN))[0] == ran, roles
    assert (await http.call("PATCH", one, b'{"disabled": true}')).status == 200
    assert not await person.is_logged_in()
    status, text = await person.log_in()
    assert (status, "Your access is disabled" in text) == (403, True)
    assert (await http.call("PATCH", one, b'{"disabled": false}')).status == 200
    assert not await person.is_logged_in()  # the session of before is over
    await person.log_in()
    assert await person.is_logged_in()
    assert (await http.delete(one)).status == 204
    assert not await person.is_logged_in()
    assert (await http.delete(one)).status == 404


ROLES = {
    # page of project P and form: the status for view, run and manage
    ("/ui/P/jobs", "action=stop&job=P/1/1"): (403, 303, 303),
    ("/ui/P/jobs", "action=rerun&job=P/1/1"): (403, 303, 303),
    ("/ui/P/jobs", "action=delete&job=P/1/1"): (403, 403, 200),
    ("/ui/P/1/1/tags", "add=checked"): (403, 303, 303),
    ("/ui/P/periodic", "cron=nonsense"): (403, 403, 400),
    ("/ui/P/periodic/1", "action=run"): (403, 403, 404),
    ("/ui/P/frontiers/f", "action=delete"): (403, 403, 303),
    ("/ui/P/frontiers/f/s", "action=delete"): (403, 403, 303),
    ("/ui/P/collections/s/c", "action=delete"): (403, 403, 404),
    ("/ui/P/collections/s/c/record", "key=a"): (403, 403, 404),
    ("/ui/keys", "action=add&name=mine"): (403, 403, 403),
    ("/ui/users", "action=grant&id=1&project=all&role=manage"): (403, 403, 403),
    ("/ui/extract?project=P", "url="): (403, 400, 400),
}


async def test_each_role_may_do_what_the_table_says_and_no_page_offers_more(
    person: Person, http: Http, project: int
) -> None:
    await http.post(f"/jobq/{project}/push", [{"spider": "books"}])
    await person.log_in()
    for place, role in enumerate(("view", "run", "manage")):
        await give(http, person, {project: role})
        for (path, form), statuses in ROLES.items():
            fields = dict(parse_qsl(form.replace("P/", f"{project}/")))
            status, text = await person.post(path.replace("P", str(project)), fields)
            assert status == statuses[place], (role, path, form, text)
        for path in (f"/ui/{project}/jobs", f"/ui/{project}/1/1"):
            document = lxml.html.document_fromstring((await person.get(path))[2])
            offered = document.xpath("//button[@name='action']/@value")
            again = document.xpath("//button[@value='rerun'] | //a[text()='Run again…']")
            assert bool(again) == (role != "view"), (role, path)
            assert ("delete" in offered) == (role == "manage"), (role, path)
        for path in ("jobs/run", "periodic/new"):
            expected = 200 if role == "manage" or (role == "run" and path == "jobs/run") else 403
            assert (await person.get(f"/ui/{project}/{path}"))[0] == expected, (role, path)
        for path in ("/ui/nodes", "/ui/usage", "/ui/keys", "/ui/users"):
            assert (await person.get(f"{path}?project={project}"))[0] == 403, (role, path)
        assert (await person.get(f"/ui/{project}/1/1/items.jl"))[0] == 200


def filled(path: str, project: int) -> str:
    """The address of a page with a value in each variable part."""
    path = path.replace("{project:number}", str(project)).replace("{format}", "csv").replace("{type}", "s")
    return re.sub(r"{\w+}", "x", re.sub(r"{\w+:number}", "1", path))


async def test_no_page_of_another_project_is_shown_and_no_form_is_taken_there(
    person: Person, http: Http, project: int
) -> None:
    other = project + 5000
    await http.post(f"/jobq/{other}/push", [{"spider": "secret-books"}])
    await person.log_in()
    await give(http, person, {project: "manage"})
    pages, token = [each for each in PAGES if "{project:number}" in each.path], await person.token()
    assert len(pages) > 50
    for each in pages:
        address = filled(each.path, other)
        status, _, text = await person.get(address)
        assert status in (403, 404), address
        assert "secret-books" not in text, address
        if each.act is not None:
            fields = {"action": "delete", "job": f"{other}/1/1"}
            assert (await person.post(address, fields, token))[0] in (403, 404), address
    assert (await http.get(f"/jobq/{other}/count?state=pending")).json == 1


async def test_every_form_needs_its_token_and_the_role_of_its_action(person: Person, http: Http, project: int) -> None:
    await http.post(f"/jobq/{project}/push", [{"spider": "books"}])
    await person.log_in()
    forms, token = [each.path for each in PAGES if each.act is not None], await person.token()
    assert len(forms) > 20
    await give(http, person, {project: "manage"})
    for path in forms:
        assert (await person.post(filled(path, project), {"project": str(project)}, "0" * 64))[0] == 403, path
    await give(http, person, {project: "view"})
    for path in forms:
        address = f"{filled(path, project)}?project={project}"
        assert (await person.post(address, {"action": "delete"}, token))[0] == 403, path
    assert (await http.get(f"/jobq/{project}/count?state=pending")).json == 1


async def test_a_session_of_a_user_opens_no_path_of_the_api(person: Person, http: Http, project: int) -> None:
    await person.log_in()
    await give(http, person, {"all": "manage"})
    for path in (f"/items/{project}/1/1", f"/jobq/{project}/count", "/api/users", "/api/usage", "/metrics"):
        assert (await person.get(path))[0] == 401, path


async def test_whoever_manages_all_projects_manages_users_but_no_keys(person: Person, http: Http, project: int) -> None:
    await person.log_in()
    await give(http, person, {"all": "manage"})
    number = await number_of(http, person)
    assert [(await person.get(path))[0] for path in ("/ui/users", "/ui/nodes", "/ui/keys")] == [200, 200, 403]
    form = {"action": "grant", "id": str(number), "project": str(project), "role": "run"}
    assert (await person.post("/ui/users", form))[0] == 303
    message = {"event": "user:changed", "user": person.email, "of": person.email, "id": number}
    assert (await http.get(f"/activity/{project}")).lines == [{**message, "role": "run", "before": None}]


async def test_the_cookies_hold_no_secret_and_go_where_they_should(tmp_path: Path) -> None:
    async with OidcProvider() as provider:
        options = (*provider.options("https://crawls.example.com")[:4], "--public-url", "https://crawls.example.com")
        environment = {"SERVER_OIDC_CLIENT_SECRET": SECRET}
        with ForkedServer(tmp_path, options=options, environment=environment) as server:
            person = Person(server)
            status, onward, _ = await person.get("/login/oidc?next=/ui/7/jobs")
            assert (status, onward) == (303, "https://crawls.example.com/login/oidc?next=%2Fui%2F7%2Fjobs&moved=1")
            _, url, _ = await person.get("/login/oidc?next=/ui/7/jobs&moved=1")
            query = dict(parse_qsl(urlsplit(url).query))
            assert query["redirect_uri"] == "https://crawls.example.com/login/oidc/callback"
            assert query["scope"] == "openid profile email"
            (morsel,) = SimpleCookie(person.set_cookies[-1]).values()
            assert (morsel["secure"], morsel["httponly"], morsel["samesite"]) == (True, True, "lax")
            assert 0 < int(morsel["max-age"]) <= 900
            back = urlsplit((await person.get(url))[1])
            cookie = {"Cookie": f"{morsel.key}={morsel.value}"}  # which no browser sends without TLS
            assert (await person.get(f"{back.path}?{back.query}", **cookie))[0] == 200
            session = SimpleCookie(person.set_cookies[-2])
            (morsel,) = session.values()
            assert (morsel["secure"], morsel["httponly"], morsel["samesite"]) == (True, True, "strict")
            verifier = provider.last_token_form["code_verifier"]
            assert len(verifier) >= 43
            for cookie_line in person.set_cookies:
                assert verifier not in cookie_line
                assert SECRET not in cookie_line
                # Random texts have these letters now and then.
                assert not re.search(r"(?<![\w-])ada(?![\w-])", cookie_line)
            await person.session.close()


@pytest.mark.parametrize(
    "onward", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\t/evil.example"]
)
async def test_nobody_is_led_to_another_site_after_a_login(onward: str, person: Person) -> None:
    _, text = await person.log_in(onward)
    assert re.search(r'content="0; url=/"', text)
    assert "evil" not in text


async def test_failures_are_explained_logged_counted_and_limited(
    server: RunningServer, provider: OidcProvider, person: Person, http: Http
) -> None:
    asked = provider.asked.count("/token")
    provider.error = "access_denied"
    status, text = await person.log_in()
    assert (status, "The provider refused the login" in text) == (403, True)
    statuses = [(await person.get(f"/login/oidc/callback?state={n}&code=x"))[0] for n in range(20)]
    assert statuses[0] == 400
    assert statuses[-1] == 429
    assert provider.asked.count("/token") == asked
    assert "A login by OpenID Connect has failed: The provider refused the login: 'access_denied'." in server.log()
    assert SECRET not in server.log()
    metrics = (await http.get("/metrics")).text
    assert re.search(r'logins_total\{by="oidc",outcome="refused"\} 1\b', metrics), metrics
    assert re.search(r'logins_total\{by="oidc",outcome="state"\} \d+\b', metrics), metrics


async def test_a_login_ends_the_session_that_it_replaces(person: Person) -> None:
    await person.log_in()
    (older,) = (cookie for cookie in person.session.cookie_jar if not cookie.key.endswith("_login"))
    copy = {"Cookie": f"{older.key}={older.value}"}
    async with aiohttp.ClientSession(headers=HTML) as other:

        async def opened() -> int:
            async with other.get(f"{person.url}/ui/none", headers=copy, allow_redirects=False) as answer:
                return answer.status

        before = await opened()
        await person.begin()  # a login that is not completed ends nothing
        assert await opened() == before
        await person.log_in()
        assert await opened() == 303
    assert await person.is_logged_in()


async def test_a_login_in_another_tab_does_not_fail_with_the_one_that_it_replaced(person: Person) -> None:
    first = await person.begin()
    second = await person.begin()
    status, _, text = await person.get(first)
    assert (status, "Log in again" in text) == (400, True)
    assert (await person.get(second))[0] == 200
    assert await person.is_logged_in()


async def test_groups_have_roles_as_of_the_last_login(provider: OidcProvider, person: Person, http: Http) -> None:
    provider.person["groups"] = ["ops", "<b>odd</b>"]
    await person.log_in()
    assert [(await person.get(f"/ui/{project}/jobs"))[0] for project in (9007, 9008, 9009)] == [200, 200, 404]
    assert [(await person.get(f"/ui/{project}/periodic/new"))[0] for project in (9007, 9008)] == [200, 403]
    (row,) = rows(page(await http.get(f"/ui/users?q={person.email}")))
    assert "manage in project 9007 by group ops" in row[1]
    assert "<b>odd</b>" in row[2]
    provider.person["groups"] = []
    await person.log_in()
    assert (await person.get("/ui/9007/jobs"))[0] == 403


# ── pages, API, client, activity and metrics ──


async def test_users_are_managed_in_the_page_and_by_the_client(
    server: RunningServer, provider: OidcProvider, person: Person, http: Http, project: int
) -> None:
    provider.person["name"] = "<script>alert(1)</script>"
    await person.log_in()
    number = await number_of(http, person)
    form = {"action": "grant", "id": number, "project": project, "role": "run"}
    answer = await submit(http, "/ui/users", form)
    assert done(answer) == "The role was given."
    (row,) = rows(page(await http.get(f"/ui/users?q={person.email}")))
    assert row[0] == f"{person.email}<script>alert(1)</script>"
    assert row[1].startswith(f"run in project {project} by api Remove")
    for wrong, message in (
        ({"project": ""}, "must be a number or all"),
        ({"project": "-1"}, "must be a number or all"),
        ({"role": "root"}, "must be one of view, run, manage"),
    ):
        answer = await submit(http, "/ui/users", {**form, **wrong})
        assert answer.status == 400
        assert message in answer.text
    async with PlatformClient(PlatformUrls.single(server.url), server.platform_key) as client:
        (user,) = await client.users.list(person.email.upper())
        assert (user.id, user.email, user.disabled) == (number, person.email, False)
        assert [(role.project, role.role, role.by) for role in user.roles] == [(project, "run", "api")]
        changed = await client.users.set_roles(number, {None: Role.VIEW, project: None})
        assert [(role.project, role.role) for role in changed.roles] == [(None, "view")]
        assert (await client.users.disable(number)).disabled
        assert (await client.users.get(number)).disabled
        await client.users.remove(number)
        assert await client.users.list(person.email) == []
    events = [message["event"] for message in (await http.get(f"/activity/{project}")).lines]
    assert events == ["user:changed", "user:changed"]


async def test_bad_changes_of_users_are_refused_with_the_field(http: Http, person: Person) -> None:
    await person.log_in()
    number = await number_of(http, person)
    for body, field in (
        (b"{}", "body"),
        (b"[]", "body"),
        (b'{"role": "run"}', "role"),
        (b'{"disabled": 1}', "disabled"),
        (b'{"roles": {"x": "run"}}', "roles"),
        (b'{"roles": {"7": "root"}}', "roles.7"),
        (b'{"roles": {"7": 7}}', "roles.7"),
        (b'{"roles": ["run"]}', "roles"),
    ):
        answer = await http.call("PATCH", f"/api/users/{number}", body)
        assert answer.status == 400, body
        assert field in answer.text
    assert (await http.call("PATCH", "/api/users/999999", b'{"disabled": true}')).status == 404


async def test_no_other_key_manages_users(server: RunningServer, http: Http, project: int) -> None:
    store = await Store.open(server.where)
    try:
        key = await add_key(store, f"all-{project}", None, may_write=True)
    finally:
        await store.close()
    async with Http(server.url, key) as other:
        answer = await eventually_async(lambda: other.get("/api/users"), lambda answer: answer.status != 401)
        assert (answer.status, "may not manage users" in answer.text) == (403, True)
        assert (await other.call("PATCH", "/api/users/1", b'{"roles": {"all": "manage"}}')).status == 403


async def test_the_activity_says_who_did_what_and_shows_what_one_person_did(
    person: Person, http: Http, project: int
) -> None:
    await person.log_in()
    await give(http, person, {project: "manage"})
    assert (await person.post(f"/ui/{project}/jobs/run", RUN))[0] == 303
    await person.post(f"/ui/{project}/1/1/tags", {"add": "checked"})
    await person.post(f"/ui/{project}/jobs", {"action": "stop", "job": f"{project}/1/1"})
    await http.post(f"/projects/{project}/settings", b'{"a": 2}', Content_Type="application/json")
    metadata = (await http.get(f"/jobs/{project}/1/1?format=json")).json
    assert metadata["scheduled_by"] == metadata["cancelled_by"] == person.email
    shown = rows(page(await http.get(f"/ui/{project}/activity?user={quote(person.email)}")))
    assert [row[1] for row in shown] == [
        f"{person.email} {done} books {project}/1/1" for done in ("cancelled", "added tags checked to", "scheduled")
    ]
    shown = rows(page(await http.get(f"/ui/{project}/activity?user=api")))
    assert "api changed settings a" in [row[1] for row in shown]
    shown = rows(page(await http.get(f"/ui/activity?user={quote(person.email)}")))
    assert ["server", f"User {person.email} logged in for the first time"] in [row[1:3] for row in shown]


async def test_logging_out_ends_the_session_and_leads_to_the_provider(person: Person, provider: OidcProvider) -> None:
    await person.log_in()
    cookies = {cookie.key: cookie.value for cookie in person.session.cookie_jar}
    status, text = await person.post("/logout", {})
    assert status == 200
    query = urlencode({"client_id": "scrapy-ext", "post_logout_redirect_uri": f"{PUBLIC}/login"})
    assert f"{provider.url}/logout?{query}" in text.replace("&amp;", "&")
    person.session.cookie_jar.update_cookies(cookies)
    assert not await person.is_logged_in()


@pytest.mark.long
async def test_servers_of_one_postgresql_share_logins_sessions_and_changes(
    provider: OidcProvider, tmp_path: Path, postgresql: Cluster
) -> None:
    database = postgresql.database()
    with (
        running(provider, tmp_path / "a", database=database) as first,
        running(provider, tmp_path / "b", database=database) as second,
    ):
        person, beside = Person(first), Person(second)
        back = await person.begin()
        beside.session.cookie_jar.update_cookies({c.key: c.value for c in person.session.cookie_jar})
        assert (await beside.get(back))[0] == 200  # begun at one server, completed at another
        assert (await person.get(back))[0] == 400  # and nowhere again
        person.session.cookie_jar.update_cookies({c.key: c.value for c in beside.session.cookie_jar})
        async with Http(second.url, second.platform_key) as http:
            await give(http, person, {7: "view"})
            assert (await person.get("/ui/7/jobs"))[0] == 200
            assert (await http.call("PATCH", "/api/users/1", b'{"disabled": true}')).status == 200
            assert not await person.is_logged_in()
            assert not await beside.is_logged_in()
        await person.session.close()
        await beside.session.close()


@pytest.mark.full
async def test_a_rule_that_is_gone_ends_sessions(provider: OidcProvider, tmp_path: Path) -> None:
    with running(provider, tmp_path, "--oidc-allowed", "@example.com") as server:
        person = Person(server)
        await person.log_in()
        assert await person.is_logged_in()
        cookies = {cookie.key: cookie.value for cookie in person.session.cookie_jar}
        await person.session.close()
    with running(provider, tmp_path, "--oidc-allowed", "@example.org") as server:
        person = Person(server)
        person.session.cookie_jar.update_cookies(cookies)
        assert not await person.is_logged_in()
        await person.session.close()
