"""Primitives for a tenant's clients, composed from stored ones and those of code."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.snapshots.composition import Renamed, compose, index_operations
from gateway.catalog.snapshots.python_primitives import PythonPrimitive, primitives_for
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.identifiers import OperationId, PrimitiveId, SourceId, TenantId
from gateway.domain.overrides import Alias, LoadedOperation, Override
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Policy, Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from tests.support.overrides import make_changes

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class _Code:
    """A catalog of code that holds what it is given."""

    def __init__(self, *added: PythonPrimitive) -> None:
        self._added = added

    @property
    def generation(self) -> int:
        return 1

    def primitives(self) -> tuple[PythonPrimitive, ...]:
        return self._added


def _operation(
    name: str, operation_id: str | None = None, *, method: str = "GET", is_listed: bool = True
) -> LoadedOperation:
    tool = Tool(
        name=name,
        definition=b'{"inputSchema":{}}',
        safety=Safety.SAFE if method == "GET" else Safety.DANGEROUS,
        safety_reasons=(),
        origin=PrimitiveOrigin.SOURCE,
        operation=OperationId(f"opr_{name}"),
        source=SourceId("src_1"),
        source_name="pets",
        identity=f"{method} /{name}",
    )
    return LoadedOperation(tool=tool, operation_id=operation_id, is_listed=is_listed)


def _override(operation: LoadedOperation, override: Override) -> LoadedOperation:
    return replace(operation, override=override)


def _alias(name: str, identity: str) -> Alias:
    return Alias(name=name, source=SourceId("src_1"), identity=identity, expires_at=_NOW)


def _own(name: str, family: Family = Family.TOOL, *, is_enabled: bool = True) -> Primitive:
    return Primitive(
        id=PrimitiveId(f"x_{name}"), family=family, name=name, definition=b"{}", handler=b"{}", enabled=is_enabled
    )


def _added(name: str, family: Family = Family.TOOL, tenants: frozenset[str] | None = None) -> PythonPrimitive:
    return PythonPrimitive(
        family=family, name=name, definition=b"{}", safety=Safety.MODERATE, safety_reasons=("code",), tenants=tenants
    )


def test_every_family_is_sorted_and_has_enabled_primitives() -> None:
    """Ours: clients have what is stored and switched on, in order of names (PRG-3)."""
    families = (Family.RESOURCE, Family.TEMPLATE, Family.PROMPT)
    own = [_own(name, family) for family in families for name in ("b", "a")]
    composed = compose(
        [_operation("m"), _operation("queried", is_listed=False)],
        [_own("z"), _own("a"), _own("off", is_enabled=False), *own],
        (),
    )
    assert [tool.name for tool in composed.tools] == ["a", "m", "z"]
    assert [tool.origin for tool in composed.tools] == [
        PrimitiveOrigin.CUSTOM,
        PrimitiveOrigin.SOURCE,
        PrimitiveOrigin.CUSTOM,
    ]
    for found in (composed.resources, composed.templates, composed.prompts):
        assert [primitive.name for primitive in found] == ["a", "b"]


def test_a_queried_operation_is_still_an_operation() -> None:
    """Ours: a tool may be pinned to an operation that no client sees."""
    composed = compose([_operation("queried", "getIt", is_listed=False)], (), ())
    assert composed.tools == ()
    assert composed.operations["pets"]["getIt"].name == "queried"


def test_code_hides_behind_names_of_the_tenants_own() -> None:
    """Ours: a tenant's own name wins, enabled or not and imported or not, and the clash is reported (PRG-4)."""
    code = primitives_for(
        _Code(_added("own"), _added("off"), _added("imported"), _added("free"), _added("own", Family.PROMPT)), "acme"
    )
    composed = compose([_operation("imported")], [_own("own"), _own("off", is_enabled=False)], code)
    assert {tool.name: tool.origin for tool in composed.tools} == {
        "free": PrimitiveOrigin.CODE,
        "imported": PrimitiveOrigin.SOURCE,
        "own": PrimitiveOrigin.CUSTOM,
    }
    assert sorted(primitive.name for primitive in composed.hidden) == ["imported", "off", "own"]
    assert [prompt.name for prompt in composed.prompts] == ["own"]


def test_code_is_for_all_tenants_or_for_those_it_names() -> None:
    """Ours: a primitive that is registered for one tenant is absent for others (TEN-1, PRG-2)."""
    code = _Code(_added("all"), _added("some", tenants=frozenset({"acme"})))
    assert [one.name for one in primitives_for(code, "acme")] == ["all", "some"]
    assert [one.name for one in primitives_for(code, "other")] == ["all"]
    assert primitives_for(None, "acme") == ()


