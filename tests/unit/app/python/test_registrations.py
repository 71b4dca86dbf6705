"""Primitives registered in Python: their tenants, and that a taken name stays with its owner."""

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.app.python.hidden_names import blocking_lookup
from gateway.app.python.primitives import (
    Extra,
    ExtraPrompt,
    ExtraResource,
    ExtraResourceTemplate,
    ExtraTool,
    to_registration,
)
from gateway.app.python.registrations import Registrations
from gateway.definitions.contract.tools import ToolDefinition
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family, OwnedName
from gateway.domain.results import Messages
from gateway.domain.tenancy.policy import Safety
from gateway.errors import (
    Conflict,
    DatabaseUnavailable,
    DefinitionInvalid,
    DuplicateToolError,
    HandlerFailed,
    HandlerInvalid,
    NameTaken,
    NotFound,
    ToolValidationError,
)
from gateway.handlers.python.context import Context
from gateway.handlers.python.registry import PythonHandler
from gateway.handlers.python.signatures import Completing


def speak(context: Context) -> str:
    return context.tenant


async def speak_async(context: Context) -> str:
    return context.tenant


def speak_more(context: Context, more: int) -> str:
    return f"{context.tenant} {more}"


def speak_in_parts(context: Context) -> Iterator[str]:
    yield context.tenant


def suggest(_: Completing) -> list[str]:
    return ["x"]


def suggest_nothing() -> list[str]:
    return []


def _tool(name: str = "echo", **more: Any) -> ExtraTool:
    members: dict[str, Any] = {"handler": speak, **more}
    return ExtraTool(
        definition={"name": name, "description": "Says it.", "inputSchema": {"type": "object", "properties": {}}},
        **members,
    )


EVERYTHING: tuple[tuple[Family, str, Extra], ...] = (
    (Family.TOOL, "echo", _tool()),
    (
        Family.RESOURCE,
        "docs://readme",
        ExtraResource(definition={"uri": "docs://readme", "name": "readme", "mimeType": "text/plain"}, handler=speak),
    ),
    (
        Family.TEMPLATE,
        "db://rows/{id}",
        ExtraResourceTemplate(
            definition={"uriTemplate": "db://rows/{id}", "name": "row"}, handler=speak, complete=suggest
        ),
    ),
    (Family.PROMPT, "review", ExtraPrompt(definition={"name": "review"}, handler=speak, complete=suggest)),
)


@pytest.mark.parametrize(("family", "name", "extra"), EVERYTHING, ids=lambda value: str(value)[:20])
def test_a_registered_primitive_is_found_by_family_and_name(family: Family, name: str, extra: Extra) -> None:
    """Ours: each family has its own names, and the function is the one that was given (PRG-1)."""
    registrations = Registrations()
    registrations.add(to_registration(extra))
    (shown,) = registrations.primitives()
    found = registrations.find(family, name, "acme")

    assert (shown.family, shown.name, shown.tenants) == (family, name, None)
    assert isinstance(found, PythonHandler)
    assert found.function is speak
    assert (found.complete is suggest) is (family in {Family.TEMPLATE, Family.PROMPT})
    assert all(registrations.find(other, name, "acme") is None for other in Family if other is not family)


def test_an_async_function_is_known_as_one() -> None:
    """Ours: a plain function runs in a thread, an async one on the event loop (PRG-1)."""

    class Callable:
        async def __call__(self, context: Context) -> str:
            return context.tenant

    handlers = [to_registration(_tool(handler=handler)).handler for handler in (speak, speak_async, Callable())]

    assert [getattr(handler, "is_async", None) for handler in handlers] == [False, True, True]


def test_code_is_moderate_by_default() -> None:
    """Ours: the effect of a function is unknown (SAF-1)."""
    unjudged, declared = to_registration(_tool()).primitive, to_registration(_tool(safety="safe")).primitive

    assert unjudged.safety is Safety.MODERATE
    assert declared.safety is Safety.SAFE
    assert unjudged.safety_reasons != declared.safety_reasons


@pytest.mark.parametrize(
    ("wrong", "error", "reported"),
    [
        (_tool(name=""), ToolValidationError, "name"),
        (_tool(handler="no function"), HandlerInvalid, "handler"),
        (_tool(handler=lambda: "x"), HandlerInvalid, "handler"),
        (_tool(handler=speak_more), HandlerInvalid, "handler"),
        (_tool(safety="harmless"), DefinitionInvalid, "safety"),
        (_tool(tenants="acme"), DefinitionInvalid, "tenants"),
        (_tool(tenants=["Not A Slug"]), DefinitionInvalid, "tenants"),
        (_tool(tenants=5), DefinitionInvalid, "tenants"),
        (_tool(tenants=[5]), DefinitionInvalid, "tenants"),
        (_tool(timeout_s=0), HandlerInvalid, "timeout_s"),
        (_tool(timeout_s=math.nan), HandlerInvalid, "timeout_s"),
        (_tool(timeout_s="soon"), HandlerInvalid, "timeout_s"),
        (_tool(handler=speak_in_parts), HandlerInvalid, "generator"),
        (
            ExtraTool(definition=ToolDefinition(name="x", description="x", input_schema={}), handler=speak),
            ToolValidationError,
            "inputSchema",
        ),
        (
            ExtraPrompt(definition={"name": "review"}, handler=speak, complete=suggest_nothing),  # type: ignore[arg-type]  # wrong on purpose
            HandlerInvalid,
            "complete",
        ),
    ],
)
def test_a_contract_violation_is_refused_with_its_field(wrong: Extra, error: type[Exception], reported: str) -> None:
    """Ours: registration checks in full what types cannot (PRG-5, TDF-1)."""
    with pytest.raises(error, match=reported):
        to_registration(wrong)


