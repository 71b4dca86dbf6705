"""Live sources of a tenant: created, changed and removed by admins.

A changed live source is detached: its primitives are hidden until it is attached under its new settings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.credentials import find_obstacle
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change
from gateway.definitions.live.settings import validate_settings
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.events import LiveSourceChanged
from gateway.domain.http.headers import is_private
from gateway.domain.identifiers import TenantId, new_live_source_id
from gateway.domain.json_access import as_object, point
from gateway.domain.live_sources import LiveKind, LiveSource, LiveStatus
from gateway.domain.order import KEYED, Order
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.principals import Operator
from gateway.errors import (
    Fault,
    Forbidden,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    ReferenceMissing,
)
from gateway.store import operations
from gateway.store.engine import Db
from gateway.store.kinds.singletons import POLICY
from gateway.store.live import live_primitives, live_sources
from gateway.store.sources import sources
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header

MAX_LIVE_SOURCES = 50
"""Limit on the live sources of one tenant."""
_CONNECTION_HEADERS = frozenset({"accept", "authorization", "content-type", "last-event-id"})
_PROTOCOL_HEADER_PREFIX = "mcp-"
_OWN_KINDS = frozenset({LiveKind.NEOVIM, LiveKind.AGENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSourceDraft:
    """A requested live source; `settings` is a JSON value as received."""

    name: str
    kind: LiveKind
    settings: object = field(default_factory=dict[str, object])
    prefix: str = ""
    credential: str | None = None
    caller_credential: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    safety: Mapping[str, Safety] = field(default_factory=dict[str, Safety])
    accepts_changes: bool | None = None
    """None: True for the kinds whose definitions the tenant's own programs provide."""
    expose: Exposure = Exposure.TOOLS
    enabled: bool = True


async def create_live_source(
    tenant: TenantId, catalog: CatalogContext, draft: LiveSourceDraft, *, by: Author
) -> LiveSource:
    """Create a live source; replicas attach to it at once if it is enabled.

    Raises:
        DefinitionInvalid: the settings do not have the form of the kind.
        Forbidden: only the operator may declare a source of this kind, and only if the gateway allows it.
        NameTaken: the tenant has a live source or a source of this name.
        LimitExceeded: the tenant has reached its limit of live sources.
        ReferenceMissing: the credential is missing or for another origin, or the policy does not allow the URL.
    """
    _check_author(catalog, draft.kind, by)
    now = datetime.now(UTC)
    new_source = _with_draft(
        LiveSource(
            tenant=tenant, id=new_live_source_id(), name=draft.name, kind=draft.kind, created_at=now, updated_at=now
        ),
        draft,
    )
    entry = CatalogChange(action="live_source.create", target=draft.name, detail=_detail(new_source), after=new_source)
    async with change(tenant, catalog, entry, by=by) as db:
        await _refuse_taken(tenant, db, draft.name)
        if await live_sources.count(tenant, db) >= MAX_LIVE_SOURCES:
            raise LimitExceeded(f"the tenant has {MAX_LIVE_SOURCES} live sources (the limit); delete unused ones")
        await _check_references(tenant, db, new_source)
        await live_sources.insert(new_source, db)
    await announce(catalog, LiveSourceChanged(tenant=tenant, source=new_source.id))
    return new_source


