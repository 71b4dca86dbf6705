"""Tenant isolation of the store: every query of every noun module, and the database by itself."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import ModuleType
from typing import Any, cast

import pytest
from sqlalchemy import Table
from sqlalchemy.exc import DBAPIError

from gateway.catalog.identity.operators.operator_grants import OPERATOR_GRANTS
from gateway.catalog.identity.operators.operator_keys import OPERATOR_KEYS
from gateway.domain.audit import AuditFilter, AuditRetention
from gateway.domain.calls.approvals import ApprovalFilter
from gateway.domain.calls.mcp_tasks import TaskState
from gateway.domain.http.idempotency import Attempt
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import (
    TenantId,
    new_account_id,
    new_consent_id,
    new_delivery_id,
    new_grant_id,
    new_issuer_id,
    new_sign_in_id,
    new_task_id,
)
from gateway.domain.live_sources import LiveKind
from gateway.domain.primitives import Family
from gateway.domain.tenancy.access import AccessRules
from gateway.domain.tenancy.ceilings import Ceilings
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.grants import GrantFilter
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.domain.tenancy.keys import KeySecret, Scope
from gateway.domain.tenancy.own_primitives import OwnPrimitive, key_of
from gateway.domain.tenancy.policy import Policy
from gateway.domain.tenancy.sign_ins import SignIn
from gateway.domain.updates.source_versions import RefreshState
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import GatewayError
from gateway.kinds.index import KINDS, OPERATORS_KINDS
from gateway.kinds.members import members_of, status_of
from gateway.store import (
    idempotency,
    jobs,
    name_owners,
    operations,
    primitives,
    secrets,
    tenants,
    tool_aliases,
)
from gateway.store.audit import cuts, deleted_tenants, entries, export_keys, places, retention, signed_heads, sinks
from gateway.store.calls import approvals, credential_uses, mcp_tasks
from gateway.store.calls.approvals import Claim
from gateway.store.calls.credential_uses import CredentialUse
from gateway.store.database.connection import PostgresConnection, connect_app, connect_owner
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.store.identity import (
    accounts,
    consents,
    grants,
    introspection_secrets,
    issuers,
    keys,
    oauth_clients,
    people,
    sign_ins,
)
from gateway.store.kinds import credentials, ownership
from gateway.store.kinds.audit_sinks import SINKS
from gateway.store.kinds.credentials import CREDENTIALS, SealedCredential
from gateway.store.kinds.guardrails import GUARDRAILS
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.live_sources import LIVE_SOURCES
from gateway.store.kinds.oauth_clients import CLIENTS
from gateway.store.kinds.overrides import OVERRIDES
from gateway.store.kinds.primitives import PROMPTS, RESOURCES, TEMPLATES, TOOLS
from gateway.store.kinds.profiles import PROFILES
from gateway.store.kinds.rows import Rows
from gateway.store.kinds.sealed_rows import SealedRows
from gateway.store.kinds.single_row import SingleRow
from gateway.store.kinds.singletons import ACCESS, CEILINGS, EGRESS, POLICY, RETENTION
from gateway.store.kinds.tenants import TENANTS
from gateway.store.kinds.watches import WATCHES
from gateway.store.kinds.webhooks import ENDPOINTS, WEBHOOKS
from gateway.store.live import live_primitives, live_sources
from gateway.store.notifications import deliveries
from gateway.store.secret_keys import registry, rotation_state, sealed_values
from gateway.store.secret_keys.sealed_values import SEALED_TABLES
from gateway.store.secret_keys.tables import metadata as operators_metadata
from gateway.store.secrets import TenantKey
from gateway.store.sources import documents, proposals, refreshes, sources, versions
from gateway.store.sources.proposals import ProposedContent
from gateway.store.tables import metadata
from gateway.store.tables import secrets as secrets_table
from tests.integration.store.samples import (
    NOW,
    SEALER,
    Stored,
    append_change,
    make_cut,
    make_grant_secrets,
    make_operation,
    make_provider_tokens,
    make_signature,
    make_upload,
    store_everything,
)
from tests.support.servers import TestDatabase, TestServers

NEWER = EnvelopeCipher(["n" * 32, "k" * 32])
INTRUDERS = KeySecret(digest=b"intruder's", pepper="intruder's")
_MODULES = (
    tool_aliases,
    approvals,
    credential_uses,
    entries,
    cuts,
    deleted_tenants,
    retention,
    signed_heads,
    places,
    sinks,
    credentials,
    jobs,
    idempotency,
    keys,
    operations,
    name_owners,
    primitives,
    secrets,
    sources,
    proposals,
    documents,
    refreshes,
    versions,
    tenants,
    live_sources,
    live_primitives,
    mcp_tasks,
    deliveries,
    introspection_secrets,
    issuers,
    people,
    sign_ins,
    accounts,
    oauth_clients,
    consents,
    grants,
    sealed_values,
    export_keys,
    ownership,
)
_VICTIM, _INTRUDER = "victim", "intruder"
_SHORT = timedelta(seconds=30)
_LATER = NOW + timedelta(days=36_500)
_CLAIM = Claim(name="c", credentials=b"c", lease=_SHORT)
_DECIDED: Mapping[str, object] = {
    "state": "approved",
    "decided_by": "planted",
    "decider_subject": "planted",
    "comment": "planted",
}

_Call = Callable[[TenantId, Db, Stored], Awaitable[object]]
"""A query made with this tenant id, in a transaction of the intruder's, aimed at the victim's objects."""

_KINDS: Sequence[tuple[Rows[Any], Callable[[Stored], Any]]] = (
    (TOOLS, lambda v: v.primitive),
    (RESOURCES, lambda v: v.others[0]),
    (TEMPLATES, lambda v: v.others[1]),
    (PROMPTS, lambda v: v.others[2]),
    (PROFILES, lambda v: v.profile),
    (GUARDRAILS, lambda v: v.guardrail),
    (SINKS, lambda v: v.sink),
    (WATCHES, lambda v: v.watch),
    (WEBHOOKS, lambda v: v.webhook),
    (ENDPOINTS, lambda v: v.endpoint),
    (CLIENTS, lambda v: v.client),
    (KEYS, lambda v: v.key),
    (OPERATOR_KEYS.rows, lambda v: v.operator_key),
    (OPERATOR_GRANTS.rows, lambda v: v.operator_grant),
    (LIVE_SOURCES, lambda v: v.live),
    (TENANTS, lambda v: v.tenant),
    (CREDENTIALS, lambda v: v.credential),
    (OVERRIDES, lambda v: v.override),
)
"""The rows of each declared kind, and the victim's object of the kind."""


