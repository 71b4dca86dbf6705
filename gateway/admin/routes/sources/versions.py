"""Endpoints of source versions: manual refresh, pending proposal, stored versions, activation and rollback."""

from functools import partial

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Options, endpoint
from gateway.admin.endpoint import LARGE_BODY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.pagination import read_page
from gateway.admin.requests.sources import ProposalSent, SourceRefresh, VersionActivate
from gateway.admin.responses.sources import (
    ProposalMade,
    ProposalShown,
    SourceChanged,
    SourceRefreshed,
    VersionPage,
    VersionShown,
)
from gateway.admin.routes.limits import MAX_NUMBER_LENGTH
from gateway.admin.routes.sources.documents import credentials_of, document_of, show_import
from gateway.catalog.etags import tag_of
from gateway.catalog.sources import proposals, refreshes, versions
from gateway.catalog.sources.proposals import ProposedDocument, version_tag
from gateway.catalog.sources.replacement import Imported
from gateway.catalog.sources.versions import Activation
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.source_versions import SourceProposal
from gateway.errors import NotFound
from gateway.web.models import NoBody, NoQuery, PageQuery

_SOURCE = "/tenants/{t}/sources/{name}"
_VERSION = f"{_SOURCE}/versions/{{id}}"
_IMPORT = Options(problems={409, 422, 429, 502, 504}, work=WorkKind.OUTBOUND)
_UPLOAD = Options(problems={409, 422, 429}, work=WorkKind.OUTBOUND, limit=LARGE_BODY)


async def refresh_source(admin: AdminDependencies, call: AdminRequest[SourceRefresh, NoQuery]) -> AdminResponse:
    """Refresh a source now; a change becomes a proposal, or is activated if the refresh policy permits it."""
    run = partial(refreshes.refresh_source, call.tenant, admin.catalog, call.path["name"])
    found = await run(allow_removals=call.body.allow_removals, by=call.by, expected=call.expected)
    source = found.source
    proposal = None if found.proposal is None else await _build_proposal(call.tenant, source.name, found.proposal)
    shown = SourceRefreshed(
        name=source.name, outcome=found.outcome, active_version=source.active_version, proposal=proposal
    )
    return AdminResponse(content=shown, tag=tag_of(source))


async def propose_source(admin: AdminDependencies, call: AdminRequest[ProposalSent, NoQuery]) -> AdminResponse:
    """Propose a document for a source, in place of the pending proposal; with `dry_run`, only report on it."""
    body, name = call.body, call.path["name"]
    document, form = document_of(body)
    sent = ProposedDocument(document=document, form=form, dry_run=body.dry_run, allow_removals=body.allow_removals)
    made = await proposals.propose_source(call.tenant, admin.catalog, name, sent, by=call.by, expected=call.expected)
    if isinstance(made, Imported):
        return await show_import(call.tenant, made, name)
    return await _proposal_response(admin, call)


async def get_source_proposal(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the proposal of a source, with its differences from the active version."""
    return await _proposal_response(admin, call)


async def refuse_source_proposal(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Refuse the proposal of a source; refreshes do not propose the same document again."""
    refuse = partial(proposals.refuse_proposal, call.tenant, admin.catalog, call.path["name"])
    await refuse(by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def list_source_versions(admin: AdminDependencies, call: AdminRequest[NoBody, PageQuery]) -> AdminResponse:
    """List the stored versions of a source, the newest first."""
    name = call.path["name"]
    read = partial(versions.page_versions, call.tenant, admin.catalog, name)
    listing = f"source_versions/{name}"
    found, cursor = await read_page(
        admin.cursors, call.tenant, listing, call.query, read=read, key=lambda one: str(one.number)
    )
    return AdminResponse(content=VersionPage(items=[VersionShown.of(one) for one in found], next_cursor=cursor))


async def get_source_version(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a stored version of a source."""
    number = _parse_number(call.path["id"])
    source, version = await versions.get_version(call.tenant, admin.catalog, call.path["name"], number)
    return AdminResponse(content=VersionShown.of(version), tag=version_tag(source, number))


async def activate_source_version(
    admin: AdminDependencies, call: AdminRequest[VersionActivate, NoQuery]
) -> AdminResponse:
    """Activate the proposal with this number, or roll back to the document of a stored version.

    A rollback creates a new version under the current options, credentials and overrides of the source.
    """
    body, name = call.body, call.path["name"]
    activation = Activation(
        number=_parse_number(call.path["id"]),
        credentials=None if body.credentials is None else credentials_of(body.credentials),
        dry_run=body.dry_run,
    )
    activate = partial(versions.activate_version, call.tenant, admin.catalog, name, activation)
    return await show_import(call.tenant, await activate(by=call.by, expected=call.expected), name)


async def _proposal_response(
    admin: AdminDependencies, call: AdminRequest[ProposalSent, NoQuery] | Plain
) -> AdminResponse:
    source, proposal = await proposals.get_proposal(call.tenant, admin.catalog, call.path["name"])
    shown = await _build_proposal(call.tenant, source.name, proposal)
    return AdminResponse(content=shown, tag=version_tag(source, proposal.number))


async def _build_proposal(tenant: TenantId, name: str, proposal: SourceProposal) -> ProposalShown:
    return await run_in_thread(CATALOG_CHANGES, tenant, partial(ProposalShown.of, proposal, name=name))


def _parse_number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > MAX_NUMBER_LENGTH:
        raise NotFound("no such version")
    return int(text)


ENDPOINTS = (
    endpoint(
        "POST",
        f"{_SOURCE}/refresh",
        refresh_source,
        SourceRefresh,
        query=NoQuery,
        responses={200: SourceRefreshed},
        has_tag=True,
        **_IMPORT,
    ),
    endpoint(
        "POST",
        f"{_SOURCE}/proposal",
        propose_source,
        ProposalSent,
        query=NoQuery,
        responses={200: ProposalMade},
        has_tag=True,
        **_UPLOAD,
    ),
    endpoint(
        "GET",
        f"{_SOURCE}/proposal",
        get_source_proposal,
        NoBody,
        query=NoQuery,
        responses={200: ProposalShown},
        has_tag=True,
    ),
    endpoint(
        "DELETE",
        f"{_SOURCE}/proposal",
        refuse_source_proposal,
        NoBody,
        query=NoQuery,
        responses={204: None},
        has_tag=True,
    ),
    endpoint("GET", f"{_SOURCE}/versions", list_source_versions, NoBody, query=PageQuery, responses={200: VersionPage}),
    endpoint("GET", _VERSION, get_source_version, NoBody, query=NoQuery, responses={200: VersionShown}, has_tag=True),
    endpoint(
        "POST",
        f"{_VERSION}/activate",
        activate_source_version,
        VersionActivate,
        query=NoQuery,
        responses={200: SourceChanged},
        has_tag=True,
        **_IMPORT,
    ),
)
