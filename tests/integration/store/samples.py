"""Rows to store: one tenant with something of everything, every text of it marked with the tenant's name."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.catalog.identity.operators.operator_grants import OPERATOR_GRANTS
from gateway.catalog.identity.operators.operator_keys import OPERATOR_KEYS
from gateway.domain.audit import AnchorKind, AuditKind, AuditRetention, CallRecord
from gateway.domain.calls.approvals import Approval, ApprovalState, RequestShown
from gateway.domain.credentials import CredentialLocation, StoredCredential
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import (
    AuditId,
    GuardrailId,
    KeyId,
    OperationId,
    OverrideId,
    SourceId,
    TenantId,
    WatchId,
    mint,
    new_account_id,
    new_approval_id,
    new_consent_id,
    new_grant_id,
    new_issuer_id,
    new_operation_id,
    new_sign_in_id,
    new_source_id,
    new_task_id,
)
from gateway.domain.live_sources import LiveKind, LivePrimitive, LiveSource, LiveStatus, RememberedPrimitive
from gateway.domain.overrides import Override
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure, Source, StoredOperation
from gateway.domain.tenancy.access import AccessEffect, AccessRule, AccessRules, Role, RoleRule
from gateway.domain.tenancy.accounts import AccountState, UserAccount
from gateway.domain.tenancy.ceilings import Ceilings
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.grants import ClientKind, ClientStatus, Consent, Grant, GrantSecrets, OAuthClient
from gateway.domain.tenancy.guardrails import (
    Guardrail,
    GuardrailAction,
    GuardrailPhase,
    HookSettings,
)
from gateway.domain.tenancy.issuers import (
    AdmissionRule,
    IdentityClaims,
    IntrospectionClient,
    Issuer,
    SignInClient,
    person_id,
)
from gateway.domain.tenancy.keys import Key, KeySecret, Scope
from gateway.domain.tenancy.operators import OperatorGrant, OperatorKey, OperatorRole
from gateway.domain.tenancy.own_primitives import KEYS, OwnPrimitive, OwnTool
from gateway.domain.tenancy.ownership import Ownership
from gateway.domain.tenancy.policy import Decision, Limits, Policy, Safety
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tenancy.sign_ins import ProviderTokens, SignIn
from gateway.domain.tenancy.tenants import Tenant
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.updates.audit_sinks import SinkKind, TrailSink
from gateway.domain.updates.source_changes import ImportChanges, OperationChange
from gateway.domain.updates.source_versions import ProposalOrigin, RefreshState, SourceProposal
from gateway.domain.updates.watches import Sighting, Watch
from gateway.domain.updates.webhook_endpoints import OutboundDelivery, OutboundWebhook, WebhookEventKind
from gateway.domain.updates.webhooks import SigningSecrets, Webhook, WebhookStatus
from gateway.kinds.operators import OPERATOR_GRANT, OPERATOR_KEY
from gateway.store import (
    idempotency,
    jobs,
    operations,
    secrets,
    tenants,
    tool_aliases,
)
from gateway.store.audit import anchors, cuts, export_keys, places, signed_heads
from gateway.store.audit import entries as audit
from gateway.store.audit.cuts import Cut, CutRow
from gateway.store.audit.export_lines import ExportKey
from gateway.store.audit.hash_chain import CREATION, Link
from gateway.store.audit.signed_heads import HeadRow, Signature
from gateway.store.audit.tables import deleted_tenants
from gateway.store.audit.verification import TrailCheck, TrailKeys
from gateway.store.calls import approvals, mcp_tasks
from gateway.store.calls.mcp_tasks import NewTask
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.store.idempotency import IdempotencyRecord
from gateway.store.identity import (
    accounts,
    consents,
    grants,
    introspection_secrets,
    issuers,
    people,
    sign_ins,
)
from gateway.store.jobs import Job
from gateway.store.kinds import ownership
from gateway.store.kinds.audit_sinks import SINKS
from gateway.store.kinds.credentials import CREDENTIALS, SealedCredential
from gateway.store.kinds.guardrails import GUARDRAILS
from gateway.store.kinds.keys import KEYS as KEY_ROWS
from gateway.store.kinds.live_sources import LIVE_SOURCES
from gateway.store.kinds.oauth_clients import CLIENTS
from gateway.store.kinds.overrides import OVERRIDES
from gateway.store.kinds.primitives import ROWS
from gateway.store.kinds.profiles import PROFILES
from gateway.store.kinds.singletons import ACCESS, CEILINGS, EGRESS, POLICY, RETENTION
from gateway.store.kinds.tenants import TENANTS
from gateway.store.kinds.watches import WATCHES
from gateway.store.kinds.webhooks import ENDPOINTS, WEBHOOKS
from gateway.store.live import live_primitives
from gateway.store.notifications import deliveries
from gateway.store.sources import documents, proposals, refreshes, sources, versions
from gateway.store.sources.documents import UploadedDocument
from gateway.store.sources.proposals import ProposedContent
from tests.support.ids import (
    new_audit_sink_id,
    new_client_id,
    new_credential_id,
    new_live_source_id,
    new_primitive_id,
    new_profile_id,
    new_tenant_id,
    new_webhook_endpoint_id,
    new_webhook_id,
)

NOW = datetime(2026, 7, 28, 12, 0, 0, 123456, tzinfo=UTC)
CHAIN_KEY = b"c" * 32
ANCHOR_KEY = b"a" * 32
SEALER = EnvelopeCipher(["k" * 32])


def make_tenant(slug: str = "acme") -> Tenant:
    return Tenant(id=new_tenant_id(), slug=slug, name=f"{slug} name", version=0, created_at=NOW)


def make_key(tenant: TenantId, *, name: str = "laptop") -> Key:
    return Key(
        tenant=tenant,
        id=KeyId(mint("key")),
        name=name,
        scopes=frozenset({Scope.MCP, Scope.AUDIT}),
        subject=f"{name} subject",
        profile=None,
        secret=KeySecret(digest=b"\x00digest\xff", pepper="one", number=3, made_by=("key:key_1", "user:corp:ada")),
        created_at=NOW,
        expires_at=None,
        revoked_at=None,
        version=1,
    )


def make_issuer(name: str) -> Issuer:
    return Issuer(
        id=new_issuer_id(),
        name=f"{name}-corp",
        url=f"https://{name}.example",
        jwks_url=f"https://{name}.example/keys",
        audiences=(f"{name} audience",),
        algorithms=("RS256",),
        subject_claim="sub",
        groups_claim=f"{name}_groups",
        rules=(AdmissionRule(group=f"{name} group", profiles=("default",)), AdmissionRule()),
        max_lifetime_s=3600,
        enabled=True,
        version=1,
        created_at=NOW,
        updated_at=NOW,
        sign_in=SignInClient(client_id=f"{name} client", parameters=(("a", "b"),), token_url=f"https://{name}.example"),
        introspection=IntrospectionClient(client_id=f"{name} client", url=f"https://{name}.example/introspect"),
    )


def make_person(tenant: TenantId, issuer: Issuer) -> Key:
    person = make_key(tenant, name=f"{issuer.name} person")
    return replace(person, id=person_id(tenant, issuer.id, "ada"), expires_at=NOW + timedelta(days=1), issuer=issuer.id)


def make_sign_in(issuer: Issuer, person: Key, name: str) -> SignIn:
    groups = frozenset({f"{name} group"})
    return SignIn(
        id=new_sign_in_id(),
        issuer=issuer.id,
        person=person.id,
        claims=IdentityClaims(subject=f"{name} ada", groups=groups, scopes=frozenset({"openid"})),
        requested_scopes=frozenset({"openid", "tools"}),
        created_at=NOW,
        checked_at=NOW,
        session_ends_at=NOW + timedelta(hours=8),
    )


def make_provider_tokens(name: str) -> ProviderTokens:
    return ProviderTokens(access_token=f"{name} access", access_ends_at=1.0, refresh_token=f"{name} refresh")


def make_client(name: str, *, kind: ClientKind = ClientKind.DYNAMIC) -> OAuthClient:
    return OAuthClient(
        id=new_client_id(),
        name=f"{name} client",
        redirect_uris=(f"https://{name}.example/callback",),
        confidential=True,
        secret=b"\x00digest\xff",
        created_at=NOW,
        status=ClientStatus(kind=kind),
    )


def make_consent(person: Key, client: OAuthClient, name: str) -> Consent:
    return Consent(
        id=new_consent_id(),
        person=person.id,
        subject=person.principal,
        client=client.id,
        client_name=client.name,
        redirect_host=f"{name}.example",
        resource=f"https://gateway.example/t/{name}/mcp",
        scopes=(f"{name}-scope",),
        created_at=NOW,
    )


def make_account(owner: Key, credential: StoredCredential) -> UserAccount:
    """An account of a person at a credential."""
    return UserAccount(
        id=new_account_id(),
        owner=owner.id,
        subject=owner.principal,
        credential=credential.id,
        credential_name=credential.name,
        terms="terms",
        scopes=("read",),
        state=AccountState.CONNECTED,
        created_at=NOW,
        refreshed_at=NOW,
        version=1,
    )


def make_grant(sign_in: SignIn, person: Key, client: OAuthClient, name: str) -> Grant:
    return Grant(
        id=new_grant_id(),
        person=person.id,
        subject=person.principal,
        sign_in=sign_in.id,
        client=client.id,
        client_name=client.name,
        redirect_uri=client.redirect_uris[0],
        resource=f"https://gateway.example/t/{name}/mcp",
        profile="default",
        scopes=(f"{name}-scope",),
        created_at=NOW,
        used_at=NOW,
        idle_ends_at=NOW + timedelta(days=14),
        ends_at=NOW + timedelta(days=90),
    )


def make_grant_secrets(name: str) -> GrantSecrets:
    return GrantSecrets(
        code=f"{name} code".encode(),
        code_challenge=f"{name} challenge",
        code_ends_at=NOW + timedelta(minutes=1),
        code_used_at=NOW,
        family=f"{name} family".encode(),
        refresh=f"{name} refresh".encode(),
        former_refresh=f"{name} former".encode(),
        rotated_at=NOW,
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


def make_proposal(source: SourceId, name: str) -> SourceProposal:
    added = OperationChange(identity="GET /new", tool=f"{name} tool")
    return SourceProposal(
        source=source,
        number=2,
        replaces=1,
        origin=ProposalOrigin.UPLOAD,
        digest=b"\x00digest\xff",
        created_by=f"{name} person",
        created_at=NOW,
        obstacle=f"{name} obstacle",
        changes=ImportChanges(added=(added,)),
        tools=5,
        warnings=(f"{name} warning",),
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
        input_schema=b'{"z":1.0,"tool":"' + tool.encode() + b'"}',
    )


def make_override(source: SourceId, name: str, **members: Any) -> Override:
    given: dict[str, Any] = members or {
        "given_name": f"{name}_renamed",
        "title": f"{name} title",
        "pinned": {"z": 1.0, "a": [f"{name} pin"]},
    }
    return Override(
        id=OverrideId(mint("ovr")),
        name=given.get("given_name") or name,
        source="petstore",
        operation=f"GET /{name}",
        source_id=source,
        created_at=NOW,
        updated_at=NOW,
        **given,
    )


def make_primitive(name: str, *, family: Family = Family.TOOL, refers: tuple[str, ...] = ()) -> Any:
    made: Any = ROWS[family].kind.of
    return made(
        id=new_primitive_id("tol"),
        **{KEYS[family]: name},
        definition=b'{"name":"' + name.encode() + b'"}',
        handler=b'{"kind":"static"}',
        safety_reasons=(f"{name} reason",),
        assessed=Safety.MODERATE,
        refers=refers,
        created_at=NOW,
        updated_at=NOW,
    )


def make_profile(name: str) -> Profile:
    rule = Rule(names=(f"{name}*",), safety=(Safety.SAFE, Safety.MODERATE), methods=("GET",))
    return Profile(
        id=new_profile_id(),
        name=name,
        description=f"{name} description",
        include=(rule, Rule()),
        exclude=(rule,),
        structured_once=True,
        summary_threshold=8192,
        created_at=NOW,
        updated_at=NOW,
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
    return Webhook(
        id=new_webhook_id(), name=name, created_at=NOW, updated_at=NOW, status=WebhookStatus(old_secret_until=NOW)
    )


def make_sink(name: str) -> TrailSink:
    return TrailSink(
        id=new_audit_sink_id(),
        name=f"{name}-sink",
        kind=SinkKind.HTTPS,
        target=f"https://example.com/{name}",
        credential=f"{name} named",
        enabled=True,
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


def make_cut(tenant: TenantId, writer: str) -> Cut:
    row = CutRow(tenant, writer, 1, 2, 1, 0, 0, b"head", b"content", "created", 0)
    return Cut.sign(row, ExportKey.of(tenant, SEALER)[0])


async def _deliver_and_cut(tenant: TenantId, db: Db, sink: TrailSink, writer: str) -> None:
    await SINKS.insert(tenant, db, sink)
    await places.save(tenant, db, sink.id, {writer: 1})
    await RETENTION.save(tenant, db, AuditRetention(days=30))
    deleted = {"tenant_id": tenant, "slug": f"{writer.split(maxsplit=1)[0]} deleted", "revision": 1, "deleted_at": NOW}
    await db.execute(deleted_tenants.insert().values(deleted))
    await cuts.apply(tenant, db, make_cut(tenant, writer))
    await export_keys.keep(tenant, db, EnvelopeCipher(["n" * 32, "k" * 32]))


def make_watch(name: str) -> Watch:
    return Watch(
        id=WatchId(mint("wat")),
        uri=f"note://{name}",
        url=f"https://example.com/{name}",
        interval_s=60,
        credential=f"{name} named",
        version=1,
        created_at=NOW,
        updated_at=NOW,
        status=Sighting(etag=f'"{name}"', digest=name.encode(), failures=1, fault=f"{name} fault", checked_at=NOW),
    )


def make_live_source(tenant: TenantId, name: str) -> LiveSource:
    return LiveSource(
        tenant=tenant,
        id=new_live_source_id(),
        name=f"{name} live",
        kind=LiveKind.MCP,
        settings={"url": f"https://{name}.example/mcp", "timeout_s": 1.5},
        prefix=f"{name}_",
        credential=f"{name} named",
        include=(f"{name}*",),
        safety={f"{name}_tool": Safety.DANGEROUS},
        accepts_changes=False,
        created_at=NOW,
        updated_at=NOW,
        status=LiveStatus(title=f"{name} title", since=NOW, fault=f"{name} fault", notices=(f"{name} notice",)),
    )


def make_live_primitive(name: str, *, family: Family = Family.TOOL) -> RememberedPrimitive:
    return RememberedPrimitive(
        primitive=LivePrimitive(
            family=family,
            name=name,
            remote=f"{name} remote",
            definition=b'{"name":"' + name.encode() + b'"}',
            safety=Safety.MODERATE,
            safety_reasons=(f"{name} reason",),
            digest=f"{name} digest",
        ),
        accepted_digest=f"{name} digest",
        accepted_definition=None,
    )


def make_guardrail(name: str) -> Guardrail:
    hook = HookSettings(url=f"https://{name}.example/check", credential=f"{name} named")
    return Guardrail(
        id=GuardrailId(mint("grd")),
        name=f"{name} guardrail",
        check=GuardrailCheck.HTTP,
        phases=(GuardrailPhase.CALL,),
        action=GuardrailAction.BLOCK,
        position=7,
        scope=Rule(names=(f"{name}*",)),
        hook=hook,
        created_at=NOW,
        updated_at=NOW,
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


def make_approval(tenant: TenantId, name: str) -> Approval:
    return Approval(
        id=new_approval_id(),
        tenant=tenant,
        state=ApprovalState.PENDING,
        requester="key:key_x",
        subject=f"{name} agent",
        key=KeyId("key_x"),
        profile="default",
        action="call",
        tool=f"{name}_tool",
        tool_digest="00",
        policy_version=1,
        digest=b"\x01\x02",
        request=RequestShown(method="DELETE", url=f"https://{name}.example/all", headers=(("X-A", "b"),), body="{}"),
        warnings=(f"Deletes everything of {name}.",),
        correlation_id="cor_1",
        created_at=NOW,
        expires_at=datetime(2100, 1, 1, tzinfo=UTC),
    )


def make_task(name: str, data_key: str) -> NewTask:
    return NewTask(
        id=new_task_id(),
        subject=f"{name} subject",
        profile="default",
        key=KeyId(f"{name} key"),
        tool=f"{name}_tool",
        correlation_id=f"{name} correlation",
        holder=f"{name} run",
        has_begun=False,
        data_key=data_key,
        call=f"{name} call".encode(),
        rounds=f"{name} rounds".encode(),
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


def make_endpoint(name: str) -> OutboundWebhook:
    return OutboundWebhook(
        id=new_webhook_endpoint_id(),
        name=name,
        url=f"https://{name.replace(' ', '-')}.example",
        kinds=(WebhookEventKind.APPROVAL_REQUESTED, WebhookEventKind.APPROVAL_DENIED),
        description=f"{name} description",
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A stored tenant and the names of what it has."""

    tenant: Tenant
    key: Key
    issuer: Issuer
    person: Key
    sign_in: SignIn
    account: UserAccount
    client: OAuthClient
    operator_key: OperatorKey
    operator_grant: OperatorGrant
    consent: Consent
    grant: Grant
    source: Source
    operation: OperationId
    override: Override
    audit: AuditId
    primitive: OwnTool
    others: Sequence[Any]
    """A resource, a resource template and a prompt."""
    profile: Profile
    ownership: Ownership
    credential: StoredCredential
    webhook: Webhook
    watch: Watch
    sink: TrailSink
    due: Job
    idempotency: IdempotencyRecord
    live: LiveSource
    discovered: RememberedPrimitive
    approval: Approval
    guardrail: Guardrail
    task: NewTask
    endpoint: OutboundWebhook
    delivery: OutboundDelivery
    proposal: SourceProposal