@pytest.mark.parametrize(("family", "name", "extra"), EVERYTHING, ids=lambda value: str(value)[:20])
def test_a_taken_name_is_refused_and_the_original_stays(family: Family, name: str, extra: Extra) -> None:
    """Ours: the error names what is taken (PRG-4)."""
    registrations = Registrations()
    registrations.add(to_registration(extra))
    before, generation = registrations.find(family, name, "acme"), registrations.generation

    with pytest.raises(NameTaken, match="registered already") as raised:
        registrations.add(to_registration(extra))

    assert name in raised.value.message
    assert registrations.find(family, name, "acme") is before
    assert registrations.generation == generation


def test_a_duplicate_tool_has_its_name() -> None:
    """Ours: DuplicateToolError has `tool_name` (TDF-3)."""
    registrations = Registrations()
    registrations.add(to_registration(_tool()))

    with pytest.raises(DuplicateToolError) as raised:
        registrations.add(to_registration(_tool()))

    assert raised.value.tool_name == "echo"


def test_the_names_of_the_query_tools_are_taken() -> None:
    """Ours: the gateway's own tools cannot be replaced (PRG-4)."""
    with pytest.raises(NameTaken, match="search_endpoints"):
        Registrations().add(to_registration(_tool(name="search_endpoints")))


def test_of_many_at_once_exactly_one_wins() -> None:
    """Ours: concurrent registrations of one name have one winner (PRG-4)."""
    registrations = Registrations()
    extras = [to_registration(_tool()) for _ in range(16)]
    won: list[object] = []
    start = threading.Barrier(len(extras))

    def race(number: int) -> None:
        start.wait()
        try:
            registrations.add(extras[number])
        except DuplicateToolError:
            return
        won.append(extras[number].handler)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(len(extras))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert won == [registrations.find(Family.TOOL, "echo", "acme")]
    assert registrations.generation == 1


def test_every_change_is_notified_and_counted() -> None:
    """Ours: a primitive that is registered or unregistered while serving reaches open connections (PRG-1)."""
    registrations = Registrations()
    notified: list[int] = []
    leave = registrations.subscribe(lambda: notified.append(registrations.generation))
    registrations.add(to_registration(_tool()))
    registrations.remove("echo")
    leave()
    registrations.add(to_registration(_tool()))

    assert notified == [1, 2]
    assert registrations.generation == 3


def test_an_absent_primitive_cannot_be_unregistered() -> None:
    """Ours: a mistyped name is an error, not a silence (PRG-1)."""
    with pytest.raises(NotFound, match="missing"):
        Registrations().remove("missing")


def test_of_two_families_with_one_name_one_must_be_meant() -> None:
    """Ours: nothing is taken out by guessing (PRG-1)."""
    registrations = Registrations()
    registrations.add(to_registration(_tool("review")))
    registrations.add(to_registration(ExtraPrompt(definition={"name": "review"}, handler=speak)))

    with pytest.raises(Conflict, match="tool and a prompt"):
        registrations.remove("review")
    registrations.remove("review", Family.PROMPT)

    assert [shown.family for shown in registrations.primitives()] == [Family.TOOL]


def test_one_name_for_different_tenants_is_two_primitives() -> None:
    """Ours: each tenant runs its own function; a tenant that would have two is refused (PRG-4, TEN-5)."""
    registrations = Registrations()
    registrations.add(to_registration(_tool(tenants=["acme"])))
    registrations.add(to_registration(_tool(tenants=["globex", "initech"], handler=speak_async)))

    found = {slug: registrations.find(Family.TOOL, "echo", slug) for slug in ("acme", "globex", "initech", "other")}
    assert {slug: getattr(kept, "function", None) for slug, kept in found.items()} == {
        "acme": speak,
        "globex": speak_async,
        "initech": speak_async,
        "other": None,
    }
    for tenants in (None, ["globex"], ["other", "acme"]):
        with pytest.raises(DuplicateToolError, match="registered already"):
            registrations.add(to_registration(_tool(tenants=tenants)))
    assert registrations.generation == 2


