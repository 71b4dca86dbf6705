"""Endpoints of sources and their reports."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, Options, each, endpoint
from gateway.admin.endpoint import LARGE_BODY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.limits import WorkKind
from gateway.admin.list_search import SOURCES
from gateway.admin.requests.documents import DocumentQuery, DocumentSent
from gateway.admin.requests.lists import SourceListQuery
from gateway.admin.requests.sources import (
    FilledParameterSent,
    OperationRuleSent,
    SourceCreate,
    SourceOptions,
    SourceReplace,
    SourceUpdate,
)
from gateway.admin.responses.sources import (
    ImportTried,
    ReportShown,
    SourceChanged,
    SourceImported,
    SourcePage,
    SourceShown,
)
from gateway.admin.routes.sources.documents import credentials_of, document_of, show_import
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog.etags import tag_of
from gateway.catalog.sources import imports, sources
from gateway.catalog.sources.drafts import SourceDraft
from gateway.domain.http.plans import Location
from gateway.domain.members.formats import NAME
from gateway.domain.sources import FilledParameter, OperationRule, Source
from gateway.errors import BadInput, Fault
from gateway.openapi.options import DocumentForm
from gateway.web.models import NoBody, NoQuery

_NOUN: Noun[Source] = Noun(
    singular="source", path="/tenants/{t}/sources", key="name", shown=SourceShown, show=each(SourceShown.of)
)
_IMPORT = Options(problems={409, 422, 429, 502, 504}, limit=LARGE_BODY, work=WorkKind.OUTBOUND)


async def create_source(admin: AdminDependencies, call: AdminRequest[SourceCreate, NoQuery]) -> AdminResponse:
    """Import an OpenAPI document as tools, or report on it with `dry_run` (200). `Prefer: respond-async` has no
    effect, as RFC 7240 allows.
    """
    return await _create(admin, call, call.body.name)


async def get_report(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the import report of the active document, with every operation."""
    source, report = await sources.read_report(call.tenant, admin.catalog, call.path["name"])
    return AdminResponse(content=ReportShown.of(report, source.schemes), tag=tag_of(source))


async def replace_source(admin: AdminDependencies, call: AdminRequest[SourceReplace, NoQuery]) -> AdminResponse:
    """Replace the document of a source, or import it; the change is active at once. Remaining operations keep their
    tool names.
    """
    name = call.path["name"]

    async def create() -> AdminResponse:
        check_new_name("source", name, NAME)
        return await _create(admin, call, name)

    upsert = Upsert(
        read=partial(sources.get_source, call.tenant, admin.catalog, name),
        replace=partial(_update, admin, call, SourceReplace.model_fields),
        create=create,
    )
    return await put(call, upsert)


async def replace_document(admin: AdminDependencies, call: AdminRequest[DocumentSent, DocumentQuery]) -> AdminResponse:
    """Replace the document of a source with the request body: JSON, YAML or an archive. Options are kept."""
    body, query = call.body, call.query
    form = DocumentForm(is_archive=body.media_type in body.archive_types, entry=query.entry)
    if form.entry is not None and not form.is_archive:
        raise BadInput("entry: only an archive has one", faults=[Fault(pointer="?entry", reason="only for an archive")])
    revise = partial(
        replace, document=body.content, form=form, dry_run=query.dry_run, allow_removals=query.allow_removals
    )
    return await _response_to_update(admin, call, revise)


async def update_source(admin: AdminDependencies, call: AdminRequest[SourceUpdate, NoQuery]) -> AdminResponse:
    """Change a source; without a document or URL the stored document is compiled again."""
    return await _update(admin, call, call.body.model_fields_set)


async def _create(admin: AdminDependencies, call: AdminRequest[SourceReplace, NoQuery], name: str) -> AdminResponse:
    draft = _revise(call.body, SourceDraft(name=name), fields=SourceReplace.model_fields)
    imported = await imports.import_source(call.tenant, admin.catalog, draft, by=call.by)
    response = await show_import(call.tenant, imported, name)
    return response if imported.source is None else _NOUN.to_created(call, imported.source, response)


