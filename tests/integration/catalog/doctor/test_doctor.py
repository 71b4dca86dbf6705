"""Findings of the doctor at real servers in order, and at each kind of fault."""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import redis
from msgspec import structs

from gateway.catalog import tenants
from gateway.catalog.doctor import policy_checks
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.doctor.environment_checks import Installation
from gateway.catalog.live.attachments import record_failure
from gateway.catalog.sources import imports
from gateway.catalog.sources.drafts import SourceDraft
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.credentials import CredentialKind, CredentialStatus, StoredCredential
from gateway.domain.findings import Finding, Verdict
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import PrimitiveId
from gateway.domain.live_sources import AttachmentEnd, LiveKind
from gateway.domain.primitives import Family
from gateway.domain.tenancy.configured_secret import as_configured
from gateway.domain.tenancy.own_primitives import KEYS
from gateway.domain.updates.source_versions import RefreshState
from gateway.domain.updates.watches import Sighting
from gateway.store.audit.writer import AuditWriter
from gateway.store.database.connection import connect_owner
from gateway.store.encryption import EnvelopeCipher
from gateway.store.identity import issuers
from gateway.store.kinds.credentials import CREDENTIALS, SealedCredential
from gateway.store.kinds.primitives import ROWS
from gateway.store.sources import refreshes
from gateway.store.tables import SCHEMA
from tests.integration.catalog.conftest import BY, Changes
from tests.integration.store.samples import make_credential, make_issuer
from tests.support.documents import secured
from tests.support.live_sources import declare_live, live_draft
from tests.support.open_database import OpenDatabase
from tests.support.own_primitives import create_own
from tests.support.primitives import static_tool
from tests.support.servers import TestDatabase, TestServers, execute

SECRET_KEY = "secret-key-of-the-tests-0123456789abc"
ALL = [
    "database",
    "migrations",
    "role",
    "row_level_security",
    "grants",
    "redis",
    "redis_persistence",
    "redis_memory",
    "secrets",
    "handlers",
    "secret_rotation",
    "secret_references",
    "code",
    "live_sources",
    "sources",
    "clients",
    "policies",
    "approvers",
    "access_rules",
    "sign_in",
    "secret_keys",
    "operator_key",
    "egress",
    "clock",
    "disk",
    "versions",
    "policy",
]


@pytest.fixture
def sound(open_database: OpenDatabase, redis_url: str, tmp_path: Path) -> Installation:
    """An installation without a fault."""
    return Installation(
        database_url=open_database.database.app_url,
        redis_url=redis_url,
        data_dir=tmp_path,
        secret_key_lengths=[36],
        operator_key_lengths=[40],
        cipher=EnvelopeCipher([SECRET_KEY]),
    )


async def _examine(installation: Installation) -> Mapping[str, Finding]:
    findings = await Doctor(installation).examine()
    assert len({finding.check for finding in findings}) == len(findings)
    return {finding.check: finding for finding in findings}


def _failing(findings: Mapping[str, Finding]) -> Sequence[str]:
    failing = [check for check, finding in findings.items() if finding.status is Verdict.FAILED]
    assert all(findings[check].mend for check in failing)
    return failing


@asynccontextmanager
async def _changed(url: str, change: str, undo: str) -> AsyncGenerator[None]:
    """The database after a statement, and after another one when the block is left."""
    await execute(url, change)
    try:
        yield
    finally:
        await execute(url, undo)


@contextmanager
def _configured(url: str, **settings: str) -> Generator[None]:
    """Redis with other settings, for as long as the block runs."""
    client: Any = cast(Any, redis.Redis).from_url(url, decode_responses=True)
    before = {name: client.config_get(name)[name] for name in settings}
    try:
        for name, value in settings.items():
            client.config_set(name, value)
        yield
    finally:
        for name, value in before.items():
            client.config_set(name, value)
        client.close()


async def test_a_sound_installation_has_no_finding_against_it(sound: Installation) -> None:
    """Ours: everything is looked at, and nothing is wrong."""
    findings = await _examine(sound)

    assert list(findings) == ALL
    assert [finding for finding in findings.values() if finding.status is not Verdict.OK] == []
    assert [finding.mend for finding in findings.values() if finding.mend] == []