def _calls_of(rows: Rows[Any], of: Callable[[Stored], Any]) -> Mapping[str, _Call]:
    """Every query of the engine, for one kind."""
    column = next(name for name in ("credential", "description", "name") if name in rows.table.c)
    queries: Mapping[str, _Call] = {
        "insert": lambda t, db, v: rows.insert(t, db, replace(of(v), **{rows.kind.keyed: "planted"})),
        "get": lambda t, db, v: rows.get(t, db, of(v).id),
        "page": lambda t, db, v: rows.page(t, db, after=None, limit=100),
        "load": lambda t, db, v: rows.load(t, db),
        "count": lambda t, db, v: rows.count(t, db),
        "names_with": lambda t, db, v: rows.names_with(t, db, column, _value(of(v), column)),
        "named": lambda t, db, v: rows.named(t, db, of(v).name, limit=2),
        "save": lambda t, db, v: rows.save(t, db, of(v)),
        "write": lambda t, db, v: rows.write(t, db, of(v)),
        "remove": lambda t, db, v: rows.remove(t, db, of(v).id),
        "note_secret": lambda t, db, v: rows.note_secret(t, db, of(v).id),
    }
    status = status_of(rows.kind.of)
    if status is not None and _has_columns(rows, status):
        queries = {**queries, "note": lambda t, db, v: rows.note(t, db, of(v).id, status())}
    kept = {name: query for name, query in queries.items() if name not in _not_of(rows)}
    return {f"{rows.kind.name}.{name}": query for name, query in {**kept, **_sealed_calls(rows, of)}.items()}


def _has_columns(rows: Rows[Any], status: Any) -> bool:
    """True if members of the status have columns of their own."""
    return any(one.column in rows.table.c for one in members_of(status))


def _not_of(rows: Rows[Any]) -> set[str]:
    """The queries of the engine that a kind does not have: of a status, or without its secret."""
    without_status = set[str]() if rows.stores_status else {"note", "write"}
    without_status |= set[str]() if rows.kind.keyed == "id" else {"named"}
    without_status |= set[str]() if rows.has_secret_time else {"note_secret"}
    return without_status | ({"insert"} if isinstance(rows, SealedRows) else set[str]())


def _sealed_calls(rows: Rows[Any], of: Callable[[Stored], Any]) -> Mapping[str, _Call]:
    """The queries of the engine for a kind with secrets."""
    if not isinstance(rows, SealedRows):
        return {}
    is_signed = rows.kind.generates
    planted: Any = SigningSecrets(current="planted") if is_signed else SealedCredential(value="planted")
    sealed = cast("Any", rows)
    return {
        "insert_sealed": lambda t, db, v: sealed.insert_sealed(
            t, db, SEALER, replace(of(v), name="planted"), secret=planted
        ),
        "write_sealed": lambda t, db, v: sealed.write_sealed(t, db, SEALER, of(v), secret=planted),
        "open": lambda t, db, v: sealed.open(t, db, SEALER, of(v).id),
    }


_SINGLETONS: Sequence[tuple[SingleRow[Any], Any]] = (
    (EGRESS, Egress(allow=("planted.internal:1",))),
    (RETENTION, AuditRetention(days=77)),
    (CEILINGS, Ceilings(burst=1)),
    (POLICY, Policy()),
    (ACCESS, AccessRules()),
)
"""The row of each singleton, and the object that the intruder writes."""


def _calls_of_single(row: SingleRow[Any], planted: Any) -> Mapping[str, _Call]:
    return {
        f"{row.table.name}.get": lambda t, db, v: row.get(t, db),
        f"{row.table.name}.save": lambda t, db, v: row.save(t, db, planted),
    }


def _value(one: Any, column: str) -> str:
    """The value of a column of the victim's object; a guardrail's credential is that of its hook."""
    holder = one.hook if isinstance(one, Guardrail) and column == "credential" else one
    value: str = key_of(one) if isinstance(one, OwnPrimitive) else getattr(holder, column)
    return value