async def _update(
    admin: AdminDependencies,
    call: AdminRequest[SourceOptions, NoQuery],
    fields: Collection[str],
) -> AdminResponse:
    return await _response_to_update(admin, call, partial(_revise, call.body, fields=fields))


async def _response_to_update(
    admin: AdminDependencies,
    call: AdminRequest[SourceOptions, NoQuery] | AdminRequest[DocumentSent, DocumentQuery],
    revise: Callable[[SourceDraft], SourceDraft],
) -> AdminResponse:
    name = call.path["name"]
    imported = await imports.update_source(call.tenant, admin.catalog, name, revise, by=call.by, expected=call.expected)
    return await show_import(call.tenant, imported, name)


def _revise(body: SourceOptions, draft: SourceDraft, *, fields: Collection[str]) -> SourceDraft:
    """Apply the values of these fields to the draft; credentials that are not sent are kept."""
    document, form = document_of(body)
    return replace(
        draft,
        document=document,
        form=form,
        url=body.url,
        base_url=body.base_url if "base_url" in fields else draft.base_url,
        prefix=body.prefix if "prefix" in fields else draft.prefix,
        expose=body.expose if "expose" in fields else draft.expose,
        include=_rules(body.include) if "include" in fields else draft.include,
        exclude=_rules(body.exclude) if "exclude" in fields else draft.exclude,
        output_schemas=body.output_schemas if "output_schemas" in fields else draft.output_schemas,
        refresh_policy=body.refresh_policy if "refresh_policy" in fields else draft.refresh_policy,
        refresh_interval_s=body.refresh_interval_s if "refresh_interval_s" in fields else draft.refresh_interval_s,
        parameters=_parameters(body.parameters) if "parameters" in fields else draft.parameters,
        timeout_s=body.timeout_s if "timeout_s" in fields else draft.timeout_s,
        credentials=None if body.credentials is None else credentials_of(body.credentials),
        dry_run=body.dry_run,
        allow_removals=body.allow_removals,
    )


def _parameters(sent: Sequence[FilledParameterSent]) -> tuple[FilledParameter, ...]:
    return tuple(
        FilledParameter(location=Location(one.location), name=one.name, credential=one.credential) for one in sent
    )


def _rules(sent: Sequence[OperationRuleSent]) -> tuple[OperationRule, ...]:
    return tuple(
        OperationRule(
            operation_ids=tuple(rule.operation_ids),
            methods=tuple(rule.methods),
            paths=tuple(rule.paths),
            tags=tuple(rule.tags),
        )
        for rule in sent
    )


ENDPOINTS = (
    _NOUN.list_route("List the tenant's sources.", sources.page_sources, SOURCES, SourceListQuery, SourcePage),
    _NOUN.create_route(create_source, SourceCreate, responses={201: SourceImported, 200: ImportTried}, **_IMPORT),
    _NOUN.show_route("Show a source.", sources.get_source),
    _NOUN.upsert_route(replace_source, SourceReplace, responses={200: SourceChanged, 201: SourceImported}, **_IMPORT),
    _NOUN.update_route(update_source, SourceUpdate, responses={200: SourceChanged}, **_IMPORT),
    _NOUN.delete_route("Remove a source with its tools, documents and credentials.", sources.remove_source),
    endpoint(
        "PUT",
        f"{_NOUN.item}/document",
        replace_document,
        DocumentSent,
        DocumentQuery,
        {200: SourceChanged},
        problems={409, 422, 429},
        limit=LARGE_BODY,
        work=WorkKind.OUTBOUND,
        has_tag=True,
    ),
    endpoint("GET", f"{_NOUN.item}/report", get_report, NoBody, NoQuery, {200: ReportShown}, has_tag=True),
)
