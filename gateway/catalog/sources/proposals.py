"""Proposals: compiled versions of a source that have not been activated or refused yet.

A source has at most one proposal. A new proposal replaces it under an unused number, so the number identifies the
reviewed version. A proposal ends when the active version that it was compared with is replaced.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from gateway.catalog.etags import Expected, check_tag, check_version
from gateway.catalog.sources.compilation import read_content
from gateway.catalog.sources.diff import refuse_shrinking
from gateway.catalog.sources.drafts import Content, PreparedImport, draft_of, encode_operations
from gateway.catalog.sources.imports import prepare_import
from gateway.catalog.sources.override_merge import reapply
from gateway.catalog.sources.replacement import (
    Imported,
    Replacement,
    check_import,
    find_unchanged,
    settle_changes,
    try_version,
)
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Compilation, Source
from gateway.domain.updates.source_versions import ProposalOrigin, SourceProposal, VersionOrigin
from gateway.domain.updates.webhook_endpoints import WebhookEventKind, describe_proposal
from gateway.errors import Conflict, LimitExceeded, NameTaken, NotFound
from gateway.openapi.options import PLAIN, DocumentForm
from gateway.store import operations
from gateway.store.engine import Db
from gateway.store.notifications import deliveries
from gateway.store.sources import proposals, refreshes
from gateway.store.sources.proposals import ProposedContent

_NOTHING_NEW = "the document produces the same tools as the active version; there is nothing to propose"
_ZLIB_LEVEL = 1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Compilation).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedDocument:
    """A document or archive to propose."""

    document: Mapping[str, object] | str | bytes | None
    form: DocumentForm = PLAIN
    dry_run: bool = False
    allow_removals: bool = False
    """Allows a document with less than half of the tools."""


class AlreadyProposed(Exception):
    """The same document is already proposed; nothing was stored."""


async def propose_source(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    sent: ProposedDocument,
    *,
    by: Author,
    expected: Expected = None,
) -> SourceProposal | Imported:
    """Propose a document for a source; with `dry_run`, return only the report and the changes.

    Raises:
        NotFound: the tenant has no such source.
        PreconditionFailed: the current version of the source matches no expected tag.
        Conflict: the document changes nothing or is already proposed, or the source was changed concurrently.
        SourceShrunk: less than half of the tools would remain, and `allow_removals` is False.
        InvalidDocument, BadInput, LimitExceeded, Unavailable: as for an import.
    """
    async with catalog.store.transaction(tenant) as db:
        current = await find_source(tenant, db, name)
        check_version(current, expected)
        number_of_tools = len(await operations.names_of(tenant, db, current.id))
    draft = replace(draft_of(current), document=sent.document, form=sent.form, dry_run=sent.dry_run)
    content = replace(await read_content(tenant, catalog, draft), url=current.url)
    ready = await prepare_import(tenant, catalog, draft, content, current=current)
    if sent.dry_run:
        return await try_version(tenant, catalog, ready, current)
    if ready.changes.is_empty:
        raise Conflict(_NOTHING_NEW)
    refuse_shrinking(number_of_tools, len(ready.operations), allow=sent.allow_removals)
    replacement = Replacement(seen=current, entry=CatalogChange(action="source.propose", target=current.name), by=by)
    try:
        return await store_proposal(tenant, catalog, ready, replacement, origin=ProposalOrigin.UPLOAD)
    except AlreadyProposed:
        raise Conflict("this document is already proposed; review it") from None


async def get_proposal(tenant: TenantId, catalog: CatalogContext, name: str) -> tuple[Source, SourceProposal]:
    """The source and its pending proposal.

    Raises:
        NotFound: the tenant has no such source, or the source has no proposal.
    """
    async with catalog.store.transaction(tenant) as db:
        source = await find_source(tenant, db, name)
        found = await find_proposal(tenant, db, source)
    if found is None:
        raise NotFound("the source has no proposal")
    return source, found


async def find_proposal(tenant: TenantId, db: Db, source: Source) -> SourceProposal | None:
    """The proposal of a source; None if there is none, or it was compared with another version than the active one."""
    found = await proposals.get(tenant, db, source.id)
    # guard: proposal-of-the-active-version
    return found if found is not None and found.replaces == source.active_version else None


async def refuse_proposal(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete the proposal of a source. Refreshes from its URL do not propose the same document again.

    Raises:
        NotFound: the tenant has no such source, or the source has no proposal.
        PreconditionFailed: the proposal matches no expected tag.
    """
    entry = CatalogChange(action="source.refuse", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        source = await find_source(tenant, db, name)
        found = await find_proposal(tenant, db, source)
        if found is None:
            raise NotFound("the source has no proposal")
        check_tag(version_tag(source, found.number), expected)
        entry.target = source.name
        entry.detail = {"id": source.id, "version": found.number, "digest": found.digest.hex()}
        await proposals.remove(tenant, db, source.id)
        state = await refreshes.get(tenant, db, source.id)
        if found.origin is ProposalOrigin.UPLOAD:  # it can have replaced a proposal of the document at the URL
            state = state.with_content_unseen()
        await refreshes.save(tenant, db, source.id, replace(state, refused_digest=found.digest))


async def store_proposal(
    tenant: TenantId,
    catalog: CatalogContext,
    ready: PreparedImport,
    replacement: Replacement,
    *,
    origin: ProposalOrigin,
    obstacle: str | None = None,
) -> SourceProposal:
    """Store the proposal of a compiled document in place of the previous one, and report it to outbound webhooks.

    Raises:
        Conflict: the source was changed since it was seen; nothing was stored.
        AlreadyProposed: the same document is already proposed; nothing was stored.
    """
    compilation = await run_in_thread(CATALOG_CHANGES, tenant, _pack, ready.compilation)
    async with change(tenant, catalog, replacement.entry, by=replacement.by) as db:
        current = await find_unchanged(tenant, db, replacement.seen)
        state, pending_proposal = (
            await refreshes.get(tenant, db, current.id),
            await proposals.get(tenant, db, current.id),
        )
        if pending_proposal is not None and (pending_proposal.digest, pending_proposal.replaces) == (
            ready.content.digest,
            current.active_version,
        ):
            raise AlreadyProposed
        proposal = SourceProposal(
            source=current.id,
            number=max(current.active_version, state.last_number) + 1,
            replaces=current.active_version,
            origin=origin,
            obstacle=obstacle,
            digest=ready.content.digest,
            created_by=replacement.by.caller.name,
            created_at=datetime.now(UTC),
            tools=len(ready.operations),
        )
        proposal = await _assess(tenant, catalog, db, ready, proposal=proposal, current=current)
        replacement.entry.detail = _detail(proposal, replaced=pending_proposal)
        await proposals.remove(tenant, db, current.id)
        content = ProposedContent(document=ready.content.document, compilation=compilation)
        await proposals.insert(tenant, db, proposal, content)
        if state.reported_digest != proposal.digest:  # guard: proposal-reported-once
            payload = describe_proposal(proposal, tenant=tenant, name=current.name)
            await deliveries.enqueue(tenant, db, WebhookEventKind.SOURCE_PROPOSED, payload)
        state = replace(state, last_number=proposal.number, reported_digest=proposal.digest)
        if replacement.settle is not None:
            await replacement.settle(db, state)
        else:
            await refreshes.save(tenant, db, current.id, state)
    return proposal


async def open_proposal(tenant: TenantId, db: Db, source: Source, proposal: SourceProposal) -> PreparedImport:
    """The import that a proposal becomes: the compiled and reviewed version, unchanged.

    Raises:
        Conflict: the proposal no longer exists, or a release with another stored form has compiled it.
    """
    stored = await proposals.content(tenant, db, source.id, proposal.number)
    if stored is None:
        raise Conflict("the proposal was replaced or withdrawn; review it again")
    try:
        compilation = await run_in_thread(CATALOG_CHANGES, tenant, _unpack, stored.compilation)
    except msgspec.MsgspecError:
        raise Conflict("another release has compiled the proposal; refuse it, and propose it again") from None
    return PreparedImport(
        draft=draft_of(source),
        content=Content(document=stored.document, url=source.url, digest=proposal.digest),
        compilation=replace(compilation, changes=proposal.changes),
        source=source.id,
        operations=await run_in_thread(CATALOG_CHANGES, tenant, encode_operations, source.id, compilation),
        origin=VersionOrigin.PROPOSAL,
        proposal=proposal.number,
    )


def version_tag(source: Source, number: int) -> str:
    """A stored version or a proposal as an opaque tag, which changes with each change of the source."""
    return f"{source.id}.{number}.{source.version}"


async def _assess(
    tenant: TenantId,
    catalog: CatalogContext,
    db: Db,
    ready: PreparedImport,
    *,
    proposal: SourceProposal,
    current: Source,
) -> SourceProposal:
    """The proposal with its changes and warnings, and with the obstacles to its activation."""
    before = await operations.of_source(tenant, db, current.id)
    ready = await reapply(tenant, db, ready)
    obstacle, report = proposal.obstacle, ready.compilation.report
    try:
        report = await check_import(tenant, catalog, db, ready, own=current)
    except (NameTaken, LimitExceeded) as error:
        obstacle = error.message
    changes = await settle_changes(tenant, db, before, ready)
    return replace(proposal, changes=changes, warnings=report.warnings, obstacle=obstacle)


def _detail(proposal: SourceProposal, *, replaced: SourceProposal | None) -> dict[str, object]:
    changes = proposal.changes
    return {
        "id": proposal.source,
        "version": proposal.number,
        "replaces": proposal.replaces,
        "replaced_proposal": None if replaced is None else replaced.number,
        "origin": proposal.origin.value,
        "digest": proposal.digest.hex(),
        "changes": {name: len(getattr(changes, name)) for name in ("added", "removed", "renamed", "changed")},
        "sensitive": sorted({one.kind.value for one in changes.sensitive}),
        "findings": len(changes.findings),
    }


def _pack(compilation: Compilation) -> bytes:
    return zlib.compress(_encode(replace(compilation, changes=None)), _ZLIB_LEVEL)


def _unpack(packed: bytes) -> Compilation:
    return _decode(zlib.decompress(packed))