_CALLS: Mapping[str, _Call] = {
    **{name: query for row, planted in _SINGLETONS for name, query in _calls_of_single(row, planted).items()},
    **{name: query for rows, of in _KINDS for name, query in _calls_of(rows, of).items()},
    "ownership.get": lambda t, db, v: ownership.get(t, db, "profile", v.profile.id),
    "ownership.find": lambda t, db, v: ownership.find(t, db, v.ownership.owner, [("profile", v.profile.id)]),
    "ownership.save": lambda t, db, v: ownership.save(t, db, replace(v.ownership, secrets=b"planted")),
    "ownership.forget_secrets": lambda t, db, v: ownership.forget_secrets(t, db, "profile", v.profile.id),
    "ownership.remove": lambda t, db, v: ownership.remove(t, db, "profile", v.profile.id),
    "tool_aliases.add": lambda t, db, v: tool_aliases.add(t, db, v.source.id, {"GET /planted": f"{_VICTIM}_old"}),
    "tool_aliases.active": lambda t, db, v: tool_aliases.active(t, db),
    "tool_aliases.resolve": lambda t, db, v: tool_aliases.resolve(t, db, [f"{_VICTIM}_old"]),
    "approvals.lock": lambda t, db, v: approvals.lock(t, db),
    "credential_uses.credential_identity": lambda t, db, v: credential_uses.credential_identity(t, db, _uses(v)),
    "approvals.insert": lambda t, db, v: approvals.insert(
        t, db, SEALER, replace(v.approval, tenant=t), fingerprint=b"planted", credentials=b"c"
    ),
    "approvals.get": lambda t, db, v: approvals.get(t, db, SEALER, v.approval.id),
    "approvals.get_attached": lambda t, db, v: approvals.get_attached(
        t, db, SEALER, _VICTIM.encode(), denied_for=_SHORT
    ),
    "approvals.last_run": lambda t, db, v: approvals.last_run(t, db, _VICTIM.encode()),
    "approvals.park": lambda t, db, v: approvals.park(t, db, v.approval.id, "c", lease=_SHORT),
    "approvals.state_of": lambda t, db, v: approvals.state_of(t, db, v.approval.id),
    "approvals.page": lambda t, db, v: approvals.page(
        t, db, SEALER, after=None, limit=100, filters=ApprovalFilter(tool=v.approval.tool)
    ),
    "approvals.count_open": lambda t, db, v: approvals.count_open(t, db, v.approval.subject),
    "approvals.decide": lambda t, db, v: approvals.decide(
        t, db, v.approval.id, decided=_DECIDED, usable=timedelta(days=1)
    ),
    "approvals.claim": lambda t, db, v: approvals.claim(t, db, v.approval.id, _CLAIM),
    "approvals.take_over": lambda t, db, v: approvals.take_over(t, db, v.approval.id, _CLAIM, earlier="c"),
    "approvals.renew": lambda t, db, v: approvals.renew(t, db, ["c"], lease=_SHORT),
    "approvals.finish": lambda t, db, v: approvals.finish(t, db, v.approval.id, "c", outcome="planted"),
    "approvals.supersede": lambda t, db, v: approvals.supersede(t, db, v.approval.id),
    "approvals.supersede_of_tools": lambda t, db, v: approvals.supersede_of_tools(
        t, db, [v.approval.tool], before=_LATER, limit=10
    ),
    "approvals.end_overdue": lambda t, db, v: approvals.end_overdue(t, db, limit=10),
    "approvals.remove_old": lambda t, db, v: approvals.remove_old(t, db, kept=_SHORT, limit=0),
    "approvals.next_due": lambda t, db, v: approvals.next_due(t, db, kept=_SHORT),
    "jobs.bring_forward": lambda t, db, v: jobs.bring_forward(t, db, replace(v.due, due_at=NOW - timedelta(days=1))),
    "entries.append_change": lambda t, db, v: append_change(t, db),
    "entries.last_change": lambda t, db, v: entries.last_change(t, db, "tool"),
    "entries.page": lambda t, db, v: entries.page(t, db, after=None, limit=100),
    "entries.count_calls": lambda t, db, v: entries.count_calls(t, db, [f"{_VICTIM} target"], since=NOW),
    "entries.find_large_results": lambda t, db, v: entries.find_large_results(t, db, least=0, since=NOW),
    "entries.links": lambda t, db, v: entries.links(t, db, after=None, limit=100),
    "entries.matching": lambda t, db, v: entries.matching(t, db, AuditFilter(), after="", limit=100),
    "entries.chain": lambda t, db, v: entries.chain(t, db, "catalog", after=0, limit=100),
    "cuts.apply": lambda t, db, v: cuts.apply(t, db, make_cut(t, "planted")),
    "cuts.page": lambda t, db, v: cuts.page(t, db, after=None, limit=100),
    "cuts.last": lambda t, db, v: cuts.last(t, db, f"{_VICTIM} writer"),
    "cuts.totals": lambda t, db, v: cuts.totals(t, db),
    "deleted_tenants.last_revision": lambda t, db, v: deleted_tenants.last_revision(t, db),
    "deleted_tenants.revision_of": lambda t, db, v: deleted_tenants.revision_of(t, db),
    "deleted_tenants.is_deleted": lambda t, db, v: deleted_tenants.is_deleted(t, db),
    "retention.note_fault": lambda t, db, v: retention.note_fault(t, db, "planted"),
    "retention.old_chains": lambda t, db, v: retention.old_chains(t, db, days=1),
    "retention.count_old": lambda t, db, v: retention.count_old(t, db, "catalog", bound=9, before=_LATER, limit=9),
    "entries.of_ids": lambda t, db, v: entries.of_ids(t, db, [v.audit]),
    "places.ends": lambda t, db, v: places.ends(t, db),
    "places.behind": lambda t, db, v: places.behind(t, db, {}, limit=100),
    "places.oldest_behind": lambda t, db, v: places.oldest_behind(t, db, {}),
    "places.load": lambda t, db, v: places.load(t, db, v.sink.id),
    "places.save": lambda t, db, v: places.save(t, db, v.sink.id, {f"{_VICTIM} writer": 7}),
    "sinks.lock": lambda t, db, v: sinks.lock(t, db, v.sink.id),
    "sinks.note_delivery": lambda t, db, v: sinks.note_delivery(t, db, v.sink.id, entries=7, at=NOW),
    "sinks.note_failure": lambda t, db, v: sinks.note_failure(t, db, v.sink.id, "planted"),
    "signed_heads.last_numbers": lambda t, db, v: signed_heads.last_numbers(t, db),
    "signed_heads.unsigned": lambda t, db, v: signed_heads.unsigned(t, db, signer="mine"),
    "signed_heads.unsigned_of": lambda t, db, v: signed_heads.unsigned_of(t, db, ["catalog"]),
    "signed_heads.append": lambda t, db, v: signed_heads.append(t, db, [make_signature(t, "planted")]),
    "signed_heads.signatures": lambda t, db, v: signed_heads.signatures(t, db, after=None, limit=100),
    "credentials.open_named": lambda t, db, v: credentials.open_named(t, db, SEALER, v.credential.name),
    "credentials.sources_using": lambda t, db, v: credentials.sources_using(t, db, v.credential.name),
    "jobs.schedule": lambda t, db, v: jobs.schedule(t, db, v.due),
    "jobs.reschedule": lambda t, db, v: jobs.reschedule(t, db, v.due.id, seen=NOW, to=NOW),
    "jobs.remove": lambda t, db, v: jobs.remove(t, db, v.due.id),
    "idempotency.insert": lambda t, db, v: idempotency.insert(t, db, v.idempotency),
    "idempotency.get": lambda t, db, v: idempotency.get(t, db, v.idempotency.id),
    "idempotency.lease": lambda t, db, v: idempotency.lease(t, db, _attempt(v), until=NOW),
    "idempotency.commit": lambda t, db, v: idempotency.commit(t, db, _attempt(v)),
    "idempotency.store_response": lambda t, db, v: idempotency.store_response(t, db, _attempt(v), b"planted"),
    "idempotency.release": lambda t, db, v: idempotency.release(t, db, _attempt(v), now=NOW),
    "idempotency.remove_expired": lambda t, db, v: idempotency.remove_expired(t, db, now=NOW + timedelta(days=2)),
    "idempotency.rewrap_some": lambda t, db, v: idempotency.rewrap_some(t, db, NEWER, limit=10),
    "idempotency.usage": lambda t, db, v: idempotency.usage(t, db, is_operators=False),
    "keys.get": lambda t, db, v: keys.get(t, db, v.key.id),
    "keys.of_ids": lambda t, db, v: keys.of_ids(t, db, [v.key.id]),
    "keys.is_granted": lambda t, db, v: keys.is_granted(t, db, Scope.MCP),
    "keys.granted_to_others": lambda t, db, v: keys.granted_to_others(t, db, Scope.MCP, besides="", limit=9),
    "keys.bound_to": lambda t, db, v: keys.bound_to(t, db, v.profile.name),
    "keys.made_by": lambda t, db, v: keys.made_by(t, db, v.key.secret.made_by),
    "keys.note_use": lambda t, db, v: keys.note_use(t, db, NOW, [v.key.id]),
    "keys.renew_secret": lambda t, db, v: keys.renew_secret(t, db, v.key.id, v.key.secret, after=INTRUDERS),
    "live_sources.load_enabled": lambda t, db, v: live_sources.load_enabled(t, db),
    "live_sources.of_credential": lambda t, db, v: live_sources.of_credential(t, db, f"{_VICTIM} named"),
    "live_sources.add_notice": lambda t, db, v: live_sources.add_notice(t, db, v.live.id, "planted", most=50),
    "live_primitives.of_source": lambda t, db, v: live_primitives.of_source(t, db, v.live.id),
    "live_primitives.load": lambda t, db, v: live_primitives.load(t, db),
    "live_primitives.apply_changes": lambda t, db, v: live_primitives.apply_changes(
        t, db, v.live.id, removed=[v.discovered], added=[replace(v.discovered, is_present=False)]
    ),
    "live_primitives.hide": lambda t, db, v: live_primitives.hide(t, db, v.live.id),
    "mcp_tasks.insert": lambda t, db, v: mcp_tasks.insert(
        t, db, replace(v.task, id=new_task_id()), lease=timedelta(0), lifetime=timedelta(0)
    ),
    "mcp_tasks.get": lambda t, db, v: mcp_tasks.get(t, db, v.task.id),
    "mcp_tasks.owned": lambda t, db, v: mcp_tasks.owned(
        t, db, [v.task.id], subject=v.task.subject, profile=v.task.profile
    ),
    "mcp_tasks.usage": lambda t, db, v: mcp_tasks.usage(t, db, subject=v.task.subject),
    "mcp_tasks.begin": lambda t, db, v: mcp_tasks.begin(t, db, v.task.id, holder=v.task.holder),
    "mcp_tasks.lease": lambda t, db, v: mcp_tasks.lease(
        t, db, v.task.id, holder=v.task.holder, until=timedelta(days=1)
    ),
    "mcp_tasks.take": lambda t, db, v: mcp_tasks.take(t, db, v.task.id, holder="planted", until=timedelta(days=1)),
    "mcp_tasks.postpone": lambda t, db, v: mcp_tasks.postpone(
        t, db, v.task.id, holder=v.task.holder, to=timedelta(days=1)
    ),
    "mcp_tasks.wait": lambda t, db, v: mcp_tasks.wait(
        t, db, v.task.id, holder=v.task.holder, approval={"id": "planted"}
    ),
    "mcp_tasks.park": lambda t, db, v: mcp_tasks.park(t, db, v.task.id, holder=v.task.holder, rounds=b"planted"),
    "mcp_tasks.answer": lambda t, db, v: mcp_tasks.answer(t, db, v.task.id, rounds=b"planted", state=TaskState.WORKING),
    "mcp_tasks.end": lambda t, db, v: mcp_tasks.end(
        t, db, v.task.id, state=TaskState.FAILED, message="planted", outcome=b"planted"
    ),
    "mcp_tasks.remove_expired": lambda t, db, v: mcp_tasks.remove_expired(t, db, v.task.id),
    "operations.insert_all": lambda t, db, v: operations.insert_all(t, db, [make_operation(v.source.id, "planted")]),
    "operations.remove_all": lambda t, db, v: operations.remove_all(t, db, v.source.id),
    "operations.names": lambda t, db, v: operations.names(t, db),
    "operations.known_names": lambda t, db, v: operations.known_names(t, db, v.source.id),
    "operations.find_identity": lambda t, db, v: operations.find_identity(t, db, v.source.name, "GET /x"),
    "operations.names_of": lambda t, db, v: operations.names_of(t, db, v.source.id),
    "operations.rename": lambda t, db, v: operations.rename(t, db, v.operation, "planted"),
    "operations.find_named": lambda t, db, v: operations.find_named(t, db, f"{_VICTIM}_tool"),
    "operations.of_source": lambda t, db, v: operations.of_source(t, db, v.source.id),
    "operations.load": lambda t, db, v: operations.load(t, db),
    "operations.find": lambda t, db, v: operations.find(t, db, [v.source.name], [f"{_VICTIM}_tool"]),
    "operations.input_schema": lambda t, db, v: operations.input_schema(t, db, v.operation),
    "operations.input_schemas": lambda t, db, v: operations.input_schemas(t, db, v.source.id),
    "operations.has_shortened": lambda t, db, v: operations.has_shortened(t, db),
    "operations.owner": lambda t, db, v: operations.owner(t, db, f"{_VICTIM}_tool"),
    "operations.page": lambda t, db, v: operations.page(t, db, after=None, limit=100),
    "operations.levels": lambda t, db, v: operations.levels(t, db, [f"{_VICTIM}_tool"]),
    "override.of_source": lambda t, db, v: OVERRIDES.of_source(t, db, v.source.id),
    "override.page_of_source": lambda t, db, v: OVERRIDES.page_of_source(t, db, v.source.id, after=None, limit=100),
    "override.given_names": lambda t, db, v: OVERRIDES.given_names(t, db),
    "primitives.load": lambda t, db, v: primitives.load(t, db),
    "primitives.names": lambda t, db, v: primitives.names(t, db, v.primitive.family),
    "primitives.tool_levels": lambda t, db, v: primitives.tool_levels(t, db),
    "primitives.count": lambda t, db, v: primitives.count(t, db),
    "primitives.users": lambda t, db, v: primitives.users(t, db, f"credential:{v.credential.name}"),
    "secrets.tenant_key": lambda t, db, v: secrets.tenant_key(t, db, SEALER),
    "secrets.save": lambda t, db, v: secrets.save(
        t, db, SEALER, source=v.source.id, scheme="planted", credential=Credential(value="planted")
    ),
    "secrets.references": lambda t, db, v: secrets.references(t, db, v.source.id),
    "secrets.load": lambda t, db, v: secrets.load(t, db, SEALER, v.source.id),
    "secrets.remove_all": lambda t, db, v: secrets.remove_all(t, db, v.source.id),
    "secrets.current_key": lambda t, db, v: secrets.current_key(t, db, NEWER),
    "secrets.remove_unused_keys": lambda t, db, v: secrets.remove_unused_keys(t, db, NEWER, [secrets_table]),
    "sealed_values.reseal_batch": lambda t, db, v: _reseal(t, db),
    "export_keys.keep": lambda t, db, v: export_keys.keep(t, db, NEWER),
    "export_keys.verify_keys": lambda t, db, v: export_keys.verify_keys(t, db, SEALER),
    "sources.insert": lambda t, db, v: sources.insert(replace(v.source, tenant=t), db),
    "sources.get": lambda t, db, v: sources.get(t, db, v.source.id),
    "sources.page": lambda t, db, v: sources.page(t, db, after=None, limit=100),
    "sources.save": lambda t, db, v: sources.save(replace(v.source, tenant=t, title="intruder's"), db),
    "sources.remove": lambda t, db, v: sources.remove(t, db, v.source.id),
    "proposals.insert": lambda t, db, v: proposals.insert(
        t, db, v.proposal, ProposedContent(document=b"", compilation=b"")
    ),
    "proposals.get": lambda t, db, v: proposals.get(t, db, v.source.id),
    "proposals.content": lambda t, db, v: proposals.content(t, db, v.source.id, v.proposal.number),
    "proposals.remove": lambda t, db, v: proposals.remove(t, db, v.source.id),
    "refreshes.get": lambda t, db, v: refreshes.get(t, db, v.source.id),
    "refreshes.failing": lambda t, db, v: refreshes.failing(t, db, failures=0),
    "refreshes.waiting": lambda t, db, v: refreshes.waiting(t, db, before=_LATER),
    "refreshes.save": lambda t, db, v: refreshes.save(t, db, v.source.id, RefreshState(url="planted")),
    "versions.page": lambda t, db, v: versions.page(t, db, v.source, below=None, limit=100),
    "versions.numbers": lambda t, db, v: versions.numbers(t, db, v.source.id),
    "versions.remove": lambda t, db, v: versions.remove(t, db, v.source.id, [1]),
    "versions.digest": lambda t, db, v: versions.digest(t, db, v.source.id, 1),
    "versions.insert": lambda t, db, v: versions.insert(
        t, db, source=v.source.id, number=2, content=versions.VersionContent(document=b"", report=b"")
    ),
    "versions.report": lambda t, db, v: versions.report(t, db, v.source.id, 1),
    "versions.document": lambda t, db, v: versions.document(t, db, v.source.id, 1),
    "versions.outline": lambda t, db, v: versions.outline(t, db, v.source.id, 1),
    "documents.save": lambda t, db, v: documents.save(t, db, make_upload(_VICTIM)),
    "documents.get": lambda t, db, v: documents.get(t, db, make_upload(_VICTIM).digest),
    "documents.of_version": lambda t, db, v: documents.of_version(t, db, make_upload(_VICTIM).digest),
    "documents.exists": lambda t, db, v: documents.exists(t, db, make_upload(_VICTIM).digest),
    "documents.extend": lambda t, db, v: documents.extend(t, db, make_upload(_VICTIM).digest, NOW),
    "documents.sizes": lambda t, db, v: documents.sizes(t, db),
    "documents.next_expiry": lambda t, db, v: documents.next_expiry(t, db),
    "documents.remove": lambda t, db, v: documents.remove(t, db, [make_upload(_VICTIM).digest]),
    "documents.remove_expired": lambda t, db, v: documents.remove_expired(t, db, _LATER),
    "sources.queried": lambda t, db, v: sources.queried(t, db),
    "tenants.lock": lambda t, db, v: tenants.lock(v.tenant.id, db),
    "tenants.advance": lambda t, db, v: tenants.advance(v.tenant.id, db),
    "issuers.insert": lambda t, db, v: issuers.insert(
        t, db, replace(v.issuer, id=new_issuer_id(), name="planted", url="https://planted.example")
    ),
    "issuers.get": lambda t, db, v: issuers.get(t, db, v.issuer.id),
    "issuers.find_url": lambda t, db, v: issuers.find_url(t, db, v.issuer.url),
    "issuers.page": lambda t, db, v: issuers.page(t, db, after=None, limit=100),
    "issuers.count": lambda t, db, v: issuers.count(t, db),
    "issuers.save": lambda t, db, v: issuers.save(t, db, replace(v.issuer, jwks_url="planted")),
    "issuers.remove": lambda t, db, v: issuers.remove(t, db, v.issuer.id),
    "issuers.save_secret": lambda t, db, v: issuers.save_secret(t, db, SEALER, v.issuer, secret="planted"),
    "issuers.open_secret": lambda t, db, v: issuers.open_secret(t, db, SEALER, v.issuer),
    "introspection_secrets.save": lambda t, db, v: introspection_secrets.save(
        t, db, SEALER, v.issuer, secret="planted"
    ),
    "introspection_secrets.open_one": lambda t, db, v: introspection_secrets.open_one(t, db, SEALER, v.issuer),
    "introspection_secrets.remove": lambda t, db, v: introspection_secrets.remove(t, db, v.issuer.id),
    "sign_ins.insert": lambda t, db, v: sign_ins.insert(
        t, db, SEALER, _planted(v), tokens=make_provider_tokens("planted")
    ),
    "sign_ins.get": lambda t, db, v: sign_ins.get(t, db, v.sign_in.id),
    "sign_ins.open_tokens": lambda t, db, v: sign_ins.open_tokens(t, db, SEALER, v.sign_in),
    "sign_ins.take_lease": lambda t, db, v: sign_ins.take_lease(t, db, v.sign_in.id, "planted", now=NOW, until=_LATER),
    "sign_ins.end_lease": lambda t, db, v: sign_ins.end_lease(t, db, v.sign_in.id, "l"),
    "sign_ins.save": lambda t, db, v: sign_ins.save(
        t, db, SEALER, v.sign_in, tokens=make_provider_tokens("planted"), lease="l"
    ),
    "sign_ins.end_session": lambda t, db, v: sign_ins.end_session(t, db, v.sign_in.id, at=NOW),
    "sign_ins.end_oldest": lambda t, db, v: sign_ins.end_oldest(t, db, v.person.id, limit=0, at=NOW),
    "sign_ins.remove_ended": lambda t, db, v: sign_ins.remove_ended(t, db, now=_LATER),
    "accounts.enter": lambda t, db, v: accounts.enter(
        t, db, SEALER, replace(v.account, id=new_account_id()), tokens=make_provider_tokens("planted")
    ),
    "accounts.owner_of": lambda t, db, v: accounts.owner_of(t, db, v.grant.id),
    "accounts.find": lambda t, db, v: accounts.find(t, db, v.account.owner, v.account.credential),
    "accounts.get": lambda t, db, v: accounts.get(t, db, v.account.id),
    "accounts.page": lambda t, db, v: accounts.page(t, db, after=None, limit=100),
    "accounts.count": lambda t, db, v: accounts.count(t, db),
    "accounts.open_tokens": lambda t, db, v: accounts.open_tokens(t, db, SEALER, v.account),
    "accounts.take_lease": lambda t, db, v: accounts.take_lease(t, db, v.account.id, "planted", now=NOW, until=_LATER),
    "accounts.end_lease": lambda t, db, v: accounts.end_lease(t, db, v.account.id, "l"),
    "accounts.save": lambda t, db, v: accounts.save(
        t, db, SEALER, v.account, tokens=make_provider_tokens("planted"), lease="l"
    ),
    "accounts.remove": lambda t, db, v: accounts.remove(t, db, v.account.id),
    "accounts.remove_of": lambda t, db, v: accounts.remove_of(t, db, v.account.owner),
    "accounts.remove_other_terms": lambda t, db, v: accounts.remove_other_terms(t, db, v.account.credential, None),
    "oauth_clients.count_dynamic": lambda t, db, v: oauth_clients.count_dynamic(t, db),
    "oauth_clients.remove_unused": lambda t, db, v: oauth_clients.remove_unused(
        t, db, registered_before=_LATER, used_before=_LATER
    ),
    "oauth_clients.oldest_unused": lambda t, db, v: oauth_clients.oldest_unused(t, db),
    "oauth_clients.oldest_dates": lambda t, db, v: oauth_clients.oldest_dates(t, db),
    "consents.enter": lambda t, db, v: consents.enter(t, db, replace(v.consent, id=new_consent_id(), scopes=("x",))),
    "consents.find": lambda t, db, v: consents.find(t, db, v.consent),
    "consents.get": lambda t, db, v: consents.get(t, db, v.consent.id),
    "consents.page": lambda t, db, v: consents.page(t, db, after=None, limit=100, person=v.person.id),
    "consents.remove": lambda t, db, v: consents.remove(t, db, v.consent.id),
    "consents.remove_client": lambda t, db, v: consents.remove_client(t, db, v.client.id),
    "grants.insert": lambda t, db, v: grants.insert(
        t, db, replace(v.grant, id=new_grant_id()), make_grant_secrets("planted")
    ),
    "grants.get": lambda t, db, v: grants.get(t, db, v.grant.id, locked=True),
    "grants.secrets_of": lambda t, db, v: grants.secrets_of(t, db, v.grant.id),
    "grants.use_code": lambda t, db, v: grants.use_code(t, db, v.grant.id, at=_LATER),
    "grants.rotate": lambda t, db, v: grants.rotate(
        t, db, v.grant, make_grant_secrets("planted"), before=f"{_VICTIM} refresh".encode()
    ),
    "grants.note_use": lambda t, db, v: grants.note_use(t, db, replace(v.grant, used_at=_LATER)),
    "grants.exist_for": lambda t, db, v: grants.exist_for(t, db, v.grant.client),
    "grants.page": lambda t, db, v: grants.page(t, db, after=None, limit=100, person=v.person.id),
    "grants.revoke": lambda t, db, v: grants.revoke(
        t, db, GrantFilter(person_id=v.person.id), at=NOW, reason="planted"
    ),
    "grants.beyond": lambda t, db, v: grants.beyond(t, db, v.person.id, limit=0),
    "grants.remove_ended": lambda t, db, v: grants.remove_ended(
        t, db, ended_before=_LATER, codes_expired_before=_LATER
    ),
    "grants.credential": lambda t, db, v: grants.credential(t, db, v.grant.id),
    "people.enter": lambda t, db, v: people.enter(t, db, replace(v.person, tenant=t, expires_at=_LATER)),
    "people.get": lambda t, db, v: people.get(t, db, v.person.id),
    "people.page": lambda t, db, v: people.page(t, db, after=None, limit=100),
    "people.count": lambda t, db, v: people.count(t, db),
    "people.forget_ended": lambda t, db, v: people.forget_ended(t, db, now=_LATER, kept=timedelta()),
    "people.set_denied": lambda t, db, v: people.set_denied(t, db, v.person.id, at=NOW),
    "people.is_denied": lambda t, db, v: people.is_denied(t, db, v.person.principal),
    "people.ids_of_subject": lambda t, db, v: people.ids_of_subject(t, db, v.person.principal),
    "people.ids_of_issuer": lambda t, db, v: people.ids_of_issuer(t, db, v.issuer.id, limit=10),
    "deliveries.enqueue": lambda t, db, v: deliveries.enqueue(t, db, "approval.requested", {"tool": "planted"}),
    "deliveries.insert": lambda t, db, v: deliveries.insert(t, db, replace(v.delivery, id=new_delivery_id())),
    "deliveries.is_full": lambda t, db, v: deliveries.is_full(t, db, v.endpoint.id),
    "deliveries.get": lambda t, db, v: deliveries.get(t, db, v.endpoint.id, v.delivery.id),
    "deliveries.page": lambda t, db, v: deliveries.page(t, db, v.endpoint.id, after=None, limit=100),
    "deliveries.claim": lambda t, db, v: deliveries.claim(t, db, v.endpoint.id, now=NOW, until=NOW, limit=10),
    "deliveries.settle": lambda t, db, v: deliveries.settle(
        t, db, replace(v.delivery, error="planted"), seen=v.delivery
    ),
    "deliveries.release": lambda t, db, v: deliveries.release(
        t, db, v.endpoint.id, [replace(v.delivery, due_at=NOW - timedelta(1))]
    ),
    "deliveries.clean_up": lambda t, db, v: deliveries.clean_up(
        t, db, v.endpoint.id, now=NOW, expired_before=NOW + timedelta(10)
    ),
    "deliveries.next_times": lambda t, db, v: deliveries.next_times(t, db, v.endpoint.id),
    "tenants.revision": lambda t, db, v: tenants.revision(v.tenant.id, db),
}


