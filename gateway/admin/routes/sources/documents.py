"""Conversion of documents and credentials in requests, and of import results in responses, for sources and versions."""

import json
from collections.abc import Mapping

from gateway.admin.endpoint import AdminResponse
from gateway.admin.requests.sources import Credentials, DocumentOptions, LoginObject, ReferenceObject, SecretObject
from gateway.admin.responses.sources import ChangesShown, ImportTried, ReportShown, SourceImported, show_imported
from gateway.catalog.etags import tag_of
from gateway.catalog.sources.replacement import Imported
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import TenantId
from gateway.openapi.options import DocumentForm


def document_of(body: DocumentOptions) -> tuple[Mapping[str, object] | str | bytes | None, DocumentForm]:
    """Return the document or archive of a request, with its form; bytes are JSON that was not decoded."""
    if body.archive is None:
        return body.document, DocumentForm(is_json_value=isinstance(body.document, bytes))
    base64 = body.archive.base64
    content = base64 if isinstance(base64, bytes) else json.dumps(base64).encode()
    return content, DocumentForm(is_json_value=True, is_archive=True, entry=body.archive.entry)


def credentials_of(sent: Credentials) -> dict[str, Credential]:
    """Return the credentials of a request, by name of the security scheme."""
    return {scheme: _credential(value) for scheme, value in sent.items()}


def _credential(sent: str | list[str] | SecretObject | LoginObject | ReferenceObject) -> Credential:
    match sent:
        case str():
            return Credential(value=sent)
        case SecretObject():
            return Credential(value=sent.value)
        case LoginObject():
            return Credential(username=sent.username, value=sent.password, parameters=sent.token_parameters())
        case ReferenceObject():
            return Credential(value="", reference=sent.credential)
        case _:
            username, password = sent
            return Credential(username=username, value=password)


async def show_import(tenant: TenantId, imported: Imported, name: str) -> AdminResponse:
    """Build the response with an import, or with the report of a dry run."""
    content = await run_in_thread(CATALOG_CHANGES, tenant, _show, imported, name)
    return AdminResponse(content=content, tag=None if imported.source is None else tag_of(imported.source))


def _show(imported: Imported, name: str) -> SourceImported | ImportTried:
    changes = None if imported.changes is None else ChangesShown.of(imported.changes)
    report = ReportShown.of(imported.report, needs=imported.report.needs(imported.schemes))
    if imported.source is None:
        return ImportTried(name=name, report=report, changes=changes)
    return show_imported(imported.source, report, changes)
