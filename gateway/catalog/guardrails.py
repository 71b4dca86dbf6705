"""Guardrails of a tenant: declared by admins, ordered, and loaded with each snapshot."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gateway.catalog.credentials import find_obstacle
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.catalog.updates.signatures import is_secret
from gateway.domain.identifiers import TenantId, new_guardrail_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.tenancy.guardrails import (
    Guardrail,
    GuardrailAction,
    GuardrailPhase,
    GuardrailRule,
    HookSettings,
)
from gateway.domain.text_search.patterns import PATTERNS
from gateway.errors import Fault, InvalidBody, LimitExceeded, NameConflict, NameTaken, NotFound, ReferenceMissing
from gateway.store import credentials
from gateway.store.calls import guardrails
from gateway.store.engine import Db
from gateway.store.kinds.singletons import POLICY

MAX_GUARDRAILS = 20
"""Limit on the guardrails of one tenant, because each one can delay every call."""


async def create_guardrail(
    tenant: TenantId, catalog: CatalogContext, name: str, rule: GuardrailRule, *, by: Author
) -> Guardrail:
    """Create a guardrail; the next revision of the catalog contains it.

    Raises:
        InvalidBody: members of the rule do not fit together.
        ReferenceMissing: the credential of the hook is missing or unfit, or the policy does not allow its URL.
        NameTaken: the tenant has a guardrail of this name.
        LimitExceeded: the tenant has reached its limit of guardrails.
    """
    now = datetime.now(UTC)
    new_guardrail = Guardrail(id=new_guardrail_id(), name=name, rule=rule, created_at=now, updated_at=now)
    entry = CatalogChange(action="guardrail.create", target=name, detail={"id": new_guardrail.id}, after=new_guardrail)
    async with change(tenant, catalog, entry, by=by) as db:
        if await guardrails.get(tenant, db, name) is not None:
            conflict = NameConflict(name=name, owner=f"guardrail:{name}")
            raise NameTaken(f"a guardrail {name} exists already", conflicts=[conflict])
        if await guardrails.count(tenant, db) >= MAX_GUARDRAILS:  # guard: guardrail-count
            raise LimitExceeded(f"the tenant has {MAX_GUARDRAILS} guardrails (the limit); delete unused ones")
        await _check(tenant, catalog, db, rule)
        await guardrails.insert(tenant, db, new_guardrail)
    return new_guardrail


async def update_guardrail(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[GuardrailRule], GuardrailRule],
    *,
    by: Author,
    expected: Expected = None,
) -> Guardrail:
    """Replace the rule of a guardrail with the one that `revise` returns.

    Raises:
        NotFound: the tenant has no such guardrail.
        InvalidBody, ReferenceMissing: as for a new guardrail.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="guardrail.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        revised = replace(current, rule=revise(current.rule), updated_at=datetime.now(UTC))
        entry.target, entry.detail = current.name, {"id": current.id}
        entry.before, entry.after = current, revised
        await _check(tenant, catalog, db, revised.rule)
        await guardrails.save(tenant, db, revised)
    return replace(revised, version=current.version + 1)


async def get_guardrail(tenant: TenantId, catalog: CatalogContext, name: str) -> Guardrail:
    """The guardrail of this name or id.

    Raises:
        NotFound: the tenant has no such guardrail.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, name)


async def page_guardrails(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Guardrail]:
    """One page of the tenant's guardrails, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await guardrails.page(tenant, db, after=after, limit=limit, order=order)


async def remove_guardrail(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete a guardrail.

    Raises:
        NotFound: the tenant has no such guardrail.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="guardrail.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        await guardrails.remove(tenant, db, current.id)


async def _check(tenant: TenantId, catalog: CatalogContext, db: Db, rule: GuardrailRule) -> None:
    faults = list(_faults(rule))
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
    if rule.hook is not None:
        await _check_hook(tenant, catalog, db, rule.hook)


def _faults(rule: GuardrailRule) -> Iterator[Fault]:
    if rule.action is GuardrailAction.MARK and rule.phases != (GuardrailPhase.RESULT,):  # guard: guardrail-mark
        yield Fault(pointer="/action", reason="only results can be marked; the phases must be result alone")
    for member, check, is_given in (
        ("max_bytes", GuardrailCheck.SIZE, rule.max_bytes is not None),
        ("hook", GuardrailCheck.HTTP, rule.hook is not None),
    ):
        if is_given != (rule.check is check):
            reason = f"belongs to the check {check}" if is_given else f"required for the check {check}"
            yield Fault(pointer=f"/{member}", reason=reason)
    known = PATTERNS.get(rule.check, {})
    for position, name in enumerate(rule.patterns):
        if name not in known:
            reason = f"is not a pattern of this check; known patterns: {', '.join(known) or 'none'}"
            yield Fault(pointer=f"/patterns/{position}", reason=reason)


async def _check_hook(tenant: TenantId, catalog: CatalogContext, db: Db, hook: HookSettings) -> None:
    """Refuse a hook that could never be called: its URL is not allowed, or its credential cannot sign requests."""
    origin = find_origin(hook.url)
    if origin is None:
        message = "must be an absolute http or https URL"
        raise InvalidBody(f"/hook/url: {message}", faults=[Fault(pointer="/hook/url", reason=message)])
    allowed = (await POLICY.get(tenant, db)).http_origins
    if allowed is not None and origin not in allowed:
        raise _missing("/hook/url", "the tenant's policy does not allow requests to this origin")
    obstacle = await find_obstacle(tenant, db, hook.credential, origin)
    if obstacle is not None:
        raise _missing("/hook/credential", obstacle)
    opened = await credentials.open_named(tenant, db, catalog.sealer, hook.credential)
    if opened is None or not is_secret(opened.credential.value):
        raise _missing("/hook/credential", "its value must be a Standard Webhooks secret: whsec_ and base64")


def _missing(pointer: str, reason: str) -> ReferenceMissing:
    return ReferenceMissing(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


async def _find(tenant: TenantId, db: Db, name: str) -> Guardrail:
    found = await guardrails.get(tenant, db, name)
    if found is None:
        raise NotFound("no such guardrail")
    return found
