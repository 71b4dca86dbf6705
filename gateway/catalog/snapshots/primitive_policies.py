"""The policy and the guardrails of each primitive of a snapshot."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from gateway.catalog.origins import find_origin
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.definitions.policy.paths import readings_of_uri
from gateway.definitions.policy.primitive_policy import PolicySubject, PrimitivePolicy, find_policy
from gateway.domain.json_text import decode_object
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tools import PrimitiveOrigin, Tool


class _CalledOperation(msgspec.Struct):
    """The members of a declared handler that name the called operation."""

    kind: str = ""
    source: str = ""
    operation: str = ""


_ARGUMENTS_OF_OPERATIONS = ("/arguments",)
"""The argument of `call_endpoint` that contains the arguments of the operation."""
_decode_called = msgspec.json.Decoder(_CalledOperation).decode


def policy_of(snapshot: Snapshot, item: Tool | Primitive, profile: str, uri: str | None = None) -> PrimitivePolicy:
    """Return the policy of a primitive in a profile; for a template, `uri` is the URI that is read."""
    return find_policy(snapshot.policy, subject_of(snapshot, item, uri), profile)


def subject_of(snapshot: Snapshot, item: Tool | Primitive, uri: str | None = None) -> PolicySubject:
    """Return the attributes that rules test; without rules, only those that determine the safety level."""
    counted = item.level  # guard: counted-level
    found = PolicySubject(names=(), source="", level=counted, basis=_basis(item))
    if not snapshot.policy.rules and not snapshot.policy.recorded_arguments:
        return found
    operation = operation_of(snapshot, item)
    pinned = item.pinned if isinstance(item, Tool) else b""
    return replace(
        found,
        names=_names(snapshot, item),
        source=item.source_name,
        operation_names=() if operation is None else _names(snapshot, operation),
        operation_source="" if operation is None else operation.source_name,
        readings=() if uri is None else readings_of_uri(uri),
        fixed=decode_object(pinned) if pinned else {},
        unrecorded=_ARGUMENTS_OF_OPERATIONS if item.origin is PrimitiveOrigin.BUILTIN else (),  # guard: recorded-inner
    )


def guardrails_of(snapshot: Snapshot, item: Tool | Primitive) -> tuple[Guardrail, ...]:
    """Return the guardrails that check a primitive or the operation that it runs, in order."""
    if not snapshot.guardrails:
        return ()
    checks = [_bar_forbidden_hook(one, snapshot.http_origins) for one in snapshot.guardrails]
    checked = forms_of(snapshot, item)
    if (operation := operation_of(snapshot, item)) is not None:
        checked = [*checked, *forms_of(snapshot, operation)]
    # guard: guardrail-alias
    return tuple(one for one in checks if any(one.covers(each) for each in checked))


def forms_of(snapshot: Snapshot, item: Tool | Primitive) -> Sequence[Tool | Primitive]:
    """Return a primitive under each name that rules may use: its current name, and old names that can still be
    called.
    """
    return [item, *(replace(item, name=old) for old in _old_names(snapshot, item))]  # guard: guardrail-renamed


def _bar_forbidden_hook(guardrail: Guardrail, origins: Collection[str] | None) -> Guardrail:
    hook = guardrail.hook
    if origins is None or hook is None or find_origin(hook.url) in origins:
        return guardrail
    return replace(guardrail, is_barred=True)


def operation_of(snapshot: Snapshot, item: Tool | Primitive) -> Tool | None:
    """Return the imported operation that a declared primitive runs under another name."""
    if not item.handler:
        return None
    try:
        called = _decode_called(item.handler)
    except msgspec.MsgspecError:  # a tool that cannot be built cannot run
        return None
    return snapshot.operation(called.source, called.operation) if called.kind == "openapi" else None


def _names(snapshot: Snapshot, item: Tool | Primitive) -> tuple[str, ...]:
    """The names that rules can use, including an old name that can still be called."""
    names = (item.name, item.identity) if isinstance(item, Tool) and item.identity else (item.name,)
    return (*names, *_old_names(snapshot, item))  # guard: policy-renamed


def _old_names(snapshot: Snapshot, item: Tool | Primitive) -> Sequence[str]:
    return snapshot.old_names.get((item.source_name, item.name), ()) if isinstance(item, Tool) else ()


def _basis(item: Tool | Primitive) -> str:
    if item.counted is not None and item.counted is not item.safety:
        return "the level of the operation that it runs"
    return "assessed" if item.levels is None else f"declared; assessed as {item.levels[1]}"
