"""Changes of approvals in one transaction: audit entries, webhooks, and events after the commit."""

import hashlib
from typing import Final

from gateway.catalog.transaction import Author, CatalogContext, announce, detail_of
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.calls.approvals import Approval, ApprovalState
from gateway.domain.events import ApprovalChanged
from gateway.domain.identifiers import ApprovalId, TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.domain.updates.webhook_endpoints import WebhookEventKind, describe_approval
from gateway.errors import NotFound
from gateway.store.calls import approvals
from gateway.store.engine import Db
from gateway.store.notifications import deliveries

OPERATOR: Final = "operator"
_GATEWAY: Final = "gateway"
_KINDS: Final = {
    ApprovalState.PENDING: WebhookEventKind.APPROVAL_REQUESTED,
    ApprovalState.APPROVED: WebhookEventKind.APPROVAL_APPROVED,
    ApprovalState.DENIED: WebhookEventKind.APPROVAL_DENIED,
    ApprovalState.EXPIRED: WebhookEventKind.APPROVAL_EXPIRED,
    ApprovalState.DONE: WebhookEventKind.APPROVAL_RAN,
    ApprovalState.UNKNOWN: WebhookEventKind.APPROVAL_UNKNOWN,
}
"""Kinds of webhooks by the new state."""


class ApprovalChanges:
    """Approvals that a transaction has changed, for their events after the commit."""

    def __init__(self, tenant: TenantId, catalog: CatalogContext) -> None:
        self._tenant = tenant
        self._catalog = catalog
        self._changed: list[ApprovalId] = []

    async def supersede(self, db: Db, approval: ApprovalId) -> bool:
        """End an open approval that no call can use any more, and record it; False if it was not open."""
        is_open = await approvals.supersede(self._tenant, db, approval)
        if is_open:
            await self.record_change(db, approval)
        return is_open

    async def record_change(self, db: Db, changed: ApprovalId, by: Author | None = None) -> Approval:
        """Write the audit entry and the webhooks of a changed approval in its transaction, and return the approval.

        Raises:
            AuditUnavailable: the entry could not be stored; the change must not commit.
        """
        approval = await read_approval(self._tenant, self._catalog, db, changed)
        is_new = approval.state is ApprovalState.PENDING
        principal, subject = (approval.requester, approval.subject) if is_new else (_GATEWAY, "")
        if by is not None:
            principal, subject = by.caller.name, subject_of(by)
        comment = hashlib.blake2b(approval.comment.encode(), digest_size=32).digest() if approval.comment else b""
        await self._catalog.audit(  # guard: approval-audited
            CallRecord(
                tenant=self._tenant,
                kind=AuditKind.CALL,
                principal=principal,
                subject=subject,
                tool=approval.tool,
                outcome=approval.id,
                correlation_id=approval.correlation_id if by is None else by.correlation_id,
                digest=approval.digest if is_new else comment,
                detail=None if by is None else detail_of(by) or None,
                action=f"approval.{'requested' if is_new else approval.state.value}",
            )
        )
        await self.enqueue(db, approval)
        return approval

    async def enqueue(self, db: Db, approval: Approval) -> None:
        """Write the webhooks of a changed approval. They contain no part of the request."""
        self._changed.append(approval.id)
        kind = _KINDS.get(approval.state)
        if kind is None:
            return
        url = page_of(self._catalog, approval.id) or ""
        await deliveries.enqueue(self._tenant, db, kind, describe_approval(approval, url=url))

    async def announce(self) -> None:
        """Publish the events, after the commit."""
        for approval in self._changed:
            await announce(self._catalog, ApprovalChanged(tenant=self._tenant, approval=approval))


async def read_approval(tenant: TenantId, catalog: CatalogContext, db: Db, approval: ApprovalId) -> Approval:
    """The approval with this id.

    Raises:
        NotFound: the tenant has no such approval.
    """
    found = await approvals.get(tenant, db, catalog.sealer, approval)
    if found is None:
        raise NotFound("no such approval")
    return found


def page_of(catalog: CatalogContext, approval: ApprovalId) -> str | None:
    """The URL of an approval's page; None if the gateway's public URL is not known."""
    public_url = catalog.options.public_url
    return None if public_url is None else f"{public_url.rstrip('/')}/approvals/{approval}"


def subject_of(by: Author) -> str:
    """The subject of an author; `operator` for the operator."""
    return by.caller.subject if isinstance(by.caller, Principal) else OPERATOR
