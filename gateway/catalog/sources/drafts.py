"""Drafts of imports, and the steps of an import that need no transaction: checks, rows, sanitised text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import msgspec

from gateway.catalog.sources.limits import MAX_DOCUMENT_TITLE_LENGTH
from gateway.catalog.transaction import CatalogContext
from gateway.domain.http.headers import is_fillable, is_token
from gateway.domain.http.plans import Location
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId, new_operation_id
from gateway.domain.json_access import point
from gateway.domain.sources import Compilation, Exposure, FilledParameter, OperationRule, Source, StoredOperation
from gateway.domain.updates.import_reports import ImportReport, Status
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.source_versions import RefreshPolicy, VersionOrigin
from gateway.domain.updates.watches import Sighting
from gateway.errors import Fault, InvalidBody
from gateway.openapi.options import PLAIN, DocumentForm


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDraft:
    """A requested import. Without document and URL, the stored document is compiled again."""

    name: str
    document: Mapping[str, object] | str | bytes | None = None
    form: DocumentForm = PLAIN
    """The form of a document that is bytes."""
    url: str | None = None
    """The URL to fetch; None without a fetch."""
    keeps_url: bool = True
    """False: without a fetch, the source has no URL from now on."""
    base_url: str | None = None
    prefix: str | None = None
    expose: Exposure = Exposure.TOOLS
    include: tuple[OperationRule, ...] = ()
    exclude: tuple[OperationRule, ...] = ()
    output_schemas: bool = False
    refresh_policy: RefreshPolicy = RefreshPolicy.MANUAL
    refresh_interval_s: int | None = None
    parameters: tuple[FilledParameter, ...] = ()
    timeout_s: float | None = None
    credentials: Mapping[str, Credential] | None = None
    """None keeps the stored credentials."""
    dry_run: bool = False
    is_whole: bool = False
    """True if all options are given: an equal source is not written."""
    allow_removals: bool = False
    """Allows an update to remove existing tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The bytes of a document, their form before compilation, and the URL of its source.

    `seen` is set if the document was fetched from the URL.
    """

    document: bytes = field(default=b"", repr=False)
    form: DocumentForm = PLAIN
    url: str | None = None
    seen: Sighting | None = None
    digest: bytes = field(default=b"", repr=False)
    """The SHA-256 of the document; empty before it is compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedImport:
    """A compiled import, which the transaction checks and stores.

    `proposal` is the number of the proposal to activate, `restored` the number of the version to restore.
    """

    draft: SourceDraft
    content: Content
    compilation: Compilation
    source: SourceId
    operations: Sequence[StoredOperation]
    origin: VersionOrigin = VersionOrigin.IMPORT
    proposal: int | None = None
    restored: int | None = None

    @property
    def changes(self) -> ImportChanges:
        """The changes that the worker found, with the names that the document gives."""
        return self.compilation.changes or ImportChanges()


def encode_operations(source: SourceId, compilation: Compilation) -> Sequence[StoredOperation]:
    """The operations of an import in stored form."""
    return [
        StoredOperation(
            id=new_operation_id(),
            source=source,
            identity=_clean(compiled.identity),
            operation_id=None if compiled.operation_id is None else _clean(compiled.operation_id),
            tool=compiled.tool,
            definition=compiled.definition,
            plan=msgspec.json.encode(compiled.plan),
            safety=compiled.safety,
            tags=tuple(_clean(tag) for tag in compiled.tags),
            input_schema=compiled.input_schema,
        )
        for compiled in compilation.operations
    ]


def compose_source(tenant: TenantId, ready: PreparedImport) -> Source:
    """The source of a first import."""
    now = datetime.now(UTC)
    draft = ready.draft
    return Source(
        tenant=tenant,
        id=ready.source,
        name=draft.name,
        title=_title(ready),
        base_url=draft.base_url,
        prefix=draft.prefix,
        expose=draft.expose,
        url=ready.content.url,
        schemes=schemes_of(draft),
        active_version=1,
        version=1,
        created_at=now,
        updated_at=now,
        include=draft.include,
        exclude=draft.exclude,
        output_schemas=draft.output_schemas,
        refresh_policy=draft.refresh_policy,
        refresh_interval_s=draft.refresh_interval_s,
        parameters=draft.parameters,
        timeout_s=draft.timeout_s,
    )


def succeed_source(current: Source, ready: PreparedImport, number: int) -> Source:
    """The source after the version with this number became active. Without a URL, it has no schedule."""
    draft = ready.draft
    return replace(
        current,
        title=_title(ready),
        base_url=draft.base_url,
        prefix=draft.prefix,
        expose=draft.expose,
        url=ready.content.url,
        schemes=schemes_of(draft, current),
        active_version=number,
        updated_at=datetime.now(UTC),
        include=draft.include,
        exclude=draft.exclude,
        output_schemas=draft.output_schemas,
        refresh_policy=draft.refresh_policy,
        refresh_interval_s=draft.refresh_interval_s if ready.content.url is not None else None,
        parameters=draft.parameters,
        timeout_s=draft.timeout_s,
    )