def _uses(stored: Stored) -> CredentialUse:
    return CredentialUse(source=stored.source.id, primitive=stored.primitive.id, live_source=stored.live.name)


def _planted(stored: Stored) -> SignIn:
    return replace(stored.sign_in, id=new_sign_in_id())


def _attempt(stored: Stored) -> Attempt:
    return Attempt(record=stored.idempotency.id, id=stored.idempotency.attempt)


_ACROSS_TENANTS = {
    "keys.find",
    "grants.find",
    "issuers.find",
    "deleted_tenants.page",
    "tenants.find",
    "tenants.page",
    "tenants.revisions",
    "tenants.slugs",
    "tenants.insert_installation",
    "jobs.page",
    "name_owners.find_owners",
    "live_sources.all_enabled",
}
"""The only queries that see several tenants: the eight functions of the definer, and one that sets each in turn. The
row of the installation is of no tenant; row-level security refuses it in a transaction of any other.
"""


async def _reseal(tenant: TenantId, db: Db) -> object:
    """Move all sealed values that the transaction sees to a new data key."""
    key = await secrets.current_key(tenant, db, NEWER)
    assert key is not None or tenant.startswith("ten_")
    wanted = key or TenantKey("dek_planted", NEWER.new_tenant_key(tenant))
    return [await sealed_values.reseal_batch(tenant, db, NEWER, one, to=wanted, after="") for one in SEALED_TABLES]


