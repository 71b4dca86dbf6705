"""Endpoints for test calls by an admin.

The call passes the same checks as a client's call, and can also reach tools that an override hides from clients. The
response contains the result and the upstream request.
"""

from collections.abc import Mapping
from typing import Any

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Options, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, AnyRequest
from gateway.admin.requests.primitives import PromptTry, ToolTry, UriQuery
from gateway.admin.responses.primitives import TrialShown, TriedRequest
from gateway.admin.routes.limits import MAX_SHOWN_BODY_BYTES
from gateway.calls import result_rendering
from gateway.catalog.primitives.queries import get_listed
from gateway.catalog.tenants import get_tenant
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import KeyId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import ArgumentsInvalid, Conflict, CredentialMissing, Fault, NotFound
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import Handler, Prepared
from gateway.web.models import NoBody, NoQuery


async def try_tool(admin: AdminDependencies, call: AdminRequest[ToolTry, NoQuery]) -> AdminResponse:
    """Call a tool with all checks, and show the request and the result."""
    principal, name = await trial_principal(admin, call), call.path["name"]
    async with admin.connections.open(principal) as registry:
        bound = await registry.inner_tool(name)
        bound = bound or await registry.inner_tool(await _name_of(admin, call, Family.TOOL, name))
        if bound is None:
            raise NotFound("no such tool")
        prepared = await _prepare_tool(admin, bound, call.body.arguments)
        correlation_id = call.by.correlation_id
        members = await admin.calls.run(
            principal, bound, call.body.arguments, correlation_id=correlation_id, lookup=registry
        )
        summary = await _summarise(bound.handler, prepared)
    result = await run_large(call.tenant, len(members), result_rendering.decode, members)
    return _to_response(prepared, summary, result)


async def try_resource(admin: AdminDependencies, call: AdminRequest[NoBody, UriQuery]) -> AdminResponse:
    """Read a resource, fixed or of a template, with all checks."""
    principal, uri = await trial_principal(admin, call), call.query.uri
    async with admin.connections.open(principal) as registry:
        bound = await registry.resource(uri)
        if bound is None:
            await _name_of(admin, call, Family.RESOURCE, uri)
            raise NotFound("no such resource")
        prepared = await admin.calls.acceptance.prepare(bound, bound.handler.settle(bound.variables))
        correlation_id = call.by.correlation_id
        found = await admin.calls.read(principal, bound, correlation_id=correlation_id, lookup=registry)
        summary = await _summarise(bound.handler, prepared)
    return _to_response(prepared, summary, {"contents": list(found.contents)})


async def try_prompt(admin: AdminDependencies, call: AdminRequest[PromptTry, NoQuery]) -> AdminResponse:
    """Get a prompt with all checks, and show the request and the messages."""
    principal, name = await trial_principal(admin, call), call.path["name"]
    async with admin.connections.open(principal) as registry:
        bound = await registry.prompt(name) or await registry.prompt(await _name_of(admin, call, Family.PROMPT, name))
        if bound is None:
            raise NotFound("no such prompt")
        arguments, correlation_id = call.body.arguments, call.by.correlation_id
        got = await admin.calls.get_prompt(principal, bound, arguments, correlation_id=correlation_id, lookup=registry)
        prepared = await admin.calls.acceptance.prepare(bound, bound.handler.settle(arguments))
        summary = await _summarise(bound.handler, prepared)
    described = {} if got.description is None else {"description": got.description}
    return _to_response(prepared, summary, {**described, "messages": list(got.messages)})


async def trial_principal(admin: AdminDependencies, call: AnyRequest) -> Principal:
    """Return the principal for the audit trail and the limits: the caller's key or `operator`, with the MCP scope."""
    caller = call.by.caller
    tenant = await get_tenant(call.tenant, admin.catalog)
    key, subject = (caller.key, caller.subject) if isinstance(caller, Principal) else (KeyId("operator"), "operator")
    return Principal(tenant=tenant.id, slug=tenant.slug, key=key, subject=subject, scopes=frozenset({Scope.MCP}))


async def _name_of(admin: AdminDependencies, call: AnyRequest, family: Family, name: str) -> str:
    """Return the name of the primitive with this name or id.

    Raises:
        NotFound: no primitive has this name or id.
        Conflict: the primitive is disabled.
    """
    listed = await get_listed(call.tenant, admin.catalog, family, name, takes_old_names=True)
    if not listed.is_enabled:
        raise Conflict(f"the {family.replace('_', ' ')} is switched off; enable it to try it")
    return listed.name


async def _prepare_tool(admin: AdminDependencies, bound: BoundTool, given: Mapping[str, object]) -> Prepared:
    try:
        arguments = await admin.calls.acceptance.accept(bound, bound.handler.settle(given))
    except ArgumentsInvalid as error:
        faults = [Fault(pointer=f"/arguments{fault.pointer}", reason=fault.reason) for fault in error.faults]
        raise ArgumentsInvalid(error.message, faults=faults) from None
    return await admin.calls.acceptance.prepare(bound, arguments)


async def _summarise(handler: Handler[Any], prepared: Prepared) -> str:
    """Summarize the call: one line for a single request, otherwise a preview of every request of the handler."""
    if prepared.request is not None:
        return prepared.summary
    try:
        return await handler.preview(prepared)
    except CredentialMissing:  # the result of the call contains this error
        return prepared.summary


def _to_response(prepared: Prepared, summary: str, result: Mapping[str, object]) -> AdminResponse:
    return AdminResponse(content=TrialShown(request=show_request(prepared, summary), result=result))


def show_request(prepared: Prepared, summary: str) -> TriedRequest:
    """Show the prepared call before credentials are added."""
    request = prepared.request
    if request is None:
        return TriedRequest(summary=summary, method=None, url=None, headers=[], body=None)
    return TriedRequest(
        summary=summary,
        method=request.method,
        url=request.url,
        headers=request.headers,
        body=None if request.body is None else _text(request.body),
    )


def _text(body: bytes) -> str:
    try:
        text = body[:MAX_SHOWN_BODY_BYTES].decode()
    except UnicodeDecodeError:
        return f"({len(body)} bytes)"
    return text if len(body) <= MAX_SHOWN_BODY_BYTES else f"{text}… ({len(body)} bytes)"


_TRIED = {200: TrialShown}
_TRY = Options(problems={409, 422, 429, 502, 504}, work=WorkKind.OUTBOUND)

ENDPOINTS = (
    endpoint("POST", "/tenants/{t}/tools/{name}/try", try_tool, ToolTry, query=NoQuery, responses=_TRIED, **_TRY),
    endpoint("POST", "/tenants/{t}/resources/try", try_resource, NoBody, query=UriQuery, responses=_TRIED, **_TRY),
    endpoint("POST", "/tenants/{t}/prompts/{name}/try", try_prompt, PromptTry, query=NoQuery, responses=_TRIED, **_TRY),
)