def schemes_of(draft: SourceDraft, current: Source | None = None) -> tuple[str, ...]:
    """The schemes with a stored credential after the import; a draft without credentials keeps those of the source."""
    if draft.credentials is None:
        return () if current is None else current.schemes
    return tuple(sorted(draft.credentials))


def check_parameters(draft: SourceDraft) -> None:
    """Refuse parameters that no request can have, or that only the gateway sets.

    Raises:
        InvalidBody: there are some; the faults name them.
    """
    faults = [
        Fault(pointer=point("parameters", str(index), member), reason=reason)
        for index, one in enumerate(draft.parameters)
        for member, reason in _parameter_faults(one)
    ]
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)


def _parameter_faults(one: FilledParameter) -> Iterator[tuple[str, str]]:
    """Yield member and reason of each fault."""
    if one.location is Location.QUERYSTRING:
        yield "location", "must be header, query, cookie or path"
    if one.location in {Location.HEADER, Location.COOKIE} and not is_token(one.name):
        yield "name", f"{one.name!r} is not a valid name of a {one.location}"
    elif one.location is Location.HEADER and not is_fillable(one.name):  # guard: filled-headers
        yield "name", f"the header {one.name!r} is set by the gateway only"


def draft_of(source: Source) -> SourceDraft:
    """The draft of a stored source, as the input of a revision."""
    return SourceDraft(
        name=source.name,
        base_url=source.base_url,
        prefix=source.prefix,
        expose=source.expose,
        include=source.include,
        exclude=source.exclude,
        output_schemas=source.output_schemas,
        refresh_policy=source.refresh_policy,
        refresh_interval_s=source.refresh_interval_s,
        parameters=source.parameters,
        timeout_s=source.timeout_s,
    )


def check_credentials(draft: SourceDraft, compilation: Compilation) -> None:
    """Refuse credentials that are neither for a declared scheme nor for one of the source's parameters.

    Raises:
        InvalidBody: a credential would not be sent.
    """
    credentials = draft.credentials or {}
    declared = ", ".join(compilation.scheme_names[:50]) or "none"
    known = {*compilation.scheme_names, *(parameter.credential for parameter in draft.parameters)}
    faults = [
        Fault(
            pointer=point("credentials", name),
            reason=f"the document declares no such scheme; declared schemes: {declared}; name the header or other"
            " parameter that it fills in `parameters`",
        )
        for name in credentials
        if name not in known
    ]
    if faults:
        raise InvalidBody(f"credentials: {faults[0].reason}", faults=faults)


def check_timeout(catalog: CatalogContext, timeout_s: float | None) -> None:
    """Refuse a time limit of calls above the operator's maximum.

    Raises:
        InvalidBody: the time limit is too long.
    """
    limit = catalog.options.upstream_timeout_max_s
    if timeout_s is not None and timeout_s > limit:  # guard: timeout-refused
        reason = f"must be at most {limit:g} (GATEWAY_UPSTREAM_TIMEOUT_MAX_S), or null"
        raise InvalidBody(f"timeout_s: {reason}", faults=[Fault(pointer="/timeout_s", reason=reason)])


def detail_of(ready: PreparedImport) -> dict[str, object]:
    """Detail of an import's audit entry. It names the host of the URL only, because a URL may contain a secret."""
    report = ready.compilation.report
    url = ready.content.url
    detail: dict[str, object] = {
        "operations": {status.value: report.count(status) for status in Status},
        "fetched_from": urlsplit(url).netloc if url else None,
        "credentials": None if ready.draft.credentials is None else sorted(ready.draft.credentials),
        "digest": ready.content.digest.hex(),
    }
    return detail if ready.restored is None else detail | {"restored": ready.restored}


def _title(ready: PreparedImport) -> str:
    title = "".join(character if character.isprintable() else " " for character in ready.compilation.title)
    return _clean(title.strip())[:MAX_DOCUMENT_TITLE_LENGTH] or ready.draft.name


def clean_report(report: ImportReport) -> ImportReport:
    """The report with text that can be stored and shown."""
    return replace(
        report,
        operations=tuple(
            replace(
                found,
                method=_clean(found.method),
                path=_clean(found.path),
                operation_id=None if found.operation_id is None else _clean(found.operation_id),
                reasons=tuple(_clean(reason) for reason in found.reasons),
                notes=tuple(_clean(note) for note in found.notes),
            )
            for found in report.operations
        ),
        warnings=tuple(_clean(warning) for warning in report.warnings),
        notes=tuple(_clean(note) for note in report.notes),
        ways={name: tuple(_clean(way) for way in ways) for name, ways in report.ways.items()},
    )


def _clean(text: str) -> str:
    """The text without NUL and lone surrogates, so that it can be stored and shown."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
