"""Doctor check for stored handlers that can never return a valid result.

An older gateway version stored them; this version refuses such handlers. Each call fails until the tenant replaces the
handler.
"""

from collections.abc import Sequence

import anyio
import msgspec

from gateway.catalog.doctor.limits import MAX_NAMED, TIMEOUT_S
from gateway.definitions.contract.prompts import PromptDefinition
from gateway.definitions.contract.resources import ResourceDefinition, ResourceTemplateDefinition
from gateway.definitions.contract.tools import ToolDefinition
from gateway.definitions.excerpts import shorten
from gateway.definitions.handlers.output_contracts import Definition, find_faults
from gateway.definitions.handlers.parser import parse_handler
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.domain.json_access import as_object
from gateway.domain.json_text import decode_object
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import BadInput, GatewayError
from gateway.store import primitives, tenants
from gateway.store.engine import Store

_PAGE = 200
_REMEDY = (
    "each call fails until the handler is replaced; `gateway tool validate FILE`, or the same command of resource, "
    "resource-template or prompt, lists the faults"
)


async def check_handlers(store: Store) -> Finding:
    """Finding on the stored handlers of all tenants, checked against their output contracts like new handlers.

    After 15 s, the remaining tenants are skipped, and the finding reports the timeout.
    """
    examined, broken = 0, list[str]()
    try:
        with anyio.move_on_after(TIMEOUT_S) as scope:
            for tenant in await all_tenants(store):
                async with store.transaction(tenant.id) as db:
                    own = await primitives.load(tenant.id, db)
                broken += await run_in_thread(CATALOG_CHANGES, tenant.id, _find_broken, tenant.slug, own)
                examined += len(own)
    except GatewayError as error:
        return warning("handlers", f"not examined: {error.message}", "fix the findings on the database first")
    examined_text = f"{examined} examined" + (", the rest skipped after a timeout" if scope.cancelled_caught else "")
    if not broken:
        return fine("handlers", f"every stored handler is valid ({examined_text})")
    detail = f"stored handlers that always fail: {list_names(broken, limit=MAX_NAMED)} ({examined_text})"
    return warning("handlers", detail, _REMEDY)


async def all_tenants(store: Store) -> Sequence[Tenant]:
    """Read all tenants, page by page."""
    found = list[Tenant]()
    while True:
        async with store.unscoped() as db:
            page = await tenants.page(db, after=found[-1].slug if found else None, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


def _find_broken(slug: str, own: Sequence[Primitive]) -> Sequence[str]:
    """Tenant, primitive and location of the first fault, for each handler that cannot return a valid result."""
    found = [(primitive, _first_fault(primitive)) for primitive in own]
    return [f"{slug}: {_label(primitive)} ({shorten(pointer)})" for primitive, pointer in found if pointer is not None]


def _label(primitive: Primitive) -> str:
    """Family and name of the primitive. A URI may contain data of the tenant, so the id replaces it."""
    is_named = primitive.family in {Family.TOOL, Family.PROMPT}
    return f"{primitive.family.replace('_', ' ')} {primitive.name if is_named else primitive.id}"


def _first_fault(primitive: Primitive) -> str | None:
    """Pointer to the first fault that prevents every valid result; None if there is none."""
    try:
        spec = parse_handler(decode_object(primitive.handler), primitive.family)
        faults = find_faults(_definition_of(primitive), spec)
    except BadInput as wrong:
        return wrong.faults[0].pointer if wrong.faults else "/handler"
    except msgspec.MsgspecError:
        return "/handler"
    return faults[0].pointer if faults else None


def _definition_of(primitive: Primitive) -> Definition:
    """The members of a stored definition that constrain results; all members were validated when it was stored."""
    list_names = decode_object(primitive.definition)
    mime_type = list_names.get("mimeType")
    kind = mime_type if isinstance(mime_type, str) else None
    match primitive.family:
        case Family.TOOL:
            schemas = (as_object(list_names.get("inputSchema")) or {}, as_object(list_names.get("outputSchema")))
            return ToolDefinition(
                name=primitive.name, description="", input_schema=schemas[0], output_schema=schemas[1]
            )
        case Family.RESOURCE:
            return ResourceDefinition(uri=primitive.name, name="", mime_type=kind)
        case Family.TEMPLATE:
            return ResourceTemplateDefinition(uri_template=primitive.name, name="", mime_type=kind)
        case Family.PROMPT:
            return PromptDefinition(name=primitive.name)
