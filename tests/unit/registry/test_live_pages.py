"""Pages (MCP Apps) of live sources: which tools they find by a name at their source, and who serves their URIs."""

from dataclasses import replace

import orjson
import pytest

from gateway.catalog.snapshots.live_primitives import LiveOffer, page_tools_of, split_hidden_live
from gateway.domain.identifiers import ProfileId
from gateway.domain.live_sources import LivePrimitive, RememberedPrimitive
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile, Rule
from gateway.domain.tools import PrimitiveOrigin
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView
from tests.support.live_offers import live_source
from tests.support.registries import CURSORS, binder
from tests.support.snapshots import custom, primitive, snapshot
from tests.unit.registry.test_access import KEY

PAGE = orjson.dumps({"uri": "ui://bank/v", "name": "v", "_meta": {"gateway/page": "d1"}})


def remembered(
    family: Family, remote: str, name: str = "", definition: bytes = b"{}", **more: object
) -> RememberedPrimitive:
    """An accepted primitive."""
    made = LivePrimitive(
        family=family,
        name=name or remote,
        remote=remote,
        definition=definition,
        safety=Safety.SAFE,
        safety_reasons=(),
        digest="d",
    )
    return RememberedPrimitive(primitive=replace(made, **more), accepted_digest="d")  # type: ignore[arg-type]  # any field


def visible_to(*whom: str) -> bytes:
    """The definition of a tool with this visibility."""
    return orjson.dumps({"_meta": {"ui": {"visibility": whom}}})


def test_tools_of_sources_with_pages_have_their_names_there() -> None:
    """DYN-5: not tools that are for models only, held, or of a source without pages."""
    page = remembered(Family.RESOURCE, "ui://v", "ui://bank/v", PAGE)
    offered = {
        "bank": [
            page,
            remembered(Family.TOOL, "refresh", "bank_refresh"),
            remembered(Family.TOOL, "draw", "bank_draw", visible_to("app")),
            remembered(Family.TOOL, "report", "bank_report", visible_to("model")),
            remembered(Family.TOOL, "late", "bank_late", is_held=True),
        ],
        "shop": [replace(page, is_present=False), remembered(Family.TOOL, "refresh", "shop_refresh")],
        "game": [page, remembered(Family.TOOL, "draw", "game_draw")],
    }
    sources = [live_source(name) for name in offered]
    offer = LiveOffer(sources=sources, found={source.id: offered[source.name] for source in sources})
    assert page_tools_of(offer) == {"refresh": ["bank_refresh"], "draw": ["bank_draw", "game_draw"]}


@pytest.mark.parametrize("accepts_changes", [False, True])
def test_a_reviewed_page_has_its_digest_in_the_handler(*, accepts_changes: bool) -> None:
    """DYN-5: contents of a source without review may change."""
    source = live_source("bank", accepts_changes=accepts_changes)
    found = {source.id: [remembered(Family.RESOURCE, "ui://v", "ui://bank/v", PAGE)]}
    [[page], _] = split_hidden_live(LiveOffer(sources=[source], found=found), ())
    assert orjson.loads(page.handler).get("page") == (None if accepts_changes else "d1")


def registry(profile: str) -> Registry:
    """Pages of two sources that a profile shows."""
    profiles = [Profile(id=ProfileId("prf_1"), name="bank", include=(Rule(names=("bank_*",)),))]
    tools = [custom(name) for name in ("bank_draw", "game_draw", "bank_refresh", "refund")]
    page_tools = {"draw": ["bank_draw", "game_draw"], "refresh": ["bank_refresh"], "refund": ["bank_draw"]}
    found = snapshot(tools=tools, profiles=profiles, page_tools=page_tools)
    return Registry(KEY, profile, SnapshotView(found, binder(), None), CURSORS)


@pytest.mark.parametrize(
    ("profile", "name", "found"),
    [
        (DEFAULT_PROFILE, "refresh", "bank_refresh"),
        (DEFAULT_PROFILE, "draw", None),
        ("bank", "draw", "bank_draw"),
        (DEFAULT_PROFILE, "refund", "refund"),
        (DEFAULT_PROFILE, "bank_draw", "bank_draw"),
    ],
)
async def test_a_name_at_a_source_finds_the_only_shown_tool(profile: str, name: str, found: str | None) -> None:
    """DYN-5: a listed name comes first, two tools are none, and handlers name no tools so."""
    tool = await registry(profile).tool(name)
    assert (None if tool is None else tool.tool.name) == found
    inner = await registry(profile).inner_tool(name)
    assert (None if inner is None else inner.tool.name) == (name if found == name else None)


async def test_no_template_of_a_source_serves_a_page() -> None:
    """Attack: a template that matches every URI would answer for a page that is held or gone (DYN-5)."""
    shared = snapshot(
        primitives=[
            primitive(Family.TEMPLATE, "{+any}", origin=PrimitiveOrigin.LIVE),
            primitive(Family.TEMPLATE, "ui://own/{page}"),
        ]
    )
    found = Registry(KEY, DEFAULT_PROFILE, SnapshotView(shared, binder(), None), CURSORS)
    assert [one.name for one in found.shown.templates_for("note://1")] == ["{+any}"]
    assert not list(found.shown.templates_for("ui://bank/v"))
    assert not list(found.shown.templates_for("UI://bank/v"))
    assert [one.name for one in found.shown.templates_for("ui://own/v")] == ["ui://own/{page}"]
