"""Sources as targets of manifests: the document is imported before the transaction, and written as a version in it.

A manifest either pins the version by the digest of the document, or leaves the versions to the gateway, which fetches
the document once, for a new URL, and refreshes it later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson

from gateway.catalog.etags import tag_of
from gateway.catalog.kinds.engines.special_functions import Compose, refuse_id
from gateway.catalog.sources import imports, uploads
from gateway.catalog.sources.compilation import read_content
from gateway.catalog.sources.drafts import Content, PreparedImport, SourceDraft, detail_of, draft_of
from gateway.catalog.sources.replacement import Replacement, is_other_schedule, write_schedule, write_version
from gateway.catalog.sources.sources import write_removal
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, CatalogOptions, OpenChanges
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.json_access import point
from gateway.domain.members.markers import About
from gateway.domain.members.secret import Secret
from gateway.domain.sources import Source
from gateway.domain.updates.managed_sources import SHA256, ManagedSource, SourceCredential, VersionOwner
from gateway.errors import Conflict, Fault, InvalidBody, NotFound, ReferenceMissing
from gateway.kinds.kind import Kind
from gateway.kinds.members import Member, members_of, settable, values_of
from gateway.kinds.references import Address
from gateway.kinds.sources import MANAGED_SOURCE
from gateway.store import secrets
from gateway.store.engine import Db
from gateway.store.sources import sources, versions

_PLACEHOLDER = datetime.fromtimestamp(0, UTC)
_ORIGIN = ("document", "refresh", "credentials", "allow_removals")
_FORMS = "needs `value`, or `username` with `password`, or `credential`"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState(Source):
    """A source, stored or wanted, with the origin of its document; a stored one has neither owner nor credentials."""

    document: str | None = None
    """The digest of the document; None for a wanted one that the gateway fetches."""
    refresh: VersionOwner | None = None
    credentials: Annotated[
        Secret | None, About("The given credentials as one text, to compare them with those that the set applied last.")
    ] = None
    given: Mapping[str, Credential] | None = field(default=None, repr=False)
    allow_removals: bool = False
    references: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """The name of the tenant's credential for each scheme with a stored one; None for a secret of its own."""
    prepared: PreparedImport | None = field(default=None, repr=False)

    @property
    def draft(self) -> SourceDraft:
        """The import that the wanted source describes, without its document."""
        return replace(
            draft_of(self), credentials=self.given, allow_removals=self.allow_removals, is_whole=True, url=None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadySource:
    """Composes a source with its compiled document, if `seen` is still the current one.

    Without a compiled document, the source is equal, or only the schedule of its refreshes differs.
    """

    compose: Compose[Any]
    seen: SourceState | None
    prepared: PreparedImport | None = None

    @property
    def size(self) -> int:
        """The bytes of the document, which are held until the commit."""
        return 0 if self.prepared is None else len(self.prepared.content.document)

    def __call__(self, current: SourceState | None) -> SourceState:
        """Return the source to write.

        Raises:
            Conflict: the source was changed since it was prepared.
        """
        wanted: SourceState = self.compose(current)
        if self.prepared is None and _is_equal(wanted, current):
            return wanted
        versions_seen = [one and one.version for one in (self.seen, current)]
        if versions_seen[0] != versions_seen[1]:  # guard: manifest-source-as-prepared
            raise Conflict("the source was changed at the same time; read it again")
        if self.prepared is None:
            return wanted
        return replace(wanted, document=_digest_text(self.prepared.content.digest), prepared=self.prepared)


_SHOWN = [one for one in settable(ManagedSource) if one.name not in _ORIGIN or one.name == "document"]
_OPTIONS = [one for one in _SHOWN if one.name != "document"]
_MEMBERS: Sequence[Member] = [*_SHOWN, *(one for one in members_of(SourceState) if one.name == "credentials")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTarget:
    """The sources of a tenant; see `CollectionTarget`."""

    rank: int
    is_prepared: bool = True
    is_protected: bool = False

    @property
    def kind(self) -> Kind[Any]:
        """The declaration of sources in manifests."""
        return MANAGED_SOURCE

    @property
    def name(self) -> str:
        """The name of the kind."""
        return self.kind.name

    @property
    def members(self) -> Sequence[Member]:
        """The members that are compared: the options, the digest of the document, and the credentials."""
        return _MEMBERS

    async def read(self, tenant: TenantId, db: Db, key: str, *, is_locked: bool = False) -> SourceState | None:
        """The source of this name; None if there is none. Each change of a source holds the lock of the tenant.

        Raises:
            InvalidBody: the key is an id.
        """
        del is_locked
        found = await sources.get(tenant, db, key)
        if found is not None:
            refuse_id(self.kind, key, found.name)
        return None if found is None else await _state(tenant, db, found)

    async def read_id(self, tenant: TenantId, db: Db, of: str) -> SourceState | None:
        """The source with this id; None if there is none."""
        found = await sources.get(tenant, db, of)
        return None if found is None or found.id != of else await _state(tenant, db, found)

    def key_of(self, one: SourceState) -> str:
        """The name of a source."""
        return one.name

    def id_of(self, one: SourceState) -> str:
        """The id of a source."""
        return str(one.id)

    def forms(self, one: SourceState) -> Sequence[SourceState]:
        """The forms of which a set may have a digest: without the document if the gateway owns the versions."""
        without = replace(one, document=None)
        return (without,) if one.refresh is VersionOwner.GATEWAY else (one, without)

    def is_untouched(self, one: SourceState, options: CatalogOptions) -> bool:
        """False: a request has created each source."""
        del one, options
        return False

    async def tag(self, tenant: TenantId, db: Db, one: Any) -> str:
        """The entity tag of a source."""
        del tenant, db
        return tag_of(one)

    def refers(self, one: SourceState) -> frozenset[Address]:
        """The credentials that a source names."""
        names = one.references if one.given is None else _references(one.given)
        return frozenset(("credential", name) for name in names.values() if name is not None)

    def compose(self, name: str, values: Mapping[str, Any], current: SourceState | None) -> SourceState:
        """The wanted source, given the values of the members of its manifest.

        Raises:
            InvalidBody: the manifest has no origin of the document, or two, or an incomplete credential.
        """
        url, owner, document = (values[each] for each in ("url", "refresh", "document"))
        _check_origin(url, owner, document)
        if owner is not None:
            document = current.document if current is not None and current.url == url else None
        given = None if values["credentials"] is None else _credentials(values["credentials"])
        base = current or _new(name)
        return replace(
            base,
            **{one.name: values[one.name] for one in _OPTIONS},
            document=document,
            refresh=owner,
            given=given,
            credentials=None if given is None or _is_kept(base, given) else Secret(_text_of(given)),
            allow_removals=values["allow_removals"],
        )

    async def ready(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        compose: Compose[Any],
        current: SourceState | None,
        *,
        by: Author,
    ) -> ReadySource:
        """Fetch or open the document and compile it; return the function that composes the source to write.

        Raises:
            GatewayError: as for an import by hand.
        """
        del by
        wanted: SourceState = compose(current)
        draft = wanted.draft
        imports.check_options(catalog, draft, current, url=wanted.url)
        if current is not None and (_is_equal(wanted, current) or _has_other_schedule(wanted, current)):
            return ReadySource(compose=compose, seen=current)
        content = await _content(tenant, catalog, wanted, current)
        if current is None:
            prepared = await imports.prepare_new(tenant, catalog, draft, content)
        else:
            prepared = await imports.prepare_import(tenant, catalog, draft, content, current=current)
        return ReadySource(compose=compose, seen=current, prepared=prepared)

    async def write(self, opened: OpenChanges, key: str, compose: Compose[Any]) -> SourceState:
        """Create a source, or make the document and options its active version; an equal one is not written."""
        current = await self.read(opened.tenant, opened.db, key)
        wanted: SourceState = compose(current)
        ready = wanted.prepared
        if current is not None and _is_equal(wanted, current):
            return replace(current, refresh=wanted.refresh)
        if current is None and ready is not None:
            await imports.write_new(opened, ready)
        elif current is not None and ready is not None:
            entry = CatalogChange(action="source.update", target=current.name, detail=detail_of(ready))
            ready = replace(ready, draft=wanted.draft)
            await write_version(opened, ready, Replacement(seen=current, entry=entry, by=opened.by))
        elif current is not None:
            await write_schedule(opened, wanted.draft, current)
        written = await self.read(opened.tenant, opened.db, key)
        if written is None:
            raise Conflict("the source was removed at the same time")
        return replace(written, refresh=wanted.refresh)

    async def check_adoption(self, opened: OpenChanges, one: SourceState) -> None:
        """Permit to take over the source: all callers with the scope may change it."""
        del opened, one

    async def remove(self, opened: OpenChanges, one: SourceState) -> None:
        """Remove a source with its tools, documents and credentials."""
        await write_removal(opened, one)


def _is_equal(wanted: SourceState, current: SourceState | None) -> bool:
    return current is not None and values_of(wanted, _MEMBERS) == values_of(current, _MEMBERS)


def _has_other_schedule(wanted: SourceState, current: SourceState) -> bool:
    """True if only the schedule and the rule of refreshes differ, so that nothing is compiled."""
    is_same = (wanted.url, wanted.document, wanted.credentials) == (current.url, current.document, None)
    return is_same and is_other_schedule(current, draft_of(wanted))


async def _state(tenant: TenantId, db: Db, found: Source) -> SourceState:
    digest = await versions.digest(tenant, db, found.id, found.active_version)
    return SourceState(
        **{one.name: getattr(found, one.name) for one in members_of(Source)},
        document=_digest_text(digest or b""),
        references=await secrets.references(tenant, db, found.id),
    )


def _new(name: str) -> SourceState:
    """The form of a source that does not exist yet."""
    return SourceState(
        tenant=TenantId(""),
        id=SourceId(""),
        name=name,
        title="",
        active_version=0,
        version=0,
        created_at=_PLACEHOLDER,
        updated_at=_PLACEHOLDER,
    )


def _digest_text(digest: bytes) -> str:
    return f"{SHA256}{digest.hex()}"


def _check_origin(url: str | None, owner: VersionOwner | None, document: str | None) -> None:
    """Refuse a manifest that names no owner of the versions, or two.

    Raises:
        InvalidBody: the fault has the member.
    """
    if owner is not None and url is None:
        raise _fault("url", "is required: `refresh: gateway` fetches the document from it")
    if owner is not None and document is not None:
        raise _fault("document", "must be absent: `refresh: gateway` pins no version")
    if owner is None and document is None:
        raise _fault("document", "is required, unless `refresh: gateway` leaves the versions to the gateway")


def _fault(member: str, reason: str) -> InvalidBody:
    pointer = point(member)
    return InvalidBody(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


def _credentials(given: Mapping[str, SourceCredential]) -> Mapping[str, Credential]:
    return {scheme: _credential(scheme, one) for scheme, one in given.items()}


def _credential(scheme: str, one: SourceCredential) -> Credential:
    """The credential to seal.

    Raises:
        InvalidBody: it has none of the three forms, or several.
    """
    more = {"audience": one.audience, "resource": one.resource}
    parameters = tuple((name, value) for name, value in more.items() if value is not None)
    forms = (one.value is not None, one.username is not None or one.password is not None, one.credential is not None)
    if sum(forms) == 1:
        if one.value is not None and not parameters:
            return Credential(value=one.value.reveal())
        if one.username is not None and one.password is not None:
            return Credential(username=one.username, value=one.password.reveal(), parameters=parameters)
        if one.credential is not None and not parameters:
            return Credential(value="", reference=one.credential)
    pointer = point("credentials", scheme)
    raise InvalidBody(f"{pointer}: {_FORMS}", faults=[Fault(pointer=pointer, reason=_FORMS)])


def _references(given: Mapping[str, Credential]) -> Mapping[str, str | None]:
    return {scheme: one.reference for scheme, one in given.items()}


def _is_kept(current: SourceState, given: Mapping[str, Credential]) -> bool:
    """True if only names of credentials are given, which the source has already; names are no secrets."""
    named = _references(given)
    return None not in named.values() and named == current.references


def _text_of(given: Mapping[str, Credential]) -> str:
    """One text of all credentials, equal for equal ones."""
    parts = {scheme: [one.value, one.username, one.reference, sorted(one.parameters)] for scheme, one in given.items()}
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode()


async def _content(
    tenant: TenantId, catalog: CatalogContext, wanted: SourceState, current: SourceState | None
) -> Content:
    """The document of a wanted source: stored, uploaded, or fetched from its URL.

    Raises:
        ReferenceMissing: the tenant has no document of this digest.
        Conflict: the URL has another one.
        GatewayError: the document cannot be fetched.
    """
    if wanted.document is None:
        return await read_content(tenant, catalog, replace(wanted.draft, url=wanted.url))
    digest = bytes.fromhex(wanted.document.removeprefix(SHA256))
    if current is not None and wanted.document == current.document:
        async with catalog.store.transaction(tenant) as db:
            stored = await versions.document(tenant, db, current.id, current.active_version)
        return Content(document=stored or b"", url=wanted.url)
    try:
        return replace(await uploads.open_document(tenant, catalog, digest), url=wanted.url)
    except NotFound:
        if wanted.url is None:
            reason = "the tenant has no document with this digest; upload it first"
            fault = Fault(pointer=point("document"), reason=reason)
            raise ReferenceMissing(f"{fault.pointer}: {reason}", faults=[fault]) from None
    content = await read_content(tenant, catalog, replace(wanted.draft, url=wanted.url))
    if content.digest != digest:  # guard: manifest-pinned-document
        found = _digest_text(content.digest)
        reason = f"the URL has another document, {found}"
        raise Conflict(f"/document: {reason}", faults=[Fault(pointer=point("document"), reason=reason)])
    return content
