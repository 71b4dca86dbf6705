"""Documents of a local catalog: fetched and compiled as in an import, and checked for conflicts.

The module imports little, so that the workers compile while the rest of the gateway is imported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio

from gateway.catalog.sources.drafts import clean_report
from gateway.catalog.sources.name_conflicts import refuse_taken
from gateway.catalog.sources.worker_pool import WorkerPool
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId, new_source_id
from gateway.domain.sources import Compilation, Exposure, OperationRule
from gateway.domain.updates.import_reports import ImportReport
from gateway.errors import BadInput, GatewayError
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES
from gateway.openapi.options import PLAIN, DocumentForm, ImportOptions
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document

LOCAL = TenantId("local")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDocument:
    """A document to serve: its bytes, or the URL from which it is fetched. `place` is its label in messages."""

    name: str
    place: str
    content: bytes = b""
    form: DocumentForm = PLAIN
    url: str | None = None
    prefix: str | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """Options for all documents. `credentials` are named by scheme, or by document and scheme as `NAME/SCHEME`."""

    expose: Exposure = Exposure.TOOLS
    include: tuple[OperationRule, ...] = ()
    exclude: tuple[OperationRule, ...] = ()
    output_schemas: bool = False
    credentials: Mapping[str, Credential] = field(default_factory=dict[str, Credential], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSource:
    """A compiled document with its credentials by scheme."""

    id: SourceId
    name: str
    compilation: Compilation
    credentials: Mapping[str, Credential] = field(repr=False)

    @property
    def report(self) -> ImportReport:
        """The report on each operation, as an import shows it."""
        return clean_report(self.compilation.report)


async def compile_all(
    documents: Sequence[LocalDocument], options: LocalOptions, upstream: UpstreamClient
) -> Sequence[LocalSource]:
    """Compile the documents, two at a time.

    Raises:
        NameTaken: two documents have a tool of the same name.
        BadInput, UpstreamError, LimitExceeded, Unavailable: a document cannot be fetched or read, or a credential
            belongs to no document, or to several.
    """
    compiled: list[Compilation | None] = [None] * len(documents)
    workers = WorkerPool()

    async def compile_one(place: int) -> None:
        try:
            compiled[place] = await _compile(documents[place], options, workers, upstream)
        except GatewayError as error:
            error.message = f"{documents[place].place}: {error.message}"
            error.args = (error.message,)  # the text of the exception
            raise

    async with anyio.create_task_group() as group:
        for place in range(len(documents)):
            group.start_soon(compile_one, place)
    found = [(document.name, one) for document, one in zip(documents, compiled, strict=True) if one is not None]
    _refuse_same_names(found)
    credentials = _assign(options.credentials, found)
    return [
        LocalSource(id=new_source_id(), name=name, compilation=one, credentials=credentials[name])
        for name, one in found
    ]


async def _compile(
    document: LocalDocument, options: LocalOptions, workers: WorkerPool, upstream: UpstreamClient
) -> Compilation:
    content = document.content
    if document.url is not None:
        content = await fetch_document(upstream, document.url, limit=MAX_DOCUMENT_BYTES, tenant=LOCAL)
    import_options = ImportOptions(
        base_url=document.base_url,
        prefix=document.prefix,
        document_url=document.url,
        outline=options.expose is not Exposure.TOOLS,
        is_listed=options.expose is not Exposure.QUERY,
        include=options.include,
        exclude=options.exclude,
        output_schemas=options.output_schemas,
    )
    tenant = TenantId(document.name)  # one tenant may occupy one worker only
    return (await workers.compile(content, import_options, form=document.form, tenant=tenant)).compilation


def _refuse_same_names(found: Sequence[tuple[str, Compilation]]) -> None:
    owners: dict[str, str] = {}
    for name, compilation in found:
        refuse_taken(compilation, owners, source=name)
        owners |= {operation.tool: f"the document {name}" for operation in compilation.operations}


def _assign(
    given: Mapping[str, Credential], found: Sequence[tuple[str, Compilation]]
) -> Mapping[str, Mapping[str, Credential]]:
    """Return the credentials of each document by scheme. A credential is never assigned to several documents."""
    assigned: dict[str, dict[str, Credential]] = {name: {} for name, _ in found}
    for written, credential in given.items():
        owner, slash, scheme = written.rpartition("/")
        declares = partial(_declares, scheme=scheme, owner=owner if slash else None)
        owners = [name for name, compilation in found if declares(name, compilation)]
        if not owners:
            declared = ", ".join(f"{name}/{one}" for name, each in found for one in each.scheme_names[:50]) or "none"
            raise BadInput(f"no document declares the security scheme {written}; declared: {declared}")
        if len(owners) > 1:  # guard: stdio-credential-of-one
            choices = " or ".join(f"{name}/{scheme}" for name in owners)
            raise BadInput(f"several documents declare the security scheme {scheme}; choose one: {choices}")
        assigned[owners[0]][scheme] = credential
    return assigned


def _declares(name: str, compilation: Compilation, *, scheme: str, owner: str | None) -> bool:
    return scheme in compilation.scheme_names and owner in {None, name}
