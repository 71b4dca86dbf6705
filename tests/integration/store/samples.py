"""Rows to store: one tenant with something of everything, every text of it marked with the tenant's name."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncSession

from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.identifiers import (
    AuditId,
    KeyId,
    OperationId,
    SourceId,
    TenantId,
    mint,
    new_operation_id,
    new_source_id,
    new_tenant_id,
)
from gateway.domain.keys import Key, Scope
from gateway.domain.policy import Decision, Limits, Policy, Safety
from gateway.domain.requests import Credential
from gateway.domain.sources import Exposure, Source, StoredOperation
from gateway.domain.tenants import Tenant
from gateway.store import audit, keys, operations, policies, secrets, sources, tenants
from gateway.store.engine import Store
from gateway.store.sealing import Sealer
from gateway.store.tables import due_work, primitives

NOW = datetime(2026, 7, 28, 12, 0, 0, 123456, tzinfo=UTC)
CHAIN_KEY = b"c" * 32
SEALER = Sealer(["k" * 32])


def make_tenant(slug: str = "acme") -> Tenant:
    return Tenant(id=new_tenant_id(), slug=slug, name=f"{slug} name", revision=0, created_at=NOW)


def make_key(tenant: TenantId, *, name: str = "laptop") -> Key:
    return Key(
        tenant=tenant,
        id=KeyId(mint("key")),
        name=name,
        scopes=frozenset({Scope.MCP, Scope.AUDIT}),
        subject=f"{name} subject",
        profile=None,
        digest=b"\x00digest\xff",
        created_at=NOW,
        expires_at=None,
        revoked_at=None,
        version=1,
    )


def make_source(tenant: TenantId, *, name: str = "petstore", expose: Exposure = Exposure.TOOLS) -> Source:
    return Source(
        tenant=tenant,
        id=new_source_id(),
        name=name,
        title=f"{name} title",
        base_url=None,
        prefix=None,
        expose=expose,
        url="https://example.com/openapi.json",
        schemes=(),
        active_version=1,
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


def make_operation(source: SourceId, tool: str, *, safety: Safety = Safety.SAFE) -> StoredOperation:
    return StoredOperation(
        id=new_operation_id(),
        source=source,
        identity=f"GET /{tool}",
        operation_id=None,
        tool=tool,
        definition=b'{"name":"' + tool.encode() + b'","z":1.0,"a":1e3}',
        plan=b"\x00plan\xff",
        safety=safety,
    )


def make_record(tenant: TenantId, number: int = 0, *, kind: AuditKind = AuditKind.CALL) -> CallRecord:
    return CallRecord(
        tenant=tenant,
        kind=kind,
        principal="key:key_x",
        subject="somebody",
        tool=f"tool_{number}",
        outcome="ok",
        correlation_id=f"cor_{number}",
        digest=b"\x01\x02",
        status=200,
        duration_us=1234,
        result_bytes=567,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A stored tenant and the names of what it has."""

    tenant: Tenant
    key: Key
    source: Source
    operation: OperationId
    audit: AuditId


async def store_everything(store: Store, slug: str) -> Stored:
    """A tenant with a row in every table."""
    tenant = make_tenant(slug)
    key = make_key(tenant.id, name=f"{slug} key")
    source = make_source(tenant.id, name=f"{slug} source")
    operation = make_operation(source.id, f"{slug}_tool")
    async with store.transaction(tenant.id) as db:
        await tenants.insert(tenant, db)
        await keys.insert(key, db)
        await sources.insert(source, db)
        await sources.insert_version(
            tenant.id,
            db,
            source=source.id,
            number=1,
            document=f"{slug} document".encode(),
            report=f"{slug} report".encode(),
        )
        await operations.insert_all(tenant.id, db, [operation])
        await policies.save(tenant.id, db, Policy(dangerous=Decision.DENY, limits=Limits(burst=len(slug))))
        credential = Credential(value=f"{slug} credential")
        await secrets.save(tenant.id, db, SEALER, source=source.id, scheme=f"{slug} scheme", credential=credential)
        entry = await append_change(tenant.id, db, target=f"{slug} target")
        await _insert_what_has_no_module_yet(tenant.id, db, slug)
    return Stored(tenant=tenant, key=key, source=source, operation=operation.id, audit=entry)


async def append_change(tenant: TenantId, db: AsyncSession, *, target: str = "source:petstore") -> AuditId:
    """One change with its entry."""
    return await audit.append_change(
        tenant,
        db,
        principal="operator",
        action="source.import",
        target=target,
        correlation_id="cor_1",
        revision=await tenants.advance(tenant, db),
        detail={"operations": 3, "nul": "\x00"},
        chain_key=CHAIN_KEY,
    )


async def _insert_what_has_no_module_yet(tenant: TenantId, db: AsyncSession, slug: str) -> None:
    await db.execute(
        primitives.insert().values(
            tenant_id=tenant,
            id="pri_1",
            kind="tool",
            name=f"{slug}_own",
            definition=b"{}",
            handler=b"{}",
            enabled=True,
            version=1,
            created_at=NOW,
            updated_at=NOW,
        )
    )
    await db.execute(due_work.insert().values(tenant_id=tenant, id="due_1", kind=f"{slug} work", due_at=NOW))
