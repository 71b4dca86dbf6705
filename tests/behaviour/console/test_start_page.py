"""Browsers at URLs that are no pages: the start page, and the way from an MCP URL to the page of its tenant."""

import pytest

from tests.support.gateway import ACCEPT, RunningGateway

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"}


async def test_a_browser_at_the_root_reads_which_urls_there_are(gateway: RunningGateway) -> None:
    """Ours: the page names the forms of the URLs and no tenant; a program still gets a problem document (IDN-2)."""
    await gateway.create_tenant("acme")
    page = await gateway.http.get("/", headers=BROWSER)
    problem = await gateway.http.get("/", headers={"accept": "*/*"})

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f"{gateway.url}/t/TENANT/mcp" in page.text
    assert f"{gateway.url}/t/TENANT/<" in page.text
    assert "Authorization: Bearer KEY" in page.text
    assert "acme" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (problem.status_code, problem.json()["code"]) == (404, "not_found")
    assert "/t/TENANT/mcp" in problem.json()["detail"]
    assert page.headers["vary"] == problem.headers["vary"] == "accept"


@pytest.mark.parametrize("slug", ["acme", "missing"])
@pytest.mark.parametrize("path", ["", "/mcp", "/mcp/", "/support/mcp", "/sse"])
async def test_a_browser_at_an_mcp_url_is_led_to_the_page_of_the_tenant(
    gateway: RunningGateway, slug: str, path: str
) -> None:
    """Ours: the redirect is the same for existing and missing tenants, and leads to the sign-in (IDN-2)."""
    await gateway.create_tenant("acme")
    led = await gateway.http.get(f"/t/{slug}{path}", headers=BROWSER)

    assert (led.status_code, led.headers["location"]) == (303, f"/t/{slug}/")
    assert (led.headers["vary"], led.headers["cache-control"]) == ("accept", "no-store")
    assert "<h1>Sign in</h1>" in (await gateway.http.get(led.headers["location"], headers=BROWSER)).text


async def test_no_client_is_redirected(gateway: RunningGateway) -> None:
    """MCP 2025-11-25: a client reads the challenge of a 401, whatever method or media types it names (TEN-2)."""
    for accept in (ACCEPT, "text/event-stream", "application/json", "*/*", f"text/html;q=0.1, {ACCEPT}"):
        refused = await gateway.http.get("/t/acme/mcp", headers={"accept": accept})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer"), accept
    for method, headers in (("POST", BROWSER), ("GET", BROWSER | {"authorization": "Bearer wrong"})):
        assert (await gateway.http.request(method, "/t/acme/mcp", headers=headers)).status_code == 401


@pytest.mark.parametrize("path", ["/t//evil.example/mcp", "/t/A%0d%0aset-cookie:x/mcp", "/t/%2e%2e/mcp", "/t/a/b/c/d"])
async def test_no_other_path_becomes_a_location(gateway: RunningGateway, path: str) -> None:
    """Ours: only the slug of a tenant is written into a redirect (IDN-2)."""
    refused = await gateway.http.get(path, headers=BROWSER)

    assert (refused.status_code, "location" in refused.headers) == (401, False)
