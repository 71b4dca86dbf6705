"""`/admin/docs`: the reference of the admin API that each gateway serves beside it."""

from html.parser import HTMLParser
from typing import Any

import pytest

from gateway.admin.openapi.reference_page import PATH
from tests.support.chromium import Browser, browser, chromium
from tests.support.gateway import RunningGateway

__all__ = ["browser", "chromium"]


class _Page(HTMLParser):
    """Ids, targets of links, and all other attributes that name a resource."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in {"href", "src", "srcset", "action", "data", "poster", "style"}:
                (self.links if tag == "a" else self.loaded).append(value or "")


@pytest.fixture
async def document(gateway: RunningGateway) -> dict[str, Any]:
    """The OpenAPI document of the same gateway."""
    served: dict[str, Any] = (await gateway.admin.get("/openapi.json")).json()
    return served


async def test_the_page_has_every_operation_and_object(gateway: RunningGateway, document: dict[str, Any]) -> None:
    """Ours: the page has what the OpenAPI document has, for readers without a credential (ADM-1)."""
    response = await gateway.http.get(PATH)
    page = _Page(response.text)
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    expected = {one["operationId"] for one in operations} | {name.lower() for name in document["components"]["schemas"]}

    assert response.status_code == 200
    assert len(operations) > 150
    assert expected - set(page.ids) == set()
    assert len(page.ids) == len(set(page.ids))
    assert {link for link in page.links if link.removeprefix("#") not in page.ids} == {"/admin/v1/openapi.json"}
    assert all(f'<h3 id="{one["operationId"]}">' in response.text for one in operations)
    assert "get_pet" not in response.text


async def test_the_page_loads_nothing_and_runs_nothing(gateway: RunningGateway) -> None:
    """Ours: the page has one style, which its policy names by digest; nothing else is permitted (ADM-1)."""
    response = await gateway.http.get(PATH)
    page = _Page(response.text)
    policy = {part.split()[0]: part.split()[1] for part in response.headers["content-security-policy"].split(";")}

    assert page.loaded == []
    assert {"script", "link", "img", "iframe", "form", "base"}.isdisjoint(page.tags)
    assert policy["default-src"] == "'none'"
    assert policy["style-src"].startswith("'sha256-")
    assert "unsafe" not in response.headers["content-security-policy"]


async def test_a_browser_shows_the_page_with_its_style(gateway: RunningGateway, browser: Browser) -> None:
    """Ours: Chromium applies the style under the policy, and requests nothing else (ADM-1)."""
    await browser.open(f"{gateway.url}{PATH}#list_tenants")
    text = await browser.text()
    width = await browser.ask("getComputedStyle(document.body).maxWidth")

    assert "GET /tenants/{t}/tools" in text
    assert width == "1024px"
    assert browser.faults == []


async def test_an_unchanged_page_has_the_same_tag(gateway: RunningGateway) -> None:
    """Ours: the page is written once; a method that changes is refused (ADM-1)."""
    first, second = await gateway.http.get(PATH), await gateway.http.head(PATH)

    assert first.headers["etag"] == second.headers["etag"]
    assert second.content == b""
    assert (await gateway.http.post(PATH)).status_code == 405
