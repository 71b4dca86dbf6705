"""The proposals of a tenant's sources, at most one per source: the findings for a review, and the compiled document."""

from dataclasses import dataclass, field

import msgspec
from sqlalchemy import RowMapping, Select, delete, select
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.source_versions import SourceProposal
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.sources.tables import source_proposals


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedContent:
    """The proposed document, and its compilation in stored form."""

    document: bytes = field(repr=False)
    compilation: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Review:
    """The findings of a proposal that a reviewer reads."""

    changes: ImportChanges
    tools: int
    warnings: tuple[str, ...] = ()


_decode = msgspec.json.Decoder(_Review).decode
_PUBLIC_COLUMNS = [column for column in source_proposals.c if column.name not in {"document", "compilation"}]


async def insert(tenant: TenantId, db: Db, proposal: SourceProposal, content: ProposedContent) -> None:
    """Store a proposal.

    Raises:
        NameTaken: the source has a proposal.
        NotFound: the tenant has no such source.
    """
    review = _Review(changes=proposal.changes, tools=proposal.tools, warnings=proposal.warnings)
    values = columns_of(proposal, "changes", "tools", "warnings") | {"review": msgspec.json.encode(review)}
    added = insert_into(source_proposals).values(tenant_id=tenant, **values, **columns_of(content))
    await db.execute(added)


async def get(tenant: TenantId, db: Db, source: SourceId) -> SourceProposal | None:
    """The proposal of a source."""
    row = (await db.execute(_of(select(*_PUBLIC_COLUMNS), tenant, source))).mappings().one_or_none()
    return _proposal(row) if row else None


async def content(tenant: TenantId, db: Db, source: SourceId, number: int) -> ProposedContent | None:
    """The content of the proposal of this number."""
    columns = (source_proposals.c.document, source_proposals.c.compilation)
    query = _of(select(*columns), tenant, source).where(source_proposals.c.number == number)
    row = (await db.execute(query)).one_or_none()
    return None if row is None else ProposedContent(document=row.document, compilation=row.compilation)


async def remove(tenant: TenantId, db: Db, source: SourceId) -> bool:
    """Delete the proposal of a source; True if there was one."""
    matches = (source_proposals.c.tenant_id == tenant, source_proposals.c.source_id == source)
    deleted = delete(source_proposals).where(*matches).returning(source_proposals.c.number)
    return (await db.execute(deleted)).one_or_none() is not None


def _of(query: Select[*tuple[object, ...]], tenant: TenantId, source: SourceId) -> Select[*tuple[object, ...]]:
    return query.where(source_proposals.c.tenant_id == tenant, source_proposals.c.source_id == source)


def _proposal(row: RowMapping) -> SourceProposal:
    review = _decode(row["review"])
    reviewed = {"changes": review.changes, "tools": review.tools, "warnings": review.warnings}
    return read_record(SourceProposal, row, **reviewed)
