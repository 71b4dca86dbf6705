"""Endpoints of a tenant's audit trail."""

from functools import partial
from inspect import getdoc
from typing import TypedDict, Unpack

from pydantic import BaseModel

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Q, endpoint
from gateway.admin.endpoint import (
    OPERATOR_ONLY,
    READ_AUDIT,
    AdminDependencies,
    AdminRequest,
    AdminResponse,
    Handle,
    Plain,
    Route,
)
from gateway.admin.pagination import read_page
from gateway.admin.requests.audit import (
    AuditFilters,
    AuditQuery,
    ExplainQuery,
    RetentionQuery,
    TailQuery,
)
from gateway.admin.responses.audit import (
    EntriesExplained,
    EntryExplained,
    EntryPage,
    EntryShown,
    ExportKeyShown,
    ExportKeysShown,
    ExportLine,
    TrailVerified,
)
from gateway.admin.responses.audit_explanations import explain_entry
from gateway.admin.routes.limits import MAX_EXPLAINED
from gateway.admin.singletons import SingletonEndpoints
from gateway.catalog import audit
from gateway.catalog.audit_retention import read_status
from gateway.catalog.kinds.singletons import RETENTION
from gateway.catalog.transaction import ensure_installation
from gateway.domain.audit import AuditFilter
from gateway.errors import NotFound
from gateway.web.models import NoBody, NoQuery


async def list_entries(admin: AdminDependencies, call: AdminRequest[NoBody, AuditQuery]) -> AdminResponse:
    """List the entries of the tenant's audit trail, newest first."""
    query = call.query
    read = partial(audit.page_entries, call.tenant, admin.catalog, query.as_filter())
    shown, cursor = await read_page(admin.cursors, call.tenant, "audit", query, read=read, key=audit.position_of)
    return AdminResponse(content=EntryPage(items=[EntryShown.of(entry) for entry in shown], next_cursor=cursor))


async def explain_entries(admin: AdminDependencies, call: AdminRequest[NoBody, ExplainQuery]) -> AdminResponse:
    """Explain an entry, or the entries of a request: the rule that decided then, from what the entries hold."""
    of = call.query.of
    is_id = of is not None and of.startswith("aud_")
    wanted = AuditFilter(id=of) if is_id else AuditFilter(correlation_id=of)
    found = await audit.page_entries(call.tenant, admin.catalog, wanted, after=None, limit=MAX_EXPLAINED)
    if not found:
        raise NotFound("no such entry; entries of the last milliseconds of another replica may follow")
    items = [EntryExplained(entry=EntryShown.of(one), explanation=explain_entry(one)) for one in reversed(found)]
    return AdminResponse(content=EntriesExplained(items=items))


