"""Primitives of live sources in a snapshot: owners of names, levels, order of templates."""

from dataclasses import replace
from datetime import UTC, datetime

import orjson

from gateway.catalog.snapshots.composition import compose
from gateway.catalog.snapshots.live_primitives import LiveOffer
from gateway.domain.identifiers import PrimitiveId, SourceId
from gateway.domain.live_sources import LivePrimitive, LiveSource, RememberedPrimitive
from gateway.domain.overrides import Alias
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tenancy.selection import compile_selection
from gateway.domain.tools import PrimitiveOrigin
from tests.support.live_offers import live_source


def _found(
    name: str, family: Family = Family.TOOL, *, is_present: bool = True, digest: str | None = "d"
) -> RememberedPrimitive:
    primitive = LivePrimitive(
        family=family,
        name=name,
        remote=name,
        definition=b"{}",
        safety=Safety.MODERATE,
        safety_reasons=("why",),
        digest="d",
        is_held=digest != "d",
    )
    return RememberedPrimitive(primitive=primitive, accepted_digest=digest, is_present=is_present)


def _own(name: str, family: Family = Family.TOOL, **facts: object) -> Primitive:
    made = Primitive(id=PrimitiveId(f"x_{name}"), family=family, name=name, definition=b"{}", handler=b"{}")
    return replace(made, **facts)  # type: ignore[arg-type]  # any field of a primitive


def _offer(*pairs: tuple[LiveSource, list[RememberedPrimitive]]) -> LiveOffer:
    return LiveOffer(sources=[source for source, _ in pairs], found={source.id: found for source, found in pairs})


def test_a_discovered_tool_is_a_tool_of_its_source() -> None:
    """Ours: origin, source, handler and level; profiles select it by the name of its source."""
    source = live_source("editor", safety={"save": Safety.SAFE})
    composed = compose((), (), (), offer=_offer((source, [_found("save"), _found("n://1", Family.RESOURCE)])))

    [tool], [resource] = composed.tools, composed.resources
    assert (tool.origin, tool.source_name) == (PrimitiveOrigin.LIVE, "editor")
    assert orjson.loads(tool.handler) == {"kind": "live", "source": source.id, "remote": "save"}
    assert tool.safety is Safety.SAFE
    assert tool.levels == (Safety.SAFE, Safety.MODERATE)
    shows = compile_selection(Profile(id="p", name="p", description="", include=(Rule(sources=("editor",)),)))  # type: ignore[arg-type]  # an id
    assert shows(tool)
    assert shows(resource)
    assert not shows(_own("other"))


def test_absent_and_held_primitives_are_not_shown() -> None:
    """Ours: a definition that waits for a review is not seen."""
    found = [_found("gone", is_present=False), _found("changed", digest="old"), _found("new", digest=None)]

    composed = compose((), (), (), offer=_offer((live_source(), found)))

    assert composed.tools == ()
    assert composed.hidden_live == []


def test_every_other_primitive_hides_a_live_one() -> None:
    """Ours: a live source takes no name from the tenant, not even of a disabled primitive or a matching template."""
    own = [
        _own("save", enabled=False),
        _own("notes://{id}", Family.TEMPLATE),
        _own("ask", Family.PROMPT),
    ]
    found = [
        _found("save"),
        _found("free"),
        _found("ask", Family.PROMPT),
        _found("notes://7", Family.RESOURCE),
        _found("docs://7", Family.RESOURCE),
        _found("notes://{other}", Family.TEMPLATE),
    ]

    composed = compose((), own, (), offer=_offer((live_source(), found)))

    assert [tool.name for tool in composed.tools] == ["free"]
    assert [one.name for one in composed.resources] == ["docs://7"]
    assert [one.name for one in composed.templates] == ["notes://{id}"]
    assert {(one.family, one.name) for one in composed.hidden_live} == {
        (Family.TOOL, "save"),
        (Family.PROMPT, "ask"),
        (Family.RESOURCE, "notes://7"),
        (Family.TEMPLATE, "notes://{other}"),
    }


def test_a_name_stays_with_the_oldest_source_that_remembers_it() -> None:
    """Ours: while its program is away, calls of the name do not go to another program."""
    old, young = live_source("old"), live_source("young")

    both = compose((), (), (), offer=_offer((old, [_found("save")]), (young, [_found("save")])))
    away = compose((), (), (), offer=_offer((old, [_found("save", is_present=False)]), (young, [_found("save")])))
    refused = compose((), (), (), offer=_offer((old, [_found("save", digest=None)]), (young, [_found("save")])))

    assert [tool.source_name for tool in both.tools] == ["old"]
    assert [(one.source, one.owner) for one in both.hidden_live] == [(young.id, "old")]
    assert away.tools == ()
    assert [tool.source_name for tool in refused.tools] == ["young"]


def test_a_tool_of_steps_has_the_level_of_the_live_tool_that_it_calls() -> None:
    """Ours: a declared list of steps is no way around the level of a live tool."""
    source = live_source("editor", safety={"save": Safety.DANGEROUS})
    steps = _own("outer", refers=("tool:save",))

    composed = compose((), [steps], (), offer=_offer((source, [_found("save")])))

    assert {tool.name: tool.safety for tool in composed.tools}["outer"] is Safety.DANGEROUS


def test_listed_names_depend_on_every_stored_name_alone() -> None:
    """Ours: also on those of disabled, detached, waiting and former tools; never on what is shown (CLN-1)."""
    own = [_own("a_b", enabled=False)]
    found = [_found("c.d"), _found("c_d", is_present=False), _found("e_f", digest=None), _found("e.f")]
    alias = Alias(source=SourceId("src_1"), name="g_h", identity="GET /x", expires_at=datetime.max.replace(tzinfo=UTC))
    code = [_own(name, origin=PrimitiveOrigin.CODE) for name in ("g.h", "a.b", "read.result")]

    names = compose((), own, code, offer=_offer((live_source(), found)), aliases=[alias]).names

    plain = {name: names.listed(name) == name.replace(".", "_") for name in ("a.b", "c.d", "e.f", "g.h", "read.result")}
    assert plain == dict.fromkeys(plain, False)