async def _insert_primitives(tenant: TenantId, db: Db, tool: OwnTool, slug: str) -> Sequence[OwnPrimitive]:
    """Store a tool, and a primitive of each other family; return the others."""
    others = [make_primitive(f"{slug}://own", family=each) for each in Family if each is not Family.TOOL]
    for one in (tool, *others):
        await ROWS[one.family].insert(tenant, db, one)
    return others


async def _sign_in(
    tenant: TenantId, db: Db, issuer: Issuer, credential: StoredCredential, name: str
) -> tuple[Key, SignIn, UserAccount]:
    await issuers.insert(tenant, db, issuer)
    await issuers.save_secret(tenant, db, SEALER, issuer, secret=f"{name} client secret")
    await introspection_secrets.save(tenant, db, SEALER, issuer, secret=f"{name} introspection secret")
    person = await people.enter(tenant, db, make_person(tenant, issuer))
    made = make_sign_in(issuer, person, name)
    await sign_ins.insert(tenant, db, SEALER, made, tokens=make_provider_tokens(name))
    account = make_account(person, credential)
    await accounts.enter(tenant, db, SEALER, account, tokens=make_provider_tokens(name))
    return person, made, account


async def _store_versions(tenant: TenantId, db: Db, source: SourceId, name: str) -> SourceProposal:
    content = versions.VersionContent(
        document=f"{name} document".encode(), report=f"{name} report".encode(), outline=f"{name} outline".encode()
    )
    await versions.insert(tenant, db, source=source, number=1, content=content)
    proposal = make_proposal(source, name)
    proposed = ProposedContent(document=f"{name} proposed".encode(), compilation=b"\x00\xff")
    await proposals.insert(tenant, db, proposal, proposed)
    await documents.save(tenant, db, make_upload(name))
    await refreshes.save(tenant, db, source, RefreshState(url=f"https://{name}.example", last_number=2))
    return proposal