def test_ids_of_code_are_stable_and_its_own() -> None:
    """Ours: an id addresses what code registered, the same on every replica."""
    found = primitives_for(_Code(_added("a"), _added("a", Family.PROMPT)), "acme")
    assert [one.id for one in found] == [one.id for one in primitives_for(_Code(*map(_again, found)), "acme")]
    assert len({one.id for one in found}) == 2


def _again(primitive: Primitive) -> PythonPrimitive:
    return _added(primitive.name, primitive.family)


def test_an_operation_id_wins_and_two_equal_ones_find_nothing() -> None:
    """Ours: a name finds one operation or none, never one by chance."""
    swapped = [_operation("a", "b"), _operation("b", "a"), _operation("c", "same"), _operation("d", "same")]
    found = index_operations(swapped)["pets"]
    assert (found["a"].name, found["b"].name) == ("b", "a")
    assert "same" not in found
    assert found["GET /c"].name == found["c"].name == "c"


def test_the_level_of_a_pinned_operation_is_that_of_the_import() -> None:
    """Ours: when an import turns a read into a delete, its dependants are dangerous from then on (SAF-1)."""
    pinned = replace(_own("pinned"), refers=("operation:pets:it",))
    for method, level in (("GET", Safety.SAFE), ("DELETE", Safety.DANGEROUS)):
        composed = compose([_operation("op", "it", method=method)], [pinned], ())
        assert composed.tools[1].safety is level


def test_hidden_tools_are_there_for_handlers_and_those_switched_off_are_not() -> None:
    """Ours: an override takes a tool out of the lists, or out of everything (OAS-6)."""
    hidden = _override(_operation("hidden"), make_changes(hidden=True))
    off = _override(_operation("off"), make_changes(enabled=False))
    code = primitives_for(_Code(_added("off"), _added("hidden")), "acme")
    composed = compose([hidden, off, _operation("plain")], [], code)

    assert [tool.name for tool in composed.tools] == ["plain"]
    assert set(composed.unlisted) == {"hidden"}
    assert set(composed.operations["pets"]) == {"hidden", "GET /hidden", "plain", "GET /plain"}
    assert {one.name for one in composed.hidden} == {"off", "hidden"}  # the names are taken all the same


def test_an_old_name_leads_to_its_tool_until_it_is_taken() -> None:
    """Ours: names in force count first, enabled or not, for every owner (OAS-6)."""
    operations = [
        _operation("new"),
        _operation("other"),
        _override(_operation("off"), make_changes(enabled=False)),
        _override(_operation("hidden"), make_changes(hidden=True)),
    ]
    taken = [("other", "GET /new"), ("own", "GET /new"), ("coded", "GET /new"), ("off", "GET /new")]
    aliases = [_alias(name, identity) for name, identity in taken]
    aliases += [_alias("old", "GET /new"), _alias("gone", "GET /gone"), _alias("was_off", "GET /off")]
    aliases += [_alias("was_hidden", "GET /hidden")]
    code = primitives_for(_Code(_added("coded")), "acme")
    composed = compose(operations, [_own("own", is_enabled=False)], code, aliases=aliases)

    assert {name: one.tool.name for name, one in composed.renamed.items()} == {"old": "new", "was_hidden": "hidden"}
    assert composed.operations["pets"]["old"].name == "new"


def test_the_level_of_a_caller_follows_the_override_and_the_old_name() -> None:
    """Ours: steps that call a tool by a name it had are as dangerous as the tool is now (OAS-6)."""
    operation = _override(_operation("new"), make_changes(safety=Safety.DANGEROUS))
    caller = replace(_own("caller"), refers=("tool:old",), safety=Safety.SAFE, assessed=Safety.SAFE)
    composed = compose([operation], [caller], (), aliases=[_alias("old", "GET /new")])

    assert {tool.name: tool.safety for tool in composed.tools} == dict.fromkeys(("caller", "new"), Safety.DANGEROUS)


def test_an_old_name_ends_while_the_snapshot_lasts() -> None:
    """Ours: nothing has to be loaded again for an alias to be over (OAS-6)."""
    tool, now = _operation("new").tool, datetime.now(UTC)
    snapshot = Snapshot(
        tenant=TenantId("ten_1"),
        revision=1,
        policy=Policy(),
        tools=(tool,),
        by_name={"new": tool},
        renamed={
            "old": Renamed(tool=tool, until=now + timedelta(days=1)),
            "over": Renamed(tool=tool, until=now - timedelta(seconds=1)),
        },
    )

    assert (snapshot.called("old"), snapshot.called("over"), snapshot.called("none")) == (tool, None, None)