def test_of_one_name_for_different_tenants_those_that_are_meant_are_taken_out() -> None:
    """Ours: the tenants of its registration distinguish two of one name (PRG-1)."""
    registrations = Registrations()
    registrations.add(to_registration(_tool(tenants=["acme"])))
    registrations.add(to_registration(_tool(tenants=["globex", "initech"])))

    with pytest.raises(Conflict, match="tenants"):
        registrations.remove("echo")
    with pytest.raises(NotFound):
        registrations.remove("echo", tenants=["globex"])
    registrations.remove("echo", tenants=("initech", "globex"))
    assert registrations.find(Family.TOOL, "echo", "globex") is None
    registrations.remove("echo", Family.TOOL)

    assert registrations.primitives() == []


def _owned(slug: str) -> OwnedName:
    return OwnedName(tenant=TenantId(f"ten_{slug}"), slug=slug, family=Family.TOOL, name="echo", owner="source:api")


@pytest.mark.parametrize(
    ("tenants", "owners", "is_refused"),
    [
        (["acme"], ["acme"], True),
        (["acme", "globex"], ["acme", "globex"], True),
        (["acme", "globex"], ["globex"], False),
        (None, ["acme", "globex"], False),
        (["acme"], [], False),
    ],
)
def test_names_of_tenants_are_looked_up_while_the_gateway_serves(
    tenants: list[str] | None, owners: list[str], is_refused: bool
) -> None:
    """Ours: the result names the tenants that hide a registration; one that all would hide is refused (PRG-4)."""
    registrations = Registrations()
    leave = registrations.consult(lambda _: [_owned(slug) for slug in owners])

    if is_refused:
        with pytest.raises(DuplicateToolError, match=r"acme has a tool named 'echo' already \(source:api\)") as raised:
            registrations.add(to_registration(_tool(tenants=tenants)))
        assert (raised.value.tool_name, registrations.generation) == ("echo", 0)
        leave()
        assert registrations.add(to_registration(_tool(tenants=tenants))).hidden_for == ()
        return
    assert registrations.add(to_registration(_tool(tenants=tenants))).hidden_for == tuple(owners)


async def test_while_names_cannot_be_looked_up_nothing_is_registered() -> None:
    """Ours: a registration that cannot be compared with the tenants' names fails, also where an event loop runs
    already, and nothing is half done (PRG-4).
    """
    registrations = Registrations()
    registrations.consult(blocking_lookup("postgresql://gateway_app@127.0.0.1:9/gateway"))

    with pytest.raises(DatabaseUnavailable):
        registrations.add(to_registration(_tool()))

    assert (registrations.generation, registrations.primitives()) == (0, [])


@pytest.mark.parametrize(
    ("hints", "declared", "level"),
    [
        ({}, None, Safety.MODERATE),
        ({"readOnlyHint": True}, None, Safety.SAFE),
        ({"readOnlyHint": False, "destructiveHint": False}, None, Safety.MODERATE),
        ({"readOnlyHint": True, "destructiveHint": True}, None, Safety.DANGEROUS),
        ({"readOnlyHint": True}, "moderate", Safety.MODERATE),
        ({"destructiveHint": True}, "safe", Safety.SAFE),
    ],
)
def test_the_hints_of_own_code_give_its_level(hints: dict[str, bool], declared: str | None, level: Safety) -> None:
    """Ours: the program's own annotations count, and `safety` decides where it is given (SAF-1)."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    definition: Any = {"description": "Says it.", "inputSchema": schema, "annotations": hints}
    primitive = to_registration(ExtraTool(name="echo", definition=definition, handler=speak, safety=declared)).primitive

    assert (primitive.name, primitive.safety) == ("echo", level)
    assert "declare" in primitive.safety_reasons[0]


@pytest.mark.parametrize(
    "extra",
    [
        _tool(name="other"),
        ExtraResource(uri="docs://b", definition={"uri": "docs://a", "name": "a"}, handler=speak),
        ExtraResourceTemplate(
            uri_template="b://{i}", definition={"uriTemplate": "a://{i}", "name": "a"}, handler=speak
        ),
        ExtraPrompt(name="b", definition={"name": "a"}, handler=speak),
    ],
    ids=lambda extra: type(extra).__name__,
)
def test_a_name_beside_the_definition_is_the_one_in_it(extra: Extra) -> None:
    """Ours: extras have the parameters of `register_tool` and its siblings (PRG-2)."""
    if isinstance(extra, ExtraTool):
        extra = replace(extra, name="another")
    with pytest.raises(DefinitionInvalid, match="but it is registered as"):
        to_registration(extra)


def test_constant_messages_of_the_role_system_are_refused_where_they_are_declared() -> None:
    """Ours: MCP has no such role (PRM-2)."""
    with pytest.raises(HandlerFailed, match="/messages/1/role: must be user or assistant"):
        Messages(messages=({"role": "user"}, {"role": "system"}))
