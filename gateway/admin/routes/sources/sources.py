"""Endpoints of sources and their reports."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Noun, Options, each, endpoint
from gateway.admin.endpoint import LARGE_BODY, AdminDependencies, AdminRequest, AdminResponse, AnyRequest, Plain
from gateway.admin.list_search import ListRules
from gateway.admin.requests.documents import DocumentQuery, DocumentSent
from gateway.admin.requests.sources import (
    ONE_ORIGIN,
    SourceCreate,
    SourceImport,
    SourceReplace,
    SourceUpdate,
)
from gateway.admin.responses.sources import (
    ImportTried,
    ReportShown,
    SourceChanged,
    SourceImported,
    show_source,
)
from gateway.admin.routes.sources.documents import credentials_of, document_of, show_import
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog.etags import tag_of
from gateway.catalog.sources import imports, sources
from gateway.catalog.sources.drafts import SourceDraft
from gateway.domain.members.formats import NAME
from gateway.domain.sources import Source
from gateway.errors import BadInput, Fault, InvalidBody, NotFound
from gateway.kinds.members import settable
from gateway.kinds.sources import SOURCE
from gateway.openapi.options import DocumentForm
from gateway.web.kinds.annotations import merged
from gateway.web.kinds.kept_members import ReplaceQuery, may_remove, refuse_losses, sent_paths
from gateway.web.kinds.models import models_of
from gateway.web.models import NoBody, NoQuery

_MODELS = models_of(SOURCE)
_LIST: ListRules[Source] = ListRules(name="sources", texts=SOURCE.texts)
_NOUN: Noun[Source] = Noun(
    singular="source", path="/tenants/{t}/sources", key="name", shown=_MODELS.shown, show=each(show_source)
)
_OTHER = "must be that of the source in the path; leave it out"
_IMPORT = Options(problems={409, 422, 429, 502, 504}, limit=LARGE_BODY, work=WorkKind.OUTBOUND)


async def create_source(admin: AdminDependencies, call: AdminRequest[SourceCreate, NoQuery]) -> AdminResponse:
    """Import an OpenAPI document as tools, or report on it with `dry_run` (200). `Prefer: respond-async` has no
    effect, as RFC 7240 allows.
    """
    return await _create(admin, call, call.body.name)


async def get_report(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show the import report of the active document, with every operation."""
    source, report = await sources.read_report(call.tenant, admin.catalog, call.path["name"])
    return AdminResponse(content=ReportShown.of(report, needs=report.needs(source.schemes)), tag=tag_of(source))


async def replace_source(admin: AdminDependencies, call: AdminRequest[SourceReplace, ReplaceQuery]) -> AdminResponse:
    """Replace the options of a source and its document, or import it; absent options have their default. The change is
    active at once. Without a document and URL, a source keeps its document; a URL is fetched again.
    """
    name, members = call.path["name"], settable(SOURCE.of)

    def revise(draft: SourceDraft) -> SourceDraft:
        wanted = replace(_revise(call.body, draft, fields=[one.name for one in members]), is_whole=True)
        if not may_remove(call.query, call.expected):
            values = {one.name: getattr(wanted, one.name) for one in members}
            refuse_losses(members, draft, values, sent_paths(call.body))
        return wanted

    async def create() -> AdminResponse:
        check_new_name("source", name, NAME)
        _refuse_unless(call.body.origins == 1, "", ONE_ORIGIN)
        return await _create(admin, call, name)

    await _check_addressed(admin, call)
    upsert = Upsert(
        read=partial(sources.get_source, call.tenant, admin.catalog, name),
        replace=partial(_response_to_update, admin, call, revise),
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
    return await _response_to_update(admin, call, partial(_revise, call.body, fields=call.body.model_fields_set))


async def _check_addressed(admin: AdminDependencies, call: AdminRequest[SourceReplace, ReplaceQuery]) -> None:
    """Refuse the body of a PUT that gives the id or name of another source."""
    name, sent = call.path["name"], call.body.sent()
    try:
        current = await sources.get_source(call.tenant, admin.catalog, name)
    except NotFound:
        _refuse_unless(sent.get("name", name) == name, "/name", _OTHER)
        return
    for member, known in (("id", current.id), ("name", current.name)):
        _refuse_unless(sent.get(member, known) == known, f"/{member}", _OTHER)


def _refuse_unless(is_right: bool, pointer: str, reason: str) -> None:
    if not is_right:
        raise InvalidBody(f"{pointer}: {reason}" if pointer else reason, faults=[Fault(pointer=pointer, reason=reason)])


async def _create(
    admin: AdminDependencies,
    call: AdminRequest[SourceCreate, NoQuery] | AdminRequest[SourceReplace, ReplaceQuery],
    name: str,
) -> AdminResponse:
    draft = _revise(call.body, SourceDraft(name=name), fields=[one.name for one in settable(SOURCE.of)])
    imported = await imports.import_source(call.tenant, admin.catalog, draft, by=call.by)
    response = await show_import(call.tenant, imported, name)
    return response if imported.source is None else _NOUN.to_created(call, imported.source, response)


async def _response_to_update(
    admin: AdminDependencies,
    call: AnyRequest,
    revise: Callable[[SourceDraft], SourceDraft],
) -> AdminResponse:
    name = call.path["name"]
    update = partial(imports.update_source, call.tenant, admin.catalog, name, revise)
    return await show_import(call.tenant, await update(by=call.by, expected=call.expected), name)


def _revise(body: SourceImport, draft: SourceDraft, *, fields: Collection[str]) -> SourceDraft:
    """Apply the values of these options to the draft; credentials that are not sent are kept."""
    document, form = document_of(body)
    options = {
        one.name: merged(None, getattr(body, one.name), one.hint)
        for one in settable(SOURCE.of)
        if one.name in fields and one.name != "url"
    }
    url: str | None = getattr(body, "url", None)
    return replace(
        draft,
        **options,
        document=document,
        form=form,
        url=url,
        keeps_url="url" not in fields,
        credentials=None if body.credentials is None else credentials_of(body.credentials),
        dry_run=body.dry_run,
        allow_removals=body.allow_removals,
    )


ENDPOINTS = (
    _NOUN.list_route("List the tenant's sources.", sources.page_sources, _LIST, _MODELS.query, page=_MODELS.page),
    _NOUN.create_route(create_source, SourceCreate, responses={201: SourceImported, 200: ImportTried}, **_IMPORT),
    _NOUN.show_route("Show a source.", sources.get_source),
    endpoint(
        "PUT",
        _NOUN.item,
        replace_source,
        SourceReplace,
        query=ReplaceQuery,
        responses={200: SourceChanged, 201: SourceImported},
        has_tag=True,
        **_IMPORT,
    ),
    _NOUN.update_route(update_source, SourceUpdate, responses={200: SourceChanged}, **_IMPORT),
    _NOUN.delete_route("Remove a source with its tools, documents and credentials.", sources.remove_source),
    endpoint(
        "PUT",
        f"{_NOUN.item}/document",
        replace_document,
        DocumentSent,
        query=DocumentQuery,
        responses={200: SourceChanged},
        problems={409, 422, 429},
        limit=LARGE_BODY,
        work=WorkKind.OUTBOUND,
        has_tag=True,
    ),
    endpoint(
        "GET", f"{_NOUN.item}/report", get_report, NoBody, query=NoQuery, responses={200: ReportShown}, has_tag=True
    ),
)