def _queries() -> dict[str, Callable[..., object]]:
    def of(module: ModuleType) -> dict[str, Callable[..., object]]:
        short = module.__name__.rpartition(".")[2]
        members = inspect.getmembers(module, inspect.iscoroutinefunction)
        own = [(name, member) for name, member in members if member.__module__ == module.__name__]
        return {f"{short}.{name}": member for name, member in own if not name.startswith("_")}

    derived = {
        f"{rows.kind.name}.{name}": query
        for rows, _ in _KINDS
        for name, query in inspect.getmembers(rows, inspect.iscoroutinefunction)
        if not name.startswith("_") and name not in _not_of(rows)
    }
    derived |= {f"{row.table.name}.{name}": getattr(row, name) for row, _ in _SINGLETONS for name in ("get", "save")}
    return derived | {name: member for module in _MODULES for name, member in of(module).items()}


def test_every_query_is_in_this_file() -> None:
    """Ours: a new query without an isolation test fails here."""
    assert set(_queries()) == set(_CALLS) | _ACROSS_TENANTS


def test_every_kind_is_in_this_file() -> None:
    """Ours: a kind whose queries are not tried here fails until the victim has an object of it (TEN-1)."""
    assert {rows.kind.name for rows, _ in _KINDS} == {kind.name for kind in (*KINDS, *OPERATORS_KINDS)}