async def verify_audit(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Verify that no entry of the tenant's audit trail was changed, inserted or removed."""
    return AdminResponse(content=TrailVerified.of(await admin.verifier.verify(call.tenant)))


async def export_audit(admin: AdminDependencies, call: AdminRequest[NoBody, AuditFilters]) -> AdminResponse:
    """Export the tenant's audit trail as signed lines of JSON, which `gateway.cli.audit_verifier` verifies offline.

    Without a filter, the entire trail is verified during the export.
    """
    return AdminResponse(lines=admin.exporter.export(call.tenant, call.query.as_filter()))


async def follow_audit(admin: AdminDependencies, call: AdminRequest[NoBody, TailQuery]) -> AdminResponse:
    """Follow the tenant's audit trail: one line for each committed entry, and an empty line as keep-alive."""
    return AdminResponse(lines=admin.exporter.follow(call.tenant, call.query.since, for_s=call.query.for_s))


async def list_export_keys(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """List the public keys (Ed25519) of the tenant's exports; the first one signs new exports."""
    found = await admin.exporter.public_keys(call.tenant)
    keys = [ExportKeyShown(id=key.id, public=key.public.hex()) for key in found]
    return AdminResponse(content=ExportKeysShown(tenant=call.tenant, keys=keys))


async def get_retention(admin: AdminDependencies, call: AdminRequest[NoBody, RetentionQuery]) -> AdminResponse:
    """Show the retention of audit entries, the removed entries, and the entries that are removable now."""
    found = await RETENTION.show(call.tenant, admin.catalog, compute=partial(read_status, days=call.query.days))
    return AdminResponse(content=_RETENTION.models.show(found.one, found.status), tag=found.tag)


_RETENTION = SingletonEndpoints(single=RETENTION)


class _More(TypedDict, total=False):
    """Options of single routes."""

    work: WorkKind
    media_type: str


def _reads(
    path: str, handle: Handle[NoBody, Q], query: type[Q], response: type[BaseModel], **more: Unpack[_More]
) -> Route:
    """A route that reads the trail, also that of a deleted tenant."""
    return endpoint(
        "GET",
        path,
        handle,
        NoBody,
        query=query,
        responses={200: response},
        scopes=READ_AUDIT,
        reads_trail=True,
        problems={409},
        **more,
    )


_NO_PROBLEMS = frozenset[int]()


def _of_installation(
    path: str,
    handle: Handle[NoBody, Q],
    query: type[Q],
    response: type[BaseModel],
    *,
    problems: frozenset[int] = _NO_PROBLEMS,
    **more: Unpack[_More],
) -> Route:
    """A route that reads the trail of the installation, which begins with its first reading at the latest."""

    async def run(admin: AdminDependencies, call: AdminRequest[NoBody, Q]) -> AdminResponse:
        await ensure_installation(admin.catalog)
        return await handle(admin, call)

    called: str = getattr(handle, "__name__")  # noqa: B009  # functions have it; other callables may not
    verb, _, noun = called.partition("_")
    summary = (getdoc(handle) or "").partition("\n\n")[0].replace("the tenant's", "the installation's")
    return endpoint(
        "GET",
        path,
        run,
        NoBody,
        query=query,
        responses={200: response},
        called=f"{verb}_installation_{noun}",
        summary=" ".join(summary.split()),
        scopes=OPERATOR_ONLY,  # guard: installation-trail-of-operators
        problems=problems,
        **more,
    )


ENDPOINTS = (
    _of_installation("/audit", list_entries, AuditQuery, EntryPage),
    _of_installation("/audit/explain", explain_entries, ExplainQuery, EntriesExplained, problems=frozenset({404})),
    _of_installation("/audit/verify", verify_audit, NoQuery, TrailVerified, work=WorkKind.CHECK),
    _of_installation("/audit/export", export_audit, AuditFilters, ExportLine, media_type="application/jsonl"),
    _of_installation("/audit/tail", follow_audit, TailQuery, ExportLine, media_type="application/jsonl"),
    _of_installation("/audit/export-keys", list_export_keys, NoQuery, ExportKeysShown),
    _reads("/tenants/{t}/audit", list_entries, AuditQuery, EntryPage),
    _reads("/tenants/{t}/audit/explain", explain_entries, ExplainQuery, EntriesExplained),
    _reads("/tenants/{t}/audit/verify", verify_audit, NoQuery, TrailVerified, work=WorkKind.CHECK),
    _reads("/tenants/{t}/audit/export", export_audit, AuditFilters, ExportLine, media_type="application/jsonl"),
    endpoint(
        "GET",
        "/tenants/{t}/audit/tail",
        follow_audit,
        NoBody,
        query=TailQuery,
        responses={200: ExportLine},
        scopes=READ_AUDIT,
        media_type="application/jsonl",
    ),
    _reads("/tenants/{t}/audit/export-keys", list_export_keys, NoQuery, ExportKeysShown),
    endpoint(
        "GET",
        _RETENTION.path,
        get_retention,
        NoBody,
        query=RetentionQuery,
        responses={200: _RETENTION.models.shown},
        scopes=READ_AUDIT,
        has_tag=True,
    ),
)
