"""Live sources of a tenant: special checks, and the attachment that ends with a change.

A changed live source is detached: its primitives are hidden until it is attached under its new settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.credentials import find_obstacle
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.live.overview import read_statuses
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import CatalogContext, OpenChanges, announce
from gateway.definitions.live.settings import validate_settings
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.events import LiveSourceChanged
from gateway.domain.http.headers import is_private
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.json_access import as_object, point
from gateway.domain.live_sources import LiveKind, LiveSource, LiveStatus
from gateway.domain.primitives import Family
from gateway.domain.tenancy.principals import Operator
from gateway.errors import DefinitionInvalid, Fault, Forbidden, NameConflict, NameTaken, ReferenceMissing
from gateway.kinds.members import settable, values_of
from gateway.kinds.sources import LIVE_SOURCE
from gateway.store import operations
from gateway.store.engine import Db
from gateway.store.kinds.live_sources import LIVE_SOURCES as ROWS
from gateway.store.kinds.singletons import POLICY
from gateway.store.live import live_primitives
from gateway.store.sources import sources
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header

_CONNECTION_HEADERS = frozenset({"accept", "authorization", "content-type", "last-event-id"})
_PROTOCOL_HEADER_PREFIX = "mcp-"
_OWN_KINDS = frozenset({LiveKind.NEOVIM, LiveKind.AGENT})
"""The kinds whose definitions the tenant's own programs provide; without a word, they need no review."""


def is_same(one: LiveSource, another: LiveSource) -> bool:
    """True if two objects declare the same live source, whatever their status."""
    members = settable(LIVE_SOURCE.of)
    return values_of(one, members) == values_of(another, members)


async def reattach_live_source(tenant: TenantId, catalog: CatalogContext, name: str) -> LiveSource:
    """Make replicas reattach a live source now, before its next scheduled attempt.

    Raises:
        NotFound: the tenant has no such live source.
    """
    source = await LIVE_SOURCES.get(tenant, catalog, name)
    await announce(catalog, LiveSourceChanged(tenant=tenant, source=source.id))
    return source


async def _complete(opened: OpenChanges, current: LiveSource | None, wanted: LiveSource) -> LiveSource:
    """Return the live source with the settings as stored."""
    _check_author(opened, wanted.kind)
    settings = validate_settings(wanted.kind, _with_kept_values(current, wanted))
    accepts = wanted.kind in _OWN_KINDS if wanted.accepts_changes is None else wanted.accepts_changes
    return replace(wanted, tenant=opened.tenant, settings=settings, accepts_changes=accepts)


