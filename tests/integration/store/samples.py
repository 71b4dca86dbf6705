"""Rows to store: one tenant with something of everything, every text of it marked with the tenant's name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.domain.audit import AnchorKind, AuditKind, CallRecord
from gateway.domain.credentials import CredentialLocation, StoredCredential
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import (
    AuditId,
    KeyId,
    OperationId,
    SourceId,
    TenantId,
    mint,
    new_credential_id,
    new_operation_id,
    new_override_id,
    new_primitive_id,
    new_profile_id,
    new_source_id,
    new_tenant_id,
    new_watch_id,
    new_webhook_id,
)
from gateway.domain.overrides import Override, OverrideFields
from gateway.domain.primitives import Family, Primitive
from gateway.domain.sources import Exposure, Source, StoredOperation
from gateway.domain.tenancy.ceilings import Ceilings
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.keys import Key, Scope
from gateway.domain.tenancy.policy import Decision, Limits, Policy, Safety
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tenancy.tenants import Tenant
from gateway.domain.watches import Sighting, Watch
from gateway.domain.webhooks import SigningSecrets, Webhook
from gateway.store import (
    ceilings,
    credentials,
    egress,
    idempotency,
    jobs,
    keys,
    operations,
    overrides,
    policies,
    primitives,
    profiles,
    secrets,
    sources,
    tenants,
    tool_aliases,
    watches,
    webhooks,
)
from gateway.store.audit import anchors, signed_heads
from gateway.store.audit import entries as audit
from gateway.store.audit.hash_chain import CREATION, Link
from gateway.store.audit.signed_heads import HeadRow, Signature
from gateway.store.audit.verification import TrailCheck, TrailKeys
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.store.idempotency import IdempotencyRecord
from gateway.store.jobs import Job

NOW = datetime(2026, 7, 28, 12, 0, 0, 123456, tzinfo=UTC)
CHAIN_KEY = b"c" * 32
ANCHOR_KEY = b"a" * 32
SEALER = EnvelopeCipher(["k" * 32])


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


def make_override(source: SourceId, name: str, *, changes: OverrideFields | None = None) -> Override:
    return Override(
        id=new_override_id(),
        source=source,
        identity=f"GET /{name}",
        changes=changes
        or OverrideFields(name=f"{name}_renamed", title=f"{name} title", pinned={"z": 1.0, "a": [f"{name} pin"]}),
        created_at=NOW,
        updated_at=NOW,
    )


def make_primitive(name: str, *, family: Family = Family.TOOL, refers: tuple[str, ...] = ()) -> Primitive:
    return Primitive(
        id=new_primitive_id("tol"),
        family=family,
        name=name,
        definition=b'{"name":"' + name.encode() + b'"}',
        handler=b'{"kind":"static"}',
        safety=Safety.MODERATE,
        safety_reasons=(f"{name} reason",),
        assessed=Safety.MODERATE,
        refers=refers,
        created_at=NOW,
        updated_at=NOW,
    )


def make_profile(name: str) -> Profile:
    rule = Rule(names=(f"{name}*",), safety=(Safety.SAFE, Safety.MODERATE), methods=("GET",))
    return Profile(
        id=new_profile_id(), name=name, description=f"{name} description", include=(rule, Rule()), exclude=(rule,)
    )


def make_credential(name: str) -> StoredCredential:
    return StoredCredential(
        id=new_credential_id(),
        name=name,
        place=CredentialLocation.HEADER,
        field="X-Key",
        origins=("https://api.example", "https://api.example:8443"),
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


def make_webhook(name: str) -> Webhook:
    return Webhook(id=new_webhook_id(), name=name, version=1, retires_at=NOW, created_at=NOW, updated_at=NOW)


def make_watch(name: str) -> Watch:
    return Watch(
        id=new_watch_id(),
        uri=f"note://{name}",
        url=f"https://example.com/{name}",
        interval_s=60,
        credential=f"{name} named",
        version=1,
        created_at=NOW,
        updated_at=NOW,
        seen=Sighting(etag=f'"{name}"', digest=name.encode(), failures=1, fault=f"{name} fault", checked_at=NOW),
    )


def make_idempotency_record(name: str) -> IdempotencyRecord:
    return IdempotencyRecord(
        id=f"{name} record",
        is_operators=False,
        wrapped=b"wrapped",
        request=f"{name} request".encode(),
        attempt=f"{name} attempt",
        leased_until=NOW,
        expires_at=NOW,
        answer=f"{name} answer".encode(),
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
    override: Override
    audit: AuditId
    primitive: Primitive
    profile: Profile
    credential: StoredCredential
    webhook: Webhook
    watch: Watch
    due: Job
    idempotency: IdempotencyRecord


async def store_everything(store: Store, slug: str) -> Stored:
    """A tenant with a row in every table."""
    tenant = make_tenant(slug)
    key = make_key(tenant.id, name=f"{slug} key")
    source = make_source(tenant.id, name=f"{slug} source")
    operation = make_operation(source.id, f"{slug}_tool")
    override = make_override(source.id, f"{slug}_gone")
    credential = make_credential(f"{slug} named")
    primitive = make_primitive(f"{slug}_own", refers=(f"credential:{credential.name}", f"tool:{slug}_tool"))
    profile = make_profile(f"{slug} profile")
    webhook, watch = make_webhook(f"{slug} hook"), make_watch(slug)
    record = make_idempotency_record(slug)
    due = Job(tenant=tenant.id, id="due_1", kind=f"{slug} work", due_at=NOW)
    async with store.transaction(tenant.id) as db:
        await tenants.insert(tenant, db)
        await keys.insert(key, db)
        await sources.insert(source, db)
        await sources.insert_version(
            tenant.id,
            db,
            source=source.id,
            number=1,
            content=sources.VersionContent(
                document=f"{slug} document".encode(),
                report=f"{slug} report".encode(),
                outline=f"{slug} outline".encode(),
            ),
        )
        await operations.insert_all(tenant.id, db, [operation])
        await overrides.insert(tenant.id, db, override)
        await tool_aliases.add(tenant.id, db, source.id, {operation.identity: f"{slug}_old"})
        await egress.save(tenant.id, db, Egress(allow=(f"{slug}.internal:8443",)))
        await policies.save(tenant.id, db, Policy(dangerous=Decision.DENY, limits=Limits(burst=len(slug))))
        await ceilings.save(tenant.id, db, Ceilings(burst=len(slug)))
        secret = Credential(value=f"{slug} credential")
        await secrets.save(tenant.id, db, SEALER, source=source.id, scheme=f"{slug} scheme", credential=secret)
        await credentials.insert(tenant.id, db, SEALER, credential, secret)
        await primitives.insert(tenant.id, db, primitive)
        await profiles.insert(tenant.id, db, profile)
        entry = await append_change(tenant.id, db, target=f"{slug} target")
        await signed_heads.append(tenant.id, db, [make_signature(tenant.id, f"{slug} signer")])
        await webhooks.insert(tenant.id, db, SEALER, webhook, SigningSecrets(current=f"{slug} signing"))
        await watches.insert(tenant.id, db, watch)
        await jobs.put(tenant.id, db, due)
        await idempotency.insert(tenant.id, db, record)
    return Stored(
        tenant=tenant,
        key=key,
        source=source,
        operation=operation.id,
        override=override,
        audit=entry,
        primitive=primitive,
        profile=profile,
        credential=credential,
        webhook=webhook,
        watch=watch,
        due=due,
        idempotency=record,
    )


def make_signature(tenant: TenantId, signer: str) -> Signature:
    return Signature(HeadRow(tenant, signer, 1, "catalog", 1, b"head"), b"mac")


async def append_change(tenant: TenantId, db: Db, *, target: str = "source:petstore") -> AuditId:
    """One change with its entry; the first one makes the tenant."""
    revision = await tenants.advance(tenant, db)
    if revision == 1:
        await anchors.insert(tenant, db, key=ANCHOR_KEY, kind=AnchorKind.CREATED)
    return await audit.append_change(
        tenant,
        db,
        principal="operator",
        action=CREATION if revision == 1 else "source.import",
        target=target,
        correlation_id="cor_1",
        revision=revision,
        detail={"operations": 3, "nul": "\x00"},
        chain_key=CHAIN_KEY,
    )


async def faults_of(tenant: TenantId, db: Db, *, keys: Sequence[bytes] = (CHAIN_KEY,)) -> int:
    """How many faults the tenant's trail has, read in parts."""
    check = TrailCheck(TrailKeys(chain=keys))
    last: Link | None = None
    while part := await audit.links(tenant, db, after=last, limit=7):
        check.follow(part)
        last = part[-1]
    return sum(chain.faults for chain in check.chains(None))