def test_every_query_takes_the_tenant_first() -> None:
    """Ours: the first parameter names the tenant, as an id or inside the object to write."""
    queries = {name: query for name, query in _queries().items() if name not in _ACROSS_TENANTS}
    first = {name: next(iter(inspect.signature(query).parameters)) for name, query in queries.items()}

    assert {name for name, parameter in first.items() if parameter not in {"tenant", "key", "source"}} == set()


@dataclass(slots=True)
class Wall:
    """A database with a victim that no test changes, and an intruder that is replaced when a query changed it."""

    database: TestDatabase
    superuser: PostgresConnection
    store: Store
    victim: Stored
    rows: Mapping[str, Sequence[Mapping[str, object]]]
    """Everything that the victim has."""
    intruder: Stored
    digests: Mapping[str, str]
    """Digests of the rows of both."""

    async def changed(self) -> set[TenantId]:
        """Tenants whose rows differ from what was stored for them."""
        tenants = (self.victim.tenant.id, self.intruder.tenant.id)
        found = await _digests_of(self.superuser, tenants)
        return {tenant for tenant in tenants if found[tenant] != self.digests[tenant]}

    async def replace_intruder(self, slug: str) -> None:
        """Store another intruder."""
        self.intruder = await store_everything(self.store, slug)
        self.digests = await _digests_of(self.superuser, (self.victim.tenant.id, self.intruder.tenant.id))


