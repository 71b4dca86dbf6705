"""Endpoints of the sinks of a tenant's audit trail."""

from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, each
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.list_search import SINKS
from gateway.admin.requests.audit import SinkCreate, SinkListQuery, SinkUpdate
from gateway.admin.responses.audit import SinkPage, SinkShown
from gateway.catalog import audit_sinks
from gateway.catalog.audit_sinks import SinkDraft
from gateway.web.models import NoQuery

_NOUN = Noun(
    singular="audit_sink", path="/tenants/{t}/audit-sinks", key="name", shown=SinkShown, show=each(SinkShown.of)
)


async def create_audit_sink(admin: AdminDependencies, call: AdminRequest[SinkCreate, NoQuery]) -> AdminResponse:
    """Create a sink: deliver the tenant's audit trail to an external system, at least once."""
    body = call.body
    draft = SinkDraft(
        name=body.name,
        kind=body.kind,
        target=body.target,
        credential=body.credential,
        enabled=body.enabled,
        is_whole=body.whole,
    )
    made = await audit_sinks.create_sink(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


async def update_audit_sink(admin: AdminDependencies, call: AdminRequest[SinkUpdate, NoQuery]) -> AdminResponse:
    """Change the target or credential of a sink, or pause it; its position in the trail is kept."""

    def revise(draft: SinkDraft) -> SinkDraft:
        return replace(draft, **call.body.sent())

    update = partial(audit_sinks.update_sink, call.tenant, admin.catalog, call.path["name"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


ENDPOINTS = (
    _NOUN.list_route(
        "List the sinks with the state of their delivery.", audit_sinks.page_sinks, SINKS, SinkListQuery, SinkPage
    ),
    _NOUN.create_route(create_audit_sink, SinkCreate, problems={409, 422, 429}),
    _NOUN.show_route("Show a sink with the state of its delivery.", audit_sinks.get_sink),
    _NOUN.update_route(update_audit_sink, SinkUpdate, problems={422}),
    _NOUN.delete_route("Delete a sink with its position in the trail.", audit_sinks.remove_sink),
)
