"""Guardrails of a tenant: ordered, and loaded with each snapshot."""

from collections.abc import Iterator

from gateway.catalog.credentials import find_obstacle
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.origins import find_origin
from gateway.catalog.transaction import CatalogContext, OpenChanges
from gateway.catalog.updates.signatures import is_secret
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.guardrails import Guardrail, GuardrailAction, GuardrailPhase, HookSettings
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.patterns import PATTERNS
from gateway.errors import Fault, InvalidBody, ReferenceMissing
from gateway.kinds.selections import GUARDRAIL
from gateway.store.engine import Db
from gateway.store.kinds.credentials import open_named
from gateway.store.kinds.guardrails import GUARDRAILS as ROWS
from gateway.store.kinds.singletons import POLICY


async def _check(opened: OpenChanges, current: Guardrail | None, wanted: Guardrail) -> None:
    del current
    faults = list(_faults(wanted))
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
    if wanted.hook is not None:
        await _check_hook(opened.tenant, opened.catalog, opened.db, wanted.hook)


def _faults(one: Guardrail) -> Iterator[Fault]:
    if one.action is GuardrailAction.MARK and one.phases != (GuardrailPhase.RESULT,):  # guard: guardrail-mark
        yield Fault(pointer="/action", reason="only results can be marked; the phases must be result alone")
    for member, check, is_given in (
        ("max_bytes", GuardrailCheck.SIZE, one.max_bytes is not None),
        ("hook", GuardrailCheck.HTTP, one.hook is not None),
    ):
        if is_given != (one.check is check):
            reason = f"belongs to the check {check}" if is_given else f"required for the check {check}"
            yield Fault(pointer=f"/{member}", reason=reason)
    known = PATTERNS.get(one.check, {})
    for position, name in enumerate(one.patterns):
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
    opened = await open_named(tenant, db, catalog.sealer, hook.credential)
    if opened is None or not is_secret(opened.credential.value):
        raise _missing("/hook/credential", "its value must be a Standard Webhooks secret: whsec_ and base64")


def _missing(pointer: str, reason: str) -> ReferenceMissing:
    return ReferenceMissing(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


GUARDRAILS = Collection(kind=GUARDRAIL, rows=ROWS, check=_check)
