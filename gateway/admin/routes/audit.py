"""Endpoints of a tenant's audit trail."""

from functools import partial

from gateway.admin.crud import endpoint
from gateway.admin.endpoint import READ_AUDIT, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.limits import WorkKind
from gateway.admin.pagination import read_page
from gateway.admin.requests.models import AuditQuery, NoBody, NoQuery
from gateway.admin.responses.audit import TrailVerified
from gateway.admin.responses.models import EntryPage, EntryShown
from gateway.catalog import audit
from gateway.domain.audit import AuditFilter


async def list_entries(admin: AdminDependencies, call: AdminRequest[NoBody, AuditQuery]) -> AdminResponse:
    """List what was done in the tenant, by whom, with what outcome; the newest first."""
    query = call.query
    wanted = AuditFilter(
        kind=query.kind, principal=query.principal, tool=query.tool, since=query.since, until=query.until
    )
    read = partial(audit.page_entries, call.tenant, admin.catalog, wanted)
    shown, cursor = await read_page(admin.cursors, call.tenant, "audit", query, read=read, key=audit.position_of)
    return AdminResponse(content=EntryPage(items=[EntryShown.of(entry) for entry in shown], next_cursor=cursor))


async def verify_audit(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Verify that no entry of the tenant's audit trail was changed, put in or taken out."""
    return AdminResponse(content=TrailVerified.of(await admin.verifier.verify(call.tenant)))


ENDPOINTS = (
    endpoint("GET", "/tenants/{t}/audit", list_entries, NoBody, AuditQuery, {200: EntryPage}, scopes=READ_AUDIT),
    endpoint(
        "GET",
        "/tenants/{t}/audit/verify",
        verify_audit,
        NoBody,
        NoQuery,
        {200: TrailVerified},
        scopes=READ_AUDIT,
        work=WorkKind.CHECK,
    ),
)