@pytest.fixture(scope="module")
async def wall(servers: TestServers) -> AsyncGenerator[Wall]:
    with servers.database() as database:
        superuser = await connect_owner(database.superuser_url)
        async with Store(database.app_url) as store:
            victim, intruder = await store_everything(store, _VICTIM), await store_everything(store, _INTRUDER)
            digests = await _digests_of(superuser, (victim.tenant.id, intruder.tenant.id))
            rows = await _rows_of(superuser, victim.tenant.id)
            yield Wall(database, superuser, store, victim, rows, intruder, digests)
        await superuser.close()


@pytest.mark.parametrize("name", sorted(_CALLS))
async def test_a_query_neither_shows_nor_changes_another_tenants_rows(wall: Wall, name: str) -> None:
    """Ours: neither the wrong tenant id nor foreign object ids get anywhere in another tenant's transaction."""
    intruder = wall.intruder.tenant.id
    for claimed in (wall.victim.tenant.id, intruder):
        shown = await _try(wall.store, intruder, claimed, _CALLS[name], wall.victim)
        assert _VICTIM not in repr(shown)

    changed = await wall.changed()
    if intruder in changed:
        await wall.replace_intruder(f"{_INTRUDER} {name}")
    assert wall.victim.tenant.id not in changed


async def test_only_the_definers_functions_see_past_the_wall(store: Store) -> None:
    """Ours: without a tenant, keys by id, the list of tenants, their revisions, due work and live sources are all."""
    victim = await store_everything(store, _VICTIM)
    intruder = await store_everything(store, _INTRUDER)

    async with store.unscoped() as db:
        assert await keys.find(db, [victim.key.id]) == {victim.key.id: (victim.key, _VICTIM)}
        granted = await grants.find(db, [victim.grant.id, intruder.key.id])
        assert granted == {victim.grant.id: (replace(victim.person, id=victim.grant.id), _VICTIM)}
        found = await issuers.find(db, [_VICTIM, "missing"])
        assert found == {_VICTIM: TenantIssuers(tenant=victim.tenant.id, issuers=(victim.issuer,))}
        assert await tenants.find(db, _VICTIM) == replace(victim.tenant, version=1)
        slugs = [tenant.slug for tenant in await tenants.page(db, after=None, limit=10)]
        [deleted] = await deleted_tenants.page(db, slug=f"{_VICTIM} deleted", limit=10)
        assert deleted.id == victim.tenant.id
        assert len(await deleted_tenants.page(db, after=(deleted.slug, deleted.id), limit=10)) < 2
        missing = TenantId("ten_missing")
        assert await tenants.revisions(db, [victim.tenant.id, missing]) == {victim.tenant.id: 1}
        places = [(Family.TOOL, f"{_VICTIM}_tool"), (Family.PROMPT, f"{_VICTIM}_tool")]
        owned = await name_owners.find_owners(db, places, None)
        assert await name_owners.find_owners(db, places, [_INTRUDER]) == []
        due = await jobs.page(db, until=NOW, limit=10, of_each=10)
        none_due = await jobs.page(db, until=NOW - timedelta(seconds=1), limit=10, of_each=10)
        live = await live_sources.all_enabled(db)
        assert await LIVE_SOURCES.page(victim.tenant.id, db, after=None, limit=10) == []
        assert await TENANTS.get(victim.tenant.id, db, victim.tenant.id) is None
        assert await KEYS.page(victim.tenant.id, db, after=None, limit=10) == []
        assert await tenants.revision(intruder.tenant.id, db) is None

    assert slugs == [_INTRUDER, _VICTIM]
    assert {work.tenant for work in due} == {victim.tenant.id, intruder.tenant.id}
    assert none_due == []
    expected = [(each.tenant.id, each.live.id, LiveKind.MCP) for each in (victim, intruder)]
    assert sorted(live) == sorted(expected)
    assert [(one.slug, one.family, one.name) for one in owned] == [(_VICTIM, Family.TOOL, f"{_VICTIM}_tool")]
    assert owned[0].owner == f"source:{victim.source.name}"


@pytest.mark.parametrize("role", ["app", "owner"])
async def test_raw_sql_without_a_tenant_sees_nothing(wall: Wall, role: str) -> None:
    """Ours: a forgotten tenant shows nothing, to the app's role and to the owner alike, and changes nothing."""
    connect, url = {
        "app": (connect_app, wall.database.app_url),
        "owner": (connect_owner, wall.database.owner_url),
    }[role]
    connection = await connect(url)
    unset = {table: await connection.fetchval(f"select count(*) from {table}") for table in metadata.tables}
    await connection.execute("begin; select set_config('app.tenant', 'ten_other', true); commit")
    ended = {table: await connection.fetchval(f"select count(*) from {table}") for table in metadata.tables}
    await connection.close()

    assert unset == ended == dict.fromkeys(metadata.tables, 0)
    stored = {table: len(rows) for table, rows in wall.rows.items()}
    assert stored == dict.fromkeys(metadata.tables, 1) | {"keys": 2, "primitives": 4}  # a person is a key, too


