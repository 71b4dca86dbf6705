"""Audit entries of what people do themselves: sign in, consent, connect a client."""

from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import AuditKind, CallRecord
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
    """Store the entry of an act of a person; returns when it is stored.

    Raises:
        AuditUnavailable: it could not be stored, so the act must not commit.
    """
    record = CallRecord(
        tenant=person.tenant,
        kind=AuditKind.CALL,
        principal=f"user:{person.subject}",
        subject=person.subject,
        tool="",
        outcome=outcome,
        correlation_id=correlation_id,
        action=action,
        detail=detail,
    )
    await catalog.audit(record)
