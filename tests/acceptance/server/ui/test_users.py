"""People in a real browser: log in at a provider, do what their role allows, and log out there."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, ConsoleMessage, Page, async_playwright, expect

from tests.acceptance.server.ui.conftest import context_of, keep, launched, violations
from tests.support.free_ports import held_port, number_of
from tests.support.http import Http
from tests.support.oidc_provider import ADA, SECRET, OidcProvider
from tests.support.servers import ForkedServer, RunningServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[OidcProvider]:
    async with OidcProvider() as provider:
        yield provider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """A server that knows the address at which the browser opens it."""
    data, environment = tmp_path_factory.mktemp("users") / "data", {"SERVER_OIDC_CLIENT_SECRET": SECRET}
    with held_port() as held:
        port = number_of(held)
        options = ("--port", str(port), *provider.options(f"http://127.0.0.1:{port}"), "--oidc-name", "Example Login")
        with ForkedServer(data, options=options, environment=environment) as server:
            yield server


@pytest_asyncio.fixture(loop_scope="module")
async def http(server: RunningServer) -> AsyncIterator[Http]:
    async with Http(server.url, server.platform_key) as http:
        yield http


@pytest_asyncio.fixture(loop_scope="module")
async def context(server: RunningServer) -> AsyncIterator[BrowserContext]:
    """A browser's context, in which no script fails and the content security policy stops nothing."""
    async with async_playwright() as playwright:
        browser = await launched(playwright)
        context = await context_of(browser, base_url=server.url, reduced_motion="reduce")
        faults: list[str] = []

        def report(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and "the server responded with a status of 4" not in message.text:
                faults.append(message.text)

        context.on("console", report)
        context.on("weberror", lambda error: faults.append(str(error.error)))
        yield context
        await browser.close()
    assert faults == []


async def give(http: Http, roles: dict[str, str | None]) -> int:
    users = (await http.get("/api/users?q=ada@example.com")).json
    answer = await http.call("PATCH", f"/api/users/{users[0]['id']}", json.dumps({"roles": roles}).encode())
    assert answer.status == 200, answer.text
    return int(users[0]["id"])


async def log_in(page: Page, path: str) -> None:
    await page.goto(path)
    await page.get_by_role("link", name="Log in with Example Login").click()
    # The way there and back has several pages: what opens another one meanwhile would interrupt it.
    await expect(page.get_by_role("button", name="Log out")).to_be_visible()


@pytest.mark.long
async def test_a_person_logs_in_acts_in_the_role_and_logs_out(
    context: BrowserContext, server: RunningServer, provider: OidcProvider, http: Http
) -> None:
    pushed = (await http.post("/jobq/7/push", [{"spider": "books"}])).lines
    page = await context.new_page()
    await log_in(page, f"/ui/{pushed[0]['key']}")
    await expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    await expect(page.get_by_text("you have no role in any project yet")).to_be_visible()
    assert await violations(page) == []
    await keep(page, "users-no-role")

    await give(http, {"7": "view"})
    await page.reload()
    await expect(page.get_by_role("heading", name="books")).to_be_visible()
    await expect(page.get_by_text("ada@example.com (read only)")).to_be_visible()
    assert await page.get_by_role("button", name="Stop").count() == 0
    await expect(page.get_by_role("link", name="Users")).to_have_count(0)

    await give(http, {"7": "run"})
    await page.reload()
    await expect(page.get_by_text("ada@example.com (may run)")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete…")).to_have_count(0)
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_text("1 job was asked to stop.")).to_be_visible()
    metadata = (await http.get(f"/jobs/{pushed[0]['key']}?format=json")).json
    assert metadata["cancelled_by"] == "ada@example.com"

    # A link in another site leads to the page, although the cookie is not sent from there.
    await page.goto("about:blank")
    await page.set_content(f"<a href='{server.url}/ui/7/jobs'>the jobs</a>")
    await page.get_by_role("link", name="the jobs").click()
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()

    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("link", name="Log in with Example Login")).to_be_visible()
    assert provider.logged_out[-1]["client_id"] == "scrapy-ext"
    await page.goto("/ui/7/jobs")
    await expect(page).to_have_url(re.compile(r"/login\?next="))


@pytest.mark.long
async def test_a_disabled_user_is_logged_out_at_the_next_click(context: BrowserContext, http: Http) -> None:
    page = await context.new_page()
    await log_in(page, "/ui/7/jobs")
    number = await give(http, {"7": "manage"})
    await page.goto("/ui/7/jobs")
    await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    assert (await http.call("PATCH", f"/api/users/{number}", b'{"disabled": true}')).status == 200
    await page.get_by_role("link", name="Activity").click()
    await page.get_by_role("link", name="Log in with Example Login").click()
    await expect(page.get_by_role("alert")).to_have_text("Your access is disabled. Ask the operator.")
    assert (await http.call("PATCH", f"/api/users/{number}", b'{"disabled": false}')).status == 200


@pytest.mark.long
async def test_the_operator_gives_and_removes_roles_in_the_page_of_users(
    context: BrowserContext, server: RunningServer, provider: OidcProvider, http: Http
) -> None:
    for number in range(3):
        provider.person = {
            **ADA,
            "sub": f"number-{number}",
            "name": "Grace Hopper of a department with quite a long name",
            "email": f"person-{number}@example.com",
            "groups": ["operators", "a group with a long name"] if number else [],
        }
        page = await context.new_page()
        await log_in(page, "/")
        await expect(page.get_by_role("button", name="Log out")).to_be_visible()
        await context.clear_cookies()
    provider.person = dict(ADA)
    await page.goto("/ui/users")
    await page.get_by_label("API key").fill(server.platform_key)
    await page.get_by_role("button", name="Log in with the key").click()
    row = page.get_by_role("row").filter(has_text="person-1@example.com")
    await row.get_by_text("Give a role…").click()
    await row.get_by_label("Project").fill("x")
    await row.get_by_role("button", name="Give the role").click()
    await expect(row.get_by_role("alert")).to_contain_text("must be a number or all")
    assert await violations(page) == []
    await keep(page, "users-wrong")
    await row.get_by_label("Project").fill("7")
    await row.get_by_label("Role").select_option("run")
    await row.get_by_role("button", name="Give the role").click()
    await expect(row.get_by_text("run in project 7")).to_be_visible()
    row_2 = page.get_by_role("row").filter(has_text="person-2@example.com")
    await row_2.get_by_role("button", name="Disable").click()
    await expect(row_2.get_by_text("disabled", exact=True)).to_be_visible()
    for scheme in ("light", "dark"):
        for width in (1280, 400):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 900})
            for name, path in (("list", "/ui/users"), ("activity", "/ui/activity?project=7")):
                await page.goto(path)
                assert await violations(page) == []
                overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert await page.evaluate(overflow) <= 0, (path, width)
                await keep(page, f"users-{name}-{scheme}-{width}")
    await page.set_viewport_size({"width": 1280, "height": 900})
    await page.goto("/ui/users")
    await row.get_by_role("button", name="Remove").first.click()
    await expect(row.get_by_text("run in project 7")).to_have_count(0)
    await row.get_by_text("Remove…").click()
    await row.get_by_role("button", name="Remove").click()
    await expect(row).to_have_count(0)


@pytest.mark.long
async def test_the_login_page_offers_both_ways_to_everybody(context: BrowserContext) -> None:
    page = await context.new_page()
    for scheme in ("light", "dark"):
        for width in (1280, 400):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 900})
            await page.goto("/login")
            assert await violations(page) == []
            await keep(page, f"users-login-{scheme}-{width}")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Log in with Example Login")).to_be_focused()