async def test_a_check_that_waits_for_a_lock_costs_no_other_check(
    changes: Changes, database: TestDatabase, sound: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: all checks share one connection, and the next one has a connection that works."""
    monkeypatch.setattr(policy_checks, "TIMEOUT_S", 0.5)
    locking = await connect_owner(database.superuser_url)
    try:
        await locking.execute("begin; lock table policies in access exclusive mode")
        findings = await _examine(sound)
    finally:
        await locking.close()

    assert "the rest skipped after a timeout" in findings["policies"].detail
    assert list(findings) == ALL
    assert "(1 examined)" in findings["sign_in"].detail, changes.tenant.slug
    assert _failing(findings) == []


_STEPS: Sequence[Mapping[str, tuple[str, str]]] = (
    {
        "alter table keys no force row level security": ("row_level_security", "keys"),
        "revoke insert on keys from gateway_app": ("grants", "keys: insert"),
    },
    {
        "alter table sources disable row level security": ("row_level_security", "sources"),
        "drop policy own_rows on policies": ("row_level_security", "policies"),
        "create table extra (tenant_id text)": ("row_level_security", "extra"),
        "grant update on audit_entries to gateway_app": ("grants", "audit_entries: update"),
        "grant truncate on keys to gateway_app": ("grants", "keys: truncate"),
        "grant create on schema public to gateway_app": ("grants", "schema public: create"),
        "grant execute on function key_by_id(text) to public": ("grants", "key_by_id"),
    },
    {"alter table due_work owner to gateway_app": ("grants", "owns due_work")},
    {"drop table due_work": ("migrations", "due_work")},
    {"update alembic_version set version_num = '0000'": ("migrations", "at 0000")},
)
"""Changes of one database, each with its finding. A finding names the worst of its kind alone, so that comes last."""


async def test_walls_that_were_opened_are_found(sound: Installation, servers: TestServers) -> None:
    """Ours: each way to take tenants' walls down is in a failed finding that names the place and what to do (TEN-5)."""
    with servers.database() as database:
        damaged = replace(sound, database_url=database.app_url)
        for step in _STEPS:
            await execute(database.superuser_url, "; ".join(step))
            findings = await _examine(damaged)

            for change, (check, reported) in step.items():
                assert check in _failing(findings), change
                assert reported in findings[check].detail, (change, findings[check].detail)


@pytest.mark.parametrize("trait", ["bypassrls", "superuser", "createrole"])
async def test_a_role_that_may_too_much_is_found(sound: Installation, database: TestDatabase, trait: str) -> None:
    """Ours: the role that serves is described even where it is refused (TEN-5)."""
    async with _changed(database.superuser_url, f"alter role gateway_app {trait}", f"alter role gateway_app no{trait}"):
        findings = await _examine(sound)

    assert "role" in _failing(findings)
    assert "alter role gateway_app" in findings["role"].mend


async def test_a_role_that_may_become_another_is_found(sound: Installation, database: TestDatabase) -> None:
    """Ours: a role that may become the definer sees every tenant (TEN-5)."""
    async with _changed(
        database.superuser_url, "grant gateway_definer to gateway_app", "revoke gateway_definer from gateway_app"
    ):
        findings = await _examine(sound)

    assert _failing(findings) == ["role"]
    assert "gateway_definer" in findings["role"].detail


async def test_a_mighty_login_is_a_warning(sound: Installation, database: TestDatabase) -> None:
    """Ours: the role holds, but the login behind it should hold as well."""
    findings = await _examine(replace(sound, database_url=database.superuser_url))

    assert _failing(findings) == []
    assert findings["database"].status is Verdict.WARNING


async def test_an_empty_database_is_not_migrated(sound: Installation, servers: TestServers) -> None:
    """Ours: before the first migration there is one thing to do."""
    with servers.empty_database() as empty:
        findings = await _examine(replace(sound, database_url=empty.app_url))

    assert "migrations" in _failing(findings)
    assert "gateway migrate" in findings["migrations"].mend
    assert "secrets" not in findings


async def test_a_newer_database_is_a_warning(sound: Installation, database: TestDatabase) -> None:
    """Ours: an old replica during a rollout is no failure."""
    newer = "update alembic_version set version_num = '{}'"
    async with _changed(database.superuser_url, newer.format("9999"), newer.format(SCHEMA)):
        findings = await _examine(sound)

    assert _failing(findings) == []
    assert findings["migrations"].status is Verdict.WARNING


@pytest.mark.parametrize(
    ("settings", "check", "status"),
    [
        ({"appendonly": "no"}, "redis_persistence", Verdict.FAILED),
        ({"maxmemory-policy": "allkeys-lru"}, "redis_memory", Verdict.WARNING),
        ({"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}, "redis_memory", Verdict.FAILED),
    ],
)
async def test_a_redis_that_forgets_is_found(
    sound: Installation, settings: Mapping[str, str], check: str, status: Verdict
) -> None:
    """Ours: sessions outlive a restart of Redis and a full memory, or the operator gets a finding."""
    with _configured(as_configured(sound.redis_url).value, **settings):
        findings = await _examine(sound)

    assert findings[check].status is status
    assert findings[check].mend


async def test_servers_that_are_away_cost_their_own_findings_only(sound: Installation, tmp_path: Path) -> None:
    """Ours: the doctor answers when nothing else does, and shows no URL."""
    away = replace(
        sound,
        database_url=f"postgresql://gateway_app:canary@/gateway?host={tmp_path}",
        redis_url=f"unix://{tmp_path}/redis.sock",
    )

    findings = await _examine(away)

    assert _failing(findings) == ["database", "redis"]
    assert {"keys", "egress", "clock", "disk"} & set(findings) == {"egress", "clock", "disk"}
    assert "canary" not in str(findings)


async def test_a_broken_url_is_a_finding(sound: Installation) -> None:
    """Ours: a setting that cannot be read ends no examination."""
    findings = await _examine(replace(sound, database_url="mysql://x", redis_url="unix:///nowhere/redis.sock"))

    assert _failing(findings) == ["database", "redis"]


async def test_secrets_that_no_key_opens_are_found(changes: Changes, sound: Installation) -> None:
    """Ours: a secret key that was lost is found before a call needs it (TEN-4)."""
    await tenants.create_tenant(changes.catalog, "empty", "Empty", by=BY)
    draft = SourceDraft(
        name="api", document=secured("https://x.example"), credentials={"token": Credential(value="s3cr3t-canary")}
    )
    await imports.import_source(changes.tenant.id, changes.catalog, draft, by=BY)

    good = await _examine(sound)
    bad = await _examine(replace(sound, cipher=EnvelopeCipher(["another secret key, of sufficient length"])))
    none = await _examine(replace(sound, cipher=None, secret_key_lengths=()))

    assert good["secrets"].status is Verdict.OK
    assert "tenants: 1" in good["secrets"].detail
    assert _failing(bad) == ["secrets"]
    assert changes.tenant.slug in bad["secrets"].detail
    assert (none["secrets"].status, none["secret_keys"].status) == (Verdict.WARNING, Verdict.WARNING)
    assert "s3cr3t-canary" not in f"{good} {bad} {none}"


async def test_live_sources_that_fail_again_and_again_are_named(changes: Changes, sound: Installation) -> None:
    """Ours: an operator finds them without asking every tenant; a fault may contain a URL and is not shown (DYN-1)."""
    acme = changes.tenant.id
    for name, failures in (("broken", 3), ("restarted", 1), ("fine", 0)):
        draft = live_draft(name, LiveKind.AGENT)
        made = await declare_live(acme, changes.catalog, draft, by=BY)
        if failures:
            end = AttachmentEnd(fault="https://s3cr3t-canary.example", failures=failures)
            await record_failure(acme, changes.catalog, made.id, end)

    found = (await _examine(sound))["live_sources"]

    assert (found.status, found.detail) == (Verdict.WARNING, "failing: acme: broken (3 examined)")
    assert "source status" in found.mend


async def test_lists_that_clients_refuse_are_named(changes: Changes, sound: Installation) -> None:
    """Ours: refusals by client and tenant, by the form in which tools are listed (CLN-1)."""
    before = (await _examine(sound))["clients"]
    definition: dict[str, Any] = {
        "name": "n" * 58,
        "description": "x" * 1025,
        "inputSchema": {"type": "object", "properties": {}},
    }
    body: dict[str, Any] = {"definition": definition, "handler": {"kind": "static", "content": []}}
    await create_own(changes.tenant.id, changes.catalog, Family.TOOL, body, by=BY)

    found = (await _examine(sound))["clients"]

    assert (before.status, before.detail) == (
        Verdict.OK,
        "every listed tool is within the limits of clients (tenants examined: 1)",
    )
    assert found.status is Verdict.WARNING
    assert "OpenAI API refuses a request with a description of more than 1,024 characters: acme" in found.detail
    assert "Cursor leaves out tools" in found.detail
    assert "tool show" in found.mend


async def test_results_that_clients_refuse_are_named(
    changes: Changes, sound: Installation, database: TestDatabase
) -> None:
    """Ours: a result of more than 25,000 tokens reaches no model of Claude Code; its tool is named (CLN-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    made = CallRecord(
        tenant=tenant, kind=AuditKind.CALL, principal="k", subject="s", tool="", outcome="ok", correlation_id="c"
    )
    sizes = {"list_pets": (533_120, 300_000), "report": (200_000,), "small": (199_999, 0)}
    async with AuditWriter(database.app_url, chain_key=catalog.chain_key) as writer:
        for tool, each in sizes.items():
            for size in each:
                await writer.write(structs.replace(made, tool=tool, result_bytes=size))
        await writer.write(structs.replace(made, tool="doc://x", action="read", result_bytes=300_000))

    found = (await _examine(sound))["clients"]

    text = (
        "results of more than 25,000 tokens (in the last 7 days: list_pets 533,120 bytes, report 200,000 bytes): acme"
    )
    assert (found.status, found.detail) == (Verdict.WARNING, f"Claude Code refuses {text}")
    assert "`summary_threshold`" in found.mend


async def test_sign_in_needs_a_url_of_the_gateway(changes: Changes, sound: Installation) -> None:
    """Ours: cookies, redirect URIs and tokens follow from the public URL; a plain one is a warning (IDN-2)."""
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        await issuers.insert(changes.tenant.id, db, make_issuer("corp"))
    found: dict[str | None, Finding] = {}
    for url in (None, "http://gateway.example", "https://gateway.example", "http://127.0.0.1:8080"):
        found[url] = (await _examine(replace(sound, public_url=url)))["sign_in"]

    verdicts = [finding.status for finding in found.values()]
    assert verdicts == [Verdict.WARNING, Verdict.WARNING, Verdict.OK, Verdict.OK]
    detail = "GATEWAY_PUBLIC_URL is not set, and people of acme sign in or connect accounts (1 examined)"
    assert found[None].detail == detail
    assert "issuer show" in found[None].mend


async def test_access_tokens_without_a_public_url_are_a_warning(changes: Changes, sound: Installation) -> None:
    """Ours: their audience follows the Host header then, so a token for any loopback URL is accepted (IDN-2)."""
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        await issuers.insert(changes.tenant.id, db, replace(make_issuer("corp"), sign_in=None))
    found = (await _examine(replace(sound, public_url=None)))["sign_in"]

    assert (found.status, "any loopback URL are accepted; tenants acme" in found.detail) == (Verdict.WARNING, True)


def _credential_of_accounts() -> StoredCredential:
    status = CredentialStatus(authorization_url="https://a.example", token_url="https://t.example")
    return replace(make_credential("tracker"), kind=CredentialKind.USER, client_id="gw", status=status)


async def test_accounts_need_a_url_of_the_gateway(changes: Changes, sound: Installation) -> None:
    """Ours: a credential whose accounts cannot be connected, because links have no host, is a warning (IDN-3)."""
    stored = _credential_of_accounts()
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        secret = SealedCredential(value="secret")
        await CREDENTIALS.insert_sealed(changes.tenant.id, db, changes.catalog.sealer, stored, secret=secret)
    found = (await _examine(replace(sound, public_url=None)))["sign_in"]

    assert (found.status, "connect accounts" in found.detail) == (Verdict.WARNING, True)
    assert "credential" in found.mend


async def test_accounts_need_issuers_at_which_people_sign_in(changes: Changes, sound: Installation) -> None:
    """Ours: people whose issuer has no `sign_in` cannot open the page of accounts; the issuer is named (IDN-3)."""
    stored, tenant = _credential_of_accounts(), changes.tenant.id
    async with changes.catalog.store.transaction(tenant) as db:
        secret = SealedCredential(value="secret")
        await CREDENTIALS.insert_sealed(tenant, db, changes.catalog.sealer, stored, secret=secret)
        await issuers.insert(tenant, db, make_issuer("corp"))
        await issuers.insert(tenant, db, replace(make_issuer("bots"), url="https://bots.example", sign_in=None))
    found = (await _examine(replace(sound, public_url="https://gateway.example")))["sign_in"]

    assert (found.status, "no sign_in: acme/bots-corp (1 examined)" in found.detail) == (Verdict.WARNING, True), (
        found.detail
    )
    assert "issuer update" in found.mend


async def test_sources_that_are_not_read_are_named(changes: Changes, sound: Installation) -> None:
    """Ours: looks that fail in a row are found without a question to every tenant; no fault is shown (OAS-6)."""
    draft = SourceDraft(name="pets", document=secured("https://pets.example"))
    made = await imports.import_source(changes.tenant.id, changes.catalog, draft, by=BY)
    assert made.source is not None
    seen = Sighting(failures=3, fault="https://s3cr3t-canary.example")
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        await refreshes.save(changes.tenant.id, db, made.source.id, RefreshState(seen=seen))

    found = (await _examine(sound))["sources"]

    assert (found.status, found.detail) == (Verdict.WARNING, "refreshes fail: acme: pets")
    assert "source status" in found.mend


async def test_stored_handlers_that_can_never_answer_are_found(changes: Changes, sound: Installation) -> None:
    """Ours: an object of an older gateway that cannot be read is named, with the place of the fault (RES-1, PRM-2)."""
    reported = {"role": "system", "content": {"type": "text", "text": "{{ a }}"}}
    odd: dict[tuple[Family, str], dict[str, object]] = {
        (Family.TEMPLATE, "docs://{a}"): {"kind": "template", "text": "{{ a }}"},
        (Family.PROMPT, "speaks"): {"kind": "template", "messages": [reported]},
        (Family.TOOL, "odd"): {"kind": "of another version"},
        (Family.TOOL, "looped"): {"kind": "template", "text": "{% for x in list %}{{ x }}{% endfor %}"},
    }
    await create_own(changes.tenant.id, changes.catalog, Family.TOOL, static_tool("hello"), by=BY)
    good = (await _examine(sound))["handlers"]
    now = datetime.now(UTC)
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        for number, ((family, name), handler) in enumerate(odd.items()):
            row = ROWS[family].kind.of(
                **{KEYS[family]: name},
                id=PrimitiveId(f"pri_{number}"),
                definition=msgspec.json.encode({"name": name}),
                handler=msgspec.json.encode(handler),
                created_at=now,
                updated_at=now,
            )
            await ROWS[family].insert(changes.tenant.id, db, row)
    bad = (await _examine(sound))["handlers"]

    assert (good.status, good.detail) == (Verdict.OK, "every stored handler is valid (1 examined)")
    assert bad.status is Verdict.WARNING
    for found in (
        "acme: prompt speaks (/handler/messages/0/role)",
        "acme: resource template pri_0 (/handler/mimeType)",
        "acme: tool odd (/handler/kind)",
        "acme: tool looped (/handler/text)",
    ):
        assert found in bad.detail
    assert "docs://" not in bad.detail
    assert "hello" not in bad.detail
    assert "validate FILE" in bad.mend
