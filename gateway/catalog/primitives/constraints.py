"""Checks of a primitive against its tenant's catalog: name, limit, and the objects that its handler references.

A caller that stores the primitive runs the checks inside the same change, under the lock on the tenant's row. So the
result is still valid at the commit.
"""

from collections.abc import Mapping, Sequence

from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.live.visible_primitives import visible_live
from gateway.catalog.origins import find_origin
from gateway.catalog.primitives.safety_levels import tool_levels
from gateway.catalog.snapshots.composition import index_operations
from gateway.catalog.snapshots.python_primitives import primitives_for
from gateway.catalog.transaction import CatalogContext
from gateway.definitions.limits import MAX_FAULTS
from gateway.definitions.uri.shapes import shape_of
from gateway.domain.credentials import StoredCredential
from gateway.domain.identifiers import PrimitiveId, TenantId
from gateway.domain.json_access import as_object, point
from gateway.domain.json_text import decode_json
from gateway.domain.primitives import CalledTool, Family, OriginRequest, PinnedOperation, Primitive, Reference
from gateway.domain.tenancy.own_primitives import OwnPrimitive, key_of
from gateway.domain.tenancy.policy import Policy
from gateway.domain.tools import Tool
from gateway.errors import Fault, LimitExceeded, NameConflict, NameTaken, NotFound, ReferenceMissing
from gateway.openapi.operation.names import RESERVED
from gateway.store import operations, primitives
from gateway.store.engine import Db
from gateway.store.kinds.credentials import CREDENTIALS
from gateway.store.kinds.primitives import ROWS, TOOLS
from gateway.store.kinds.tenants import TENANTS
from gateway.store.sources import sources


async def check_fit(
    tenant: TenantId, catalog: CatalogContext, db: Db, ready: OwnPrimitive, *, own: OwnPrimitive | None
) -> None:
    """Refuse a primitive that cannot be stored; `own` is the stored primitive that it replaces.

    Raises:
        NotFound: the tenant does not exist.
        NameTaken: another primitive has the name, or another template has the same shape.
        LimitExceeded: the tenant has reached its limit of primitives.
        ReferenceMissing: the handler names a missing or forbidden object; the faults point at the first 20.
    """
    code = await code_of(tenant, catalog, db)
    policy = await policy_in_force(tenant, db, catalog.options.ceilings)
    if own is None or key_of(own) != key_of(ready):
        await _refuse_taken(tenant, db, ready, code, own=None if own is None else own.id)
    if own is None:
        await check_capacity(tenant, db, policy, wanted=1)
    known = await _look_up(tenant, db, ready.references, code)
    faults = [fault for reference in ready.references for fault in _reference_faults(reference, ready, known, policy)]
    if faults:
        raise ReferenceMissing(f"{faults[0].pointer}: {faults[0].reason}", faults=faults[:MAX_FAULTS])


async def check_capacity(tenant: TenantId, db: Db, policy: Policy, *, wanted: int, freed: int = 0) -> None:
    """Refuse `wanted` more primitives if they exceed the policy's limit for all families, imports and live sources.

    `freed` stored primitives are subtracted, because the caller removes them.

    Raises:
        LimitExceeded: they would exceed the limit.
    """
    allowed = policy.limits.primitives
    existing = await primitives.count(tenant, db) - freed
    if existing + wanted > allowed:  # guard: primitives-limit
        raise LimitExceeded(
            f"the tenant has {existing} of at most {allowed} primitives; {wanted} more exceed the limit"
        )


async def refuse_tool_name(tenant: TenantId, catalog: CatalogContext, db: Db, name: str) -> None:
    """Refuse a tool name that is taken.

    Raises:
        NameTaken: a tool has the name, enabled or not, or an override or the gateway reserves it.
    """
    owner = await _tool_owner(tenant, db, name)
    if owner is None and any(
        (one.family, one.name) == (Family.TOOL, name) for one in await code_of(tenant, catalog, db)
    ):
        owner = "code"
    if owner is None:
        found = await TOOLS.get(tenant, db, name)
        owner = "custom" if found is not None and found.name == name else None
    if owner is not None:
        raise NameTaken(f"the tool name {name} is taken by {owner}", conflicts=[NameConflict(name=name, owner=owner)])


async def code_of(tenant: TenantId, catalog: CatalogContext, db: Db) -> Sequence[Primitive]:
    """The tenant's Python primitives.

    Raises:
        NotFound: primitives are registered, but the tenant does not exist.
    """
    if catalog.code is None or not catalog.code.primitives():
        return ()
    found = await TENANTS.get(tenant, db, tenant)
    if found is None:
        raise NotFound("no such tenant")
    return primitives_for(catalog.code, found.slug)


async def _refuse_taken(
    tenant: TenantId, db: Db, ready: OwnPrimitive, code: Sequence[Primitive], *, own: PrimitiveId | None
) -> None:
    owner = await _owner(tenant, db, ready, own=own)
    if owner is None and any((one.family, one.name) == (ready.family, key_of(ready)) for one in code):
        owner = "code"
    if owner is not None:
        noun = ready.family.replace("_", " ")
        conflict = NameConflict(name=key_of(ready), owner=owner)
        raise NameTaken(f"the {noun} {key_of(ready)[:200]} is taken by {owner}", conflicts=[conflict])