def _with_kept_values(current: LiveSource | None, wanted: LiveSource) -> Mapping[str, object]:
    """Return the settings with the stored value of each variable for which null was sent.

    Raises:
        DefinitionInvalid: there is none, or the program that receives the values is another one.
    """
    sent = as_object(wanted.settings.get("env"))
    if sent is None or None not in sent.values():
        return wanted.settings
    stored = {} if current is None else as_object(current.settings.get("env")) or {}
    is_receiver = current is not None and current.settings.get("argv") == wanted.settings.get("argv")
    faults = [
        Fault(pointer="/settings/env" + point(name), reason="give the value again: the program differs, or has none")
        for name, value in sent.items()
        if value is None and not (is_receiver and name in stored)
    ]
    if faults:  # guard: live-env-receiver
        raise DefinitionInvalid(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
    kept = {name: stored.get(name) if value is None else value for name, value in sent.items()}
    return {**wanted.settings, "env": kept}


def _check_author(opened: OpenChanges, kind: LiveKind) -> None:
    if kind is not LiveKind.COMMAND:
        return
    if not isinstance(opened.by.caller, Operator):  # guard: live-command-operator
        raise Forbidden("only the operator may declare live sources of the kind command", rule=OPERATOR_RULE)
    if not opened.catalog.options.live_commands:  # guard: live-command-setting
        raise Forbidden("this gateway starts no commands; the operator can set GATEWAY_LIVE_COMMANDS=true")


async def _check(opened: OpenChanges, current: LiveSource | None, wanted: LiveSource) -> None:
    """Refuse the name of a source, and a credential, URL or header that the live source may not use."""
    tenant, db = opened.tenant, opened.db
    if current is None and await sources.get(tenant, db, wanted.name) is not None:
        conflict = NameConflict(name=wanted.name, owner=f"source:{wanted.name}")
        raise NameTaken(f"a source {wanted.name} exists already", conflicts=[conflict])
    faults: list[Fault] = []
    origin = None
    if wanted.kind is LiveKind.MCP:
        origin = find_origin(str(wanted.settings["url"]))
        allowed = (await POLICY.get(tenant, db)).http_origins
        if origin is None:
            faults.append(Fault(pointer="/settings/url", reason="the gateway cannot send requests to this URL"))
        elif allowed is not None and origin not in allowed:
            faults.append(
                Fault(pointer="/settings/url", reason="the tenant's policy does not allow requests to this origin")
            )
        faults += _header_faults(wanted.settings.get("headers", {}))
    for member, of_caller in (("credential", False), ("caller_credential", True)):
        name = getattr(wanted, member)
        reason = None if name is None else await _credential_obstacle(tenant, db, name, origin, of_caller=of_caller)
        if reason is not None:
            faults.append(Fault(pointer=f"/{member}", reason=reason))
    if faults:
        raise ReferenceMissing(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)


async def _credential_obstacle(
    tenant: TenantId, db: Db, name: str, origin: str | None, *, of_caller: bool
) -> str | None:
    if origin is None:
        return "only live sources of the kind mcp send a credential"
    return await find_obstacle(tenant, db, name, origin, of_caller=of_caller)


def _header_faults(headers: object) -> Sequence[Fault]:
    header_values = as_object(headers) or {}
    return [
        Fault(
            pointer="/settings" + point("headers", name),
            reason="cannot be set here: the gateway sets it, it is secret, or it is invalid; store secrets as a "
            "credential",
        )
        for name, value in header_values.items()
        if not _is_own_header(name) or not is_header_value(str(value))
    ]


def _is_own_header(name: str) -> bool:
    lower = name.lower()
    is_reserved = lower in _CONNECTION_HEADERS or lower.startswith(_PROTOCOL_HEADER_PREFIX) or is_private(lower)
    return is_sendable_header(name) and not is_reserved


async def _name_origin(_: OpenChanges, before: LiveSource | None, after: LiveSource | None) -> Mapping[str, object]:
    """Return the origin of an MCP server, because entries have only a fingerprint of its settings."""
    del before
    if after is None or after.kind is not LiveKind.MCP:
        return {}
    return {"origin": find_origin(str(after.settings["url"]))}


async def _detach(opened: OpenChanges, before: LiveSource | None, after: LiveSource | None) -> None:
    """End the attachment of a changed live source; a removed one ends the open approvals of its tools."""
    tenant, db = opened.tenant, opened.db
    if before is not None and after is not None and is_same(before, after):
        return
    if before is not None and after is not None:
        await ROWS.note(tenant, db, after.id, LiveStatus(since=datetime.now(UTC)))
        await live_primitives.hide(tenant, db, LiveSourceId(after.id))
    changed = after or before
    assert changed is not None  # a change has an object before it, or after it
    opened.announce(LiveSourceChanged(tenant=tenant, source=changed.id))


async def _end_approvals(opened: OpenChanges, removed: LiveSource) -> None:
    """End the open approvals of the tools of a live source, once it is removed."""
    tenant, db = opened.tenant, opened.db
    found = [one.primitive for one in await live_primitives.of_source(tenant, db, removed.id)]
    others = await operations.names(tenant, db)  # a stored tool of this name goes before the live one
    tools = [one.name for one in found if one.family is Family.TOOL and one.name not in others]
    end = partial(supersede_approvals, tenant, opened.catalog, tools, before=datetime.now(UTC))
    opened.later.append(end)


LIVE_SOURCES = Collection(
    kind=LIVE_SOURCE,
    rows=ROWS,
    complete=_complete,
    check=_check,
    describe=_name_origin,
    written=_detach,
    removing=_end_approvals,
    compute=read_statuses,
)