def make_upload(name: str) -> UploadedDocument:
    """An uploaded document of a tenant."""
    content = f"{name} uploaded".encode()
    return UploadedDocument(
        digest=hashlib.sha256(content).digest(),
        document=content,
        is_archive=False,
        expires_at=datetime(2100, 1, 1, tzinfo=UTC),
    )


def make_access(slug: str) -> AccessRules:
    """Access rules of a tenant."""
    roles = (RoleRule(role=Role.APPROVE, who=(f"subject:{slug}:ada",)),)
    return AccessRules(rules=(AccessRule(effect=AccessEffect.DENY, who=(f"subject:{slug}",)),), roles=roles)


async def _grant(
    tenant: TenantId, db: Db, person: Key, sign_in: SignIn, name: str
) -> tuple[OAuthClient, Consent, Grant]:
    client = make_client(name)
    await CLIENTS.insert(tenant, db, client)
    consent = await consents.enter(tenant, db, make_consent(person, client, name))
    grant = make_grant(sign_in, person, client, name)
    await grants.insert(tenant, db, grant, make_grant_secrets(name))
    return client, consent, grant


def make_operator_key(name: str) -> OperatorKey:
    """An operator key, which only the installation has in a gateway."""
    return OPERATOR_KEY.make(f"{name} operator", {"role": OperatorRole.SUPPORT})