async def _owner(tenant: TenantId, db: Db, ready: OwnPrimitive, *, own: PrimitiveId | None) -> str | None:
    """The owner of the name: `builtin`, `source:NAME` or `custom`; `custom:TEMPLATE` for a template of equal shape."""
    if ready.family is Family.TOOL and (owner := await _tool_owner(tenant, db, key_of(ready))) is not None:
        return owner
    if ready.family is not Family.TEMPLATE:
        found = await ROWS[ready.family].get(tenant, db, key_of(ready))
        return None if found is None or found.id == own or key_of(found) != key_of(ready) else "custom"
    named = await primitives.names(tenant, db, ready.family)
    shape = shape_of(key_of(ready))
    same = next((name for name, found in named.items() if found != own and shape_of(name) == shape), None)
    return None if same is None else "custom" if same == key_of(ready) else f"custom:{same}"


async def _tool_owner(tenant: TenantId, db: Db, name: str) -> str | None:
    """The owner of the name among built-in and imported tools: `builtin` or `source:NAME`."""
    if name in RESERVED:
        return "builtin"
    source = await operations.owner(tenant, db, name)
    return None if source is None else f"source:{source}"


class _TenantNames:
    """Objects of the tenant against which the references of a handler are checked."""

    def __init__(self) -> None:
        self.tools: set[str] = set()
        self.sources: set[str] = set()
        self.operations: Mapping[str, Mapping[str, Tool]] = {}
        self.credentials: dict[str, StoredCredential] = {}


async def _look_up(
    tenant: TenantId, db: Db, references: Sequence[Reference], code: Sequence[Primitive]
) -> _TenantNames:
    known = _TenantNames()
    called_names = {one.name for one in references if isinstance(one, CalledTool)}
    pinned = [one for one in references if isinstance(one, PinnedOperation)]
    credential_names = {
        one.credential for one in references if isinstance(one, OriginRequest) and one.credential is not None
    }
    if called_names:
        own_primitives = [*code, *await visible_live(tenant, db, code), *await primitives.tool_levels(tenant, db)]
        known.tools = {
            *await tool_levels(tenant, db, called_names),
            *(one.name for one in own_primitives if one.family is Family.TOOL),
        }
    if pinned:
        names = {one.source for one in pinned}
        known.sources = {name for name in names if await sources.get(tenant, db, name) is not None}
        found = await operations.find(tenant, db, names, {one.operation for one in pinned})
        known.operations = index_operations(found)
    for name in credential_names:
        credential = await CREDENTIALS.get(tenant, db, name)
        if credential is not None and credential.name == name:
            known.credentials[name] = credential
    return known


def _reference_faults(
    reference: Reference, ready: OwnPrimitive, known: _TenantNames, policy: Policy
) -> Sequence[Fault]:
    match reference:
        case CalledTool():
            return _tool_faults(reference, ready, known)
        case PinnedOperation():
            return _operation_faults(reference, known)
        case OriginRequest():
            return _request_faults(reference, known, policy)


def _tool_faults(reference: CalledTool, ready: OwnPrimitive, known: _TenantNames) -> Sequence[Fault]:
    if ready.family is Family.TOOL and reference.name == key_of(ready):
        return [Fault(pointer=reference.pointer, reason="the tool would call itself")]
    if reference.name not in known.tools:
        return [Fault(pointer=reference.pointer, reason=f"the tenant has no tool {reference.name[:100]}")]
    return []


def _operation_faults(reference: PinnedOperation, known: _TenantNames) -> Sequence[Fault]:
    if reference.source not in known.sources:
        return [
            Fault(pointer=f"{reference.pointer}/source", reason=f"the tenant has no source {reference.source[:100]}")
        ]
    operation = known.operations.get(reference.source, {}).get(reference.operation)
    if operation is not None:
        return _argument_faults(reference, operation)
    reason = "the source has no such operation or several of them; use the operationId, `METHOD path` or tool name"
    return [Fault(pointer=f"{reference.pointer}/operation", reason=reason)]


def _argument_faults(reference: PinnedOperation, operation: Tool) -> Sequence[Fault]:
    """Faults for names that are not arguments of the operation, if the operation refuses unknown arguments."""
    input_schema: Mapping[str, object] = decode_json(operation.definition)["inputSchema"]
    known = as_object(input_schema.get("properties")) or {}
    if input_schema.get("additionalProperties") is not False:
        return []
    listed_names = ", ".join(list(known)[:MAX_FAULTS]) or "none"
    return [
        Fault(
            pointer=reference.pointer + point("arguments", name),
            reason=f"is not an argument of the operation; its arguments: {listed_names}",
        )
        for name in reference.arguments
        if name not in known
    ]


def _request_faults(reference: OriginRequest, known: _TenantNames, policy: Policy) -> Sequence[Fault]:
    faults: list[Fault] = []
    origin = find_origin(reference.origin)
    if origin is None:
        faults.append(
            Fault(pointer=f"{reference.pointer}/url", reason="not a host that the gateway can send requests to")
        )
    elif policy.http_origins is not None and origin not in policy.http_origins:
        reason = f"the tenant's policy does not allow requests to {origin}; `http_origins` lists the permitted origins"
        faults.append(Fault(pointer=f"{reference.pointer}/url", reason=reason))
    if reference.credential is not None:
        pointer = f"{reference.pointer}/credential"
        credential = known.credentials.get(reference.credential)
        if credential is None:
            faults.append(Fault(pointer=pointer, reason=f"the tenant has no credential {reference.credential[:100]}"))
        elif origin not in credential.origins:
            faults.append(Fault(pointer=pointer, reason=f"the credential may not be sent to {origin}"))
    return faults