async def test_a_foreign_tenant_cannot_be_written(wall: Wall) -> None:
    """Ours: PostgreSQL refuses a row of another tenant, on every table."""
    states: dict[str, object] = {}
    for name, table in metadata.tables.items():
        with pytest.raises(DBAPIError) as refused:
            async with wall.store.transaction(wall.intruder.tenant.id) as db:
                await db.execute(table.insert().values(**wall.rows[name][0]))
        states[name] = getattr(refused.value.orig, "sqlstate", None)

    assert states == dict.fromkeys(metadata.tables, "42501")


@pytest.mark.parametrize(
    "attempt",
    [
        "set role gateway_owner",
        "set role postgres",
        "set role gateway_definer",
        "set session authorization postgres",
        "alter table {table} disable row level security",
        "alter table {table} no force row level security",
        "drop policy own_rows on {table}",
        "create policy mine on {table} using (true)",
        "truncate {table}",
        "drop table {table}",
        "create table mine (n int)",
        "create function mine() returns int language sql as 'select 1'",
        "create trigger mine before insert on {table} execute function suppress_redundant_updates_trigger()",
        "update audit_entries set outcome = 'ok'",
        "delete from audit_entries",
        "update audit_heads set seq = 1",
        "delete from audit_heads",
        "update audit_cuts set last = 1",
        "delete from audit_cuts",
        "update source_versions set document = ''",
        "update alembic_version set version_num = '9999'",
        "delete from alembic_version",
        "alter role gateway_app bypassrls",
        "copy {table} from program 'true'",
    ],
)
async def test_the_apps_role_cannot_open_the_wall(wall: Wall, attempt: str) -> None:
    """Ours: SQL in the app's connection does not bypass row-level security."""
    connection = await connect_app(wall.database.app_url)
    for table in sorted(metadata.tables) if "{table}" in attempt else [""]:
        with pytest.raises(Exception, match=r"permission denied|must be|cannot|not have privileges") as refused:
            await connection.execute(attempt.format(table=table))
        assert getattr(refused.value, "sqlstate", None) == "42501"
    await connection.close()


async def test_turning_row_security_off_turns_queries_off(wall: Wall) -> None:
    """PostgreSQL: `row_security = off` makes a query fail rather than show everything."""
    connection = await connect_app(wall.database.app_url)

    await connection.execute("set row_security = off")
    with pytest.raises(Exception, match="row-level security policy"):
        await connection.fetch("select * from tenants")
    await connection.close()


async def test_every_table_of_the_database_is_behind_the_wall(wall: Wall) -> None:
    """Ours: no table but the migrations' own lacks forced row-level security, and none is missing in the code."""
    rows = await wall.superuser.fetch(
        "select relname, relrowsecurity and relforcerowsecurity as walled from pg_class "
        "where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')"
    )

    walled = {str(row["relname"]): row["walled"] for row in rows}
    assert walled.pop("alembic_version") is False
    assert walled == dict.fromkeys([*metadata.tables, *operators_metadata.tables], True)


async def test_only_the_app_may_call_the_definers_functions(wall: Wall) -> None:
    """Ours: the eleven ways past the wall, and the cut of a trail, are granted to one role, with a fixed path."""
    rows = await wall.superuser.fetch(
        "select p.proname as name, pg_get_userbyid(p.proowner) as owner, p.proconfig as settings, "
        "has_function_privilege('gateway_app', p.oid, 'execute') as app, "
        "exists (select from aclexplode(p.proacl) a where a.grantee = 0) as everybody "
        "from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prosecdef"
    )

    assert {str(row["name"]) for row in rows} == {
        "api_keys_under",
        "cut_audit",
        "grant_by_id",
        "issuers_by_slug",
        "key_by_id",
        "list_deleted_tenants",
        "list_live_sources",
        "list_tenants",
        "list_due_work",
        "secret_key_uses",
        "slugs_of_tenants",
        "tenant_revisions",
    }
    for row in rows:
        assert (row["owner"], row["app"], row["everybody"]) == ("gateway_definer", True, False)
        assert row["settings"] == ["search_path=pg_catalog, pg_temp"]


async def _try(store: Store, scope: TenantId, claimed: TenantId, call: _Call, victim: Stored) -> object:
    """Rows that the call shows; a refusal by us or by PostgreSQL's policies shows nothing."""
    try:
        async with store.transaction(scope) as db:
            return await call(claimed, db, victim)
    except GatewayError:
        return None
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "42501":
            raise
        return None


async def _rows_of(superuser: PostgresConnection, tenant: TenantId) -> dict[str, list[dict[str, object]]]:
    """Everything a tenant has, as only a superuser can see it."""
    found: dict[str, list[dict[str, object]]] = {}
    for name, table in metadata.tables.items():
        query = f"select {_columns(table)} from {name} where {'id' if name == 'tenants' else 'tenant_id'} = $1"
        rows = [dict(row) for row in await superuser.fetch(query, tenant)]
        found[name] = sorted(rows, key=repr)  # the server orders no rows by itself
    return found


async def _digests_of(superuser: PostgresConnection, tenants: Sequence[TenantId]) -> dict[str, str]:
    """A digest of everything that each tenant has."""
    rows = " union all ".join(
        f"select '{name}' || r::text as row from (select {_columns(table)} from {name}"
        f" where {'id' if name == 'tenants' else 'tenant_id'} = $1) as r"
        for name, table in metadata.tables.items()
    )
    query = f"select md5(string_agg(row, ' ' order by row)) from ({rows}) as rows"
    return {tenant: str(await superuser.fetchval(query, tenant)) for tenant in tenants}


def _columns(table: Table) -> str:
    return ", ".join(column.name for column in table.columns)


@pytest.mark.parametrize("table", sorted(operators_metadata.tables))
async def test_the_operators_tables_are_hidden_from_transactions_of_tenants(wall: Wall, table: str) -> None:
    """Ours: a tenant's transaction neither reads nor changes the register of secret keys (IDN-5, TEN-5)."""
    cipher = EnvelopeCipher(["k" * 32])
    async with wall.store.unscoped() as db:
        await registry.register(db, cipher.names)
        await registry.report(db, "replica", cipher.names, kept_for=_SHORT)
        await rotation_state.start(db, cipher.names[0])
    before = await wall.superuser.fetch(f"select * from {table}")
    assert len(before) == 1
    connection = await connect_app(wall.database.app_url)
    await connection.execute(f"begin; select set_config('app.tenant', '{wall.victim.tenant.id}', true)")
    assert await connection.fetchval(f"select count(*) from {table}") == 0
    assert await connection.execute(f"delete from {table}") == "DELETE 0"
    await connection.close()
    assert await wall.superuser.fetch(f"select * from {table}") == before