async def _insert_operators(tenant: TenantId, db: Db, key: OperatorKey) -> OperatorGrant:
    """Add an operator key and a grant with the same role."""
    grant = OPERATOR_GRANT.make(key.name, {"role": key.role, "who": ("group:corp:desk",)})
    await OPERATOR_KEYS.rows.insert(tenant, db, key)
    await OPERATOR_GRANTS.rows.insert(tenant, db, grant)
    return grant


async def store_everything(store: Store, slug: str) -> Stored:
    """A tenant with a row in every table."""
    tenant = make_tenant(slug)
    key, issuer = make_key(tenant.id, name=f"{slug} key"), make_issuer(slug)
    source = make_source(tenant.id, name=f"{slug} source")
    operation = make_operation(source.id, f"{slug}_tool")
    override, credential = make_override(source.id, f"{slug}_gone"), make_credential(f"{slug} named")
    primitive = make_primitive(f"{slug}_own", refers=(f"credential:{credential.name}", f"tool:{slug}_tool"))
    profile, approval = make_profile(f"{slug} profile"), make_approval(tenant.id, slug)
    webhook, watch, sink = make_webhook(f"{slug} hook"), make_watch(slug), make_sink(slug)
    record, guardrail = make_idempotency_record(slug), make_guardrail(slug)
    live, discovered = make_live_source(tenant.id, slug), make_live_primitive(f"{slug}_live")
    endpoint, operator_key = make_endpoint(f"{slug} endpoint"), make_operator_key(slug)
    delivery = deliveries.new_delivery(endpoint.id, "approval.requested", {"tool": f"{slug} tool"}, now=NOW)
    due = Job(tenant=tenant.id, id="due_1", kind=f"{slug} work", due_at=NOW)
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
        await KEY_ROWS.insert(tenant.id, db, key)
        await sources.insert(source, db)
        proposal = await _store_versions(tenant.id, db, source.id, slug)
        await operations.insert_all(tenant.id, db, [operation])
        await OVERRIDES.insert(tenant.id, db, override)
        await tool_aliases.add(tenant.id, db, source.id, {operation.identity: f"{slug}_old"})
        await EGRESS.save(tenant.id, db, Egress(allow=(f"{slug}.internal:8443",)))
        await POLICY.save(tenant.id, db, Policy(dangerous=Decision.DENY, limits=Limits(burst=len(slug))))
        await ACCESS.save(tenant.id, db, make_access(slug))
        await CEILINGS.save(tenant.id, db, Ceilings(burst=len(slug)))
        secret = Credential(value=f"{slug} credential")
        await secrets.save(tenant.id, db, SEALER, source=source.id, scheme=f"{slug} scheme", credential=secret)
        await CREDENTIALS.insert_sealed(tenant.id, db, SEALER, credential, secret=SealedCredential(value=secret.value))
        others = await _insert_primitives(tenant.id, db, primitive, slug)
        owned = await _store_owned(tenant.id, db, profile)
        entry = await append_change(tenant.id, db, target=f"{slug} target")
        await signed_heads.append(tenant.id, db, [make_signature(tenant.id, f"{slug} signer")])
        await WEBHOOKS.insert_sealed(tenant.id, db, SEALER, webhook, secret=SigningSecrets(current=f"{slug} signing"))
        await WATCHES.insert(tenant.id, db, watch)
        person, sign_in, account = await _sign_in(tenant.id, db, issuer, credential, slug)
        client, consent, grant = await _grant(tenant.id, db, person, sign_in, slug)
        operator_grant = await _insert_operators(tenant.id, db, operator_key)
        await ENDPOINTS.insert_sealed(
            tenant.id, db, SEALER, endpoint, secret=SigningSecrets(current=f"{slug} outbound")
        )
        await deliveries.insert(tenant.id, db, delivery)
        await jobs.remove(tenant.id, db, endpoint.id)
        await _deliver_and_cut(tenant.id, db, sink, f"{slug} writer")
        await jobs.schedule(tenant.id, db, due)
        await idempotency.insert(tenant.id, db, record)
        await GUARDRAILS.insert(tenant.id, db, guardrail)
        await LIVE_SOURCES.insert(tenant.id, db, live)
        await live_primitives.apply_changes(tenant.id, db, live.id, removed=(), added=[discovered])
        await approvals.insert(tenant.id, db, SEALER, approval, fingerprint=slug.encode(), credentials=b"c")
        task = make_task(slug, (await secrets.tenant_key(tenant.id, db, SEALER))[0])
        await mcp_tasks.insert(tenant.id, db, task, lease=timedelta(minutes=1), lifetime=timedelta(hours=1))
    return Stored(
        tenant=tenant,
        key=key,
        issuer=issuer,
        person=person,
        sign_in=sign_in,
        account=account,
        client=client,
        operator_key=operator_key,
        operator_grant=operator_grant,
        consent=consent,
        grant=grant,
        source=source,
        operation=operation.id,
        override=override,
        audit=entry,
        primitive=primitive,
        others=others,
        profile=profile,
        ownership=owned,
        credential=credential,
        webhook=webhook,
        watch=watch,
        sink=sink,
        due=due,
        idempotency=record,
        live=live,
        discovered=discovered,
        approval=approval,
        guardrail=guardrail,
        task=task,
        endpoint=endpoint,
        delivery=delivery,
        proposal=proposal,
    )


async def _store_owned(tenant: TenantId, db: Db, profile: Profile) -> Ownership:
    """A profile that a set of manifests owns."""
    owned = Ownership(kind="profile", id=profile.id, set="platform", digest=profile.name.encode())
    await PROFILES.insert(tenant, db, profile)
    await ownership.save(tenant, db, owned)
    return owned


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
    """Number of faults in the tenant's trail, read in parts."""
    check = TrailCheck(TrailKeys(chain=keys))
    last: Link | None = None
    while part := await audit.links(tenant, db, after=last, limit=7):
        check.follow(part)
        last = part[-1]
    return sum(chain.faults for chain in check.chains(None))