async def update_live_source(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[LiveSourceDraft], LiveSourceDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> LiveSource:
    """Replace a live source with the one that `revise` returns. A change detaches it; replicas attach it again.

    Raises:
        NotFound: the tenant has no such live source.
        PreconditionFailed: the current version matches no expected tag.
        DefinitionInvalid, Forbidden, ReferenceMissing: as for a new one, or the kind would change.
    """
    entry = CatalogChange(action="live_source.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_live_source(tenant, db, name)
        check_version(current, expected)
        _check_author(catalog, current.kind, by)
        draft = revise(draft_of(current))
        if draft.kind is not current.kind:
            fault = Fault(pointer="/kind", reason="the kind of a live source cannot change; create another one")
            raise ReferenceMissing(fault.reason, faults=[fault])
        revised = _with_draft(current, draft)
        await _check_references(tenant, db, revised)
        entry.target, entry.detail = current.name, _detail(revised)
        entry.before, entry.after = current, revised
        is_same = revised == current
        revised = replace(revised, updated_at=datetime.now(UTC))
        if not is_same:
            revised = replace(revised, status=LiveStatus(since=revised.updated_at))
            await live_primitives.hide(tenant, db, current.id)
        await live_sources.save(revised, db)
    if not is_same:
        await announce(catalog, LiveSourceChanged(tenant=tenant, source=current.id))
    return replace(revised, version=current.version + 1)


async def get_live_source(tenant: TenantId, catalog: CatalogContext, name: str) -> LiveSource:
    """The live source of this name or id.

    Raises:
        NotFound: the tenant has no such live source.
    """
    async with catalog.store.transaction(tenant) as db:
        return await find_live_source(tenant, db, name)


async def page_live_sources(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[LiveSource]:
    """One page of the tenant's live sources, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await live_sources.page(tenant, db, after=after, limit=limit, order=order)


async def remove_live_source(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Remove a live source with its primitives and their accepted definitions; end the open approvals of its tools.

    Raises:
        NotFound: the tenant has no such live source.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="live_source.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_live_source(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        found = [one.primitive for one in await live_primitives.of_source(tenant, db, current.id)]
        others = await operations.names(tenant, db)  # a stored tool of this name goes before the live one
        tools = [one.name for one in found if one.family is Family.TOOL and one.name not in others]
        removed_at = datetime.now(UTC)
        await live_sources.remove(tenant, db, current.id)
    await supersede_approvals(tenant, catalog, tools, before=removed_at)
    await announce(catalog, LiveSourceChanged(tenant=tenant, source=current.id))


async def reattach_live_source(tenant: TenantId, catalog: CatalogContext, name: str) -> LiveSource:
    """Make replicas reattach a live source now, before its next scheduled attempt.

    Raises:
        NotFound: the tenant has no such live source.
    """
    source = await get_live_source(tenant, catalog, name)
    await announce(catalog, LiveSourceChanged(tenant=tenant, source=source.id))
    return source


async def find_live_source(tenant: TenantId, db: Db, name: str) -> LiveSource:
    """The live source of this name or id, read in the caller's transaction.

    Raises:
        NotFound: the tenant has no such live source.
    """
    found = await live_sources.get(tenant, db, name)
    if found is None:
        raise NotFound("no such live source")
    return found


def draft_of(source: LiveSource) -> LiveSourceDraft:
    """The draft of a stored live source, as the input of a revision."""
    return LiveSourceDraft(
        name=source.name,
        kind=source.kind,
        settings=dict(source.settings),
        prefix=source.prefix,
        credential=source.credential,
        caller_credential=source.caller_credential,
        include=source.include,
        exclude=source.exclude,
        safety=source.safety,
        accepts_changes=source.accepts_changes,
        expose=source.expose,
        enabled=source.enabled,
    )


def _with_draft(source: LiveSource, draft: LiveSourceDraft) -> LiveSource:
    return replace(
        source,
        settings=validate_settings(draft.kind, draft.settings),
        prefix=draft.prefix,
        credential=draft.credential,
        caller_credential=draft.caller_credential,
        include=draft.include,
        exclude=draft.exclude,
        safety=dict(draft.safety),
        accepts_changes=draft.kind in _OWN_KINDS if draft.accepts_changes is None else draft.accepts_changes,
        expose=draft.expose,
        enabled=draft.enabled,
    )


def _check_author(catalog: CatalogContext, kind: LiveKind, by: Author) -> None:
    if kind is not LiveKind.COMMAND:
        return
    if not isinstance(by.caller, Operator):  # guard: live-command-operator
        raise Forbidden("only the operator may declare live sources of the kind command", rule=OPERATOR_RULE)
    if not catalog.options.live_commands:  # guard: live-command-setting
        raise Forbidden("this gateway starts no commands; the operator can set GATEWAY_LIVE_COMMANDS=true")


async def _refuse_taken(tenant: TenantId, db: Db, name: str) -> None:
    is_live = await live_sources.get(tenant, db, name) is not None
    if is_live or await sources.get(tenant, db, name) is not None:
        owner = f"live_source:{name}" if is_live else f"source:{name}"
        conflict = NameConflict(name=name, owner=owner)
        raise NameTaken(f"a {'live ' if is_live else ''}source {name} exists already", conflicts=[conflict])


async def _check_references(tenant: TenantId, db: Db, source: LiveSource) -> None:
    """Refuse a credential, URL or header that the source may not use."""
    faults: list[Fault] = []
    origin = None
    if source.kind is LiveKind.MCP:
        origin = find_origin(str(source.settings["url"]))
        allowed = (await POLICY.get(tenant, db)).http_origins
        if origin is None:
            faults.append(Fault(pointer="/settings/url", reason="the gateway cannot send requests to this URL"))
        elif allowed is not None and origin not in allowed:
            faults.append(
                Fault(pointer="/settings/url", reason="the tenant's policy does not allow requests to this origin")
            )
        faults += _header_faults(source.settings.get("headers", {}))
    for member, of_caller in (("credential", False), ("caller_credential", True)):
        name = getattr(source, member)
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


def _detail(source: LiveSource) -> dict[str, object]:
    """Detail of an audit entry. Settings are concealed, so the origin is named here."""
    detail: dict[str, object] = {"id": source.id}
    if source.kind is LiveKind.MCP:
        detail["origin"] = find_origin(str(source.settings["url"]))
    return detail
