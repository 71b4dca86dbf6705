"""Reading of the pages (MCP Apps) of a live source: which ones are read, and what a fault costs."""

from collections.abc import Mapping
from typing import Any, cast

import anyio
import pytest

from gateway.definitions.live.page_digests import page_digest
from gateway.domain.live_sources import DiscoveredPrimitive, Discovery
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.jobs.live import page_reader
from gateway.jobs.live.limits import MAX_PAGES
from gateway.jobs.live.page_reader import PageReader
from gateway.upstream.live.interfaces import LiveClient, LiveMethod
from tests.support.live_offers import offer_of, offered, offered_tool
from tests.unit.jobs.live.test_held import Restless


def contents(text: str, **more: object) -> dict[str, Any]:
    """A result of resources/read."""
    return {"contents": [{"uri": "ui://x", "mimeType": "text/html", "text": text, **more}]}


class Pages(Restless):
    """An attachment with pages; a missing one hangs."""

    def __init__(self, **pages: Any) -> None:
        self.pages: dict[str, Any] = pages

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        assert method == "resources/read"
        assert not client.can("elicitation")
        page: Any = self.pages.get(str(params["uri"]).removeprefix("ui://"))
        if page is None:
            await anyio.sleep_forever()
        if isinstance(page, str):
            raise LiveSourceFailed(page)
        assert isinstance(page, dict)
        return cast("dict[str, Any]", page)


def tool(name: str, uri: object) -> DiscoveredPrimitive:
    """A tool that opens a page."""
    return offered_tool(name, _meta={"ui": {"resourceUri": uri}})


def pages_in(found: Discovery) -> dict[str, str]:
    """The digests of the pages."""
    return {one.name: one.page for one in found.primitives if one.family is Family.RESOURCE}


async def test_pages_that_are_listed_or_named_by_tools_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """DYN-5: a fault costs one page, and what was read before stays."""
    monkeypatch.setattr(page_reader, "PAGE_READ_S", 0.1)
    attachment = Pages(a=contents("A"), b=contents("B"), bad="no database", empty={"contents": []})
    offer = offer_of(
        tool("one", "ui://b"),
        tool("two", "https://elsewhere.example"),
        tool("three", "ui://bad"),
        tool("four", "ui://slow"),
        offered(Family.RESOURCE, "ui://a", name="a"),
        offered(Family.RESOURCE, "ui://empty", name="e"),
        offered(Family.RESOURCE, "note://1", name="n"),
        notices=("before",),
    )
    reader = PageReader()
    found = await reader.add_pages(attachment, offer, is_reviewed=True)
    read = {"ui://a": page_digest(contents("A")), "ui://b": page_digest(contents("B"))}
    unread = {"ui://empty": "", "ui://bad": "", "ui://slow": ""}
    assert pages_in(found) == {"note://1": "", **read, **unread}
    assert len(found.primitives) == len(offer.primitives) + 3
    assert found.notices[0] == "before"
    assert len(found.notices) == 4
    attachment.pages |= {"a": "gone", "b": contents("other")}
    again = await reader.add_pages(attachment, offer, is_reviewed=True)
    assert pages_in(again)["ui://a"] == read["ui://a"]
    assert pages_in(again)["ui://b"] == page_digest(contents("other")) != read["ui://b"]


async def test_pages_of_a_source_without_review_are_not_read() -> None:
    """DYN-5: pages that are not listed are listed all the same."""
    offer = offer_of(tool("one", "ui://b"), offered_tool("two"))
    found = await PageReader().add_pages(Pages(), offer, is_reviewed=False)
    assert pages_in(found) == {"ui://b": ""}
    plain = offer_of(offered_tool("two"))
    assert await PageReader().add_pages(Pages(), plain, is_reviewed=True) is plain


async def test_pages_are_bounded() -> None:
    """Attack: a source with many pages costs as many requests as there may be (DYN-5)."""
    names = [f"p{number}" for number in range(MAX_PAGES + 5)]
    attachment = Pages(**{name: contents(name) for name in names})
    offer = offer_of(*(offered(Family.RESOURCE, f"ui://{name}", name=name) for name in names))
    found = await PageReader().add_pages(attachment, offer, is_reviewed=True)
    assert len(found.primitives) == MAX_PAGES
    assert "pages" in found.notices[0]


def test_the_digest_covers_all_that_a_client_receives() -> None:
    """Attack: text, type and permissions of a page count; its URI does not (DYN-5)."""
    base = contents("A")
    others = [contents("B"), contents("A", mimeType="text/plain"), contents("A", _meta={"ui": {"csp": {}}}), {}]
    digests = {page_digest(one) for one in (base, *others)}
    assert len(digests) == 5
    assert page_digest({"contents": []}) == ""
    assert page_digest(contents("A", uri="ui://y")) == page_digest(base)
    assert page_digest({"contents": base["contents"] * 2}) not in digests
