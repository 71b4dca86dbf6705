"""Audit entries of actions by people themselves: sign-in, consent, connection of a client."""

from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.tenancy.accounts import AccountOwner
from gateway.domain.tenancy.keys import Key


async def record_act(
    catalog: CatalogContext,
    person: Key,
    action: str,
    *,
    correlation_id: str,
    outcome: str = "ok",
    detail: dict[str, object] | None = None,
) -> None:
    """Store the audit entry of a person's action; returns when it is stored.

    Raises:
        AuditUnavailable: the entry could not be stored, so the action must not commit.
    """
    acting = AccountOwner(tenant=person.tenant, id=person.id, subject=person.principal, name=f"user:{person.principal}")
    await record_use(catalog, acting, action, correlation_id=correlation_id, outcome=outcome, detail=detail)


async def record_use(
    catalog: CatalogContext,
    owner: AccountOwner,
    action: str,
    *,
    correlation_id: str,
    outcome: str = "ok",
    detail: dict[str, object] | None = None,
) -> None:
    """Store the audit entry of an action of a person or a key holder; see `record_act`."""
    record = CallRecord(
        tenant=owner.tenant,
        kind=AuditKind.CALL,
        principal=owner.name,
        subject=owner.subject,
        tool="",
        outcome=outcome,
        correlation_id=correlation_id,
        action=action,
        detail=detail,
    )
    await catalog.audit(record)
