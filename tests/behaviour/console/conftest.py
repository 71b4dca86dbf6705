"""A tenant with approvals that wait, and a person that may decide."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from gateway.domain.calls.approvals import Approval, ApprovalState, RequestShown
from gateway.domain.identifiers import ApprovalId, KeyId, TenantId, new_approval_id
from gateway.store.calls import approvals
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from tests.support.chromium import browser, chromium
from tests.support.gateway import SECRET_KEY, RunningGateway
from tests.support.serving import http_client
from tests.support.stand import Stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand

__all__ = ["browser", "chromium", "common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

SEALER = EnvelopeCipher([SECRET_KEY])
REQUEST = RequestShown(
    method="DELETE",
    url="https://pets.example/pets/7?force=true",
    headers=(("Accept", "application/json"), ("X-Reason", "cleaning up")),
    body='{"id":7,"name":"Rex","name":"Tom","weight":1.0}',
)


@dataclass(frozen=True, slots=True)
class ConsoleBench:
    """A tenant whose approvals are decided on pages."""

    stand: Stand
    store: Store
    slug: str
    tenant: TenantId
    key: str
    """A key with the scope `approve`, of the subject `Ada`."""

    @property
    def gateway(self) -> RunningGateway:
        return self.stand.gateway

    @property
    def url(self) -> str:
        return self.gateway.url

    async def ask(self, request: RequestShown = REQUEST, **more: Any) -> Approval:
        """A call that waits, as its caller's pipeline stores it."""
        now = datetime.now(UTC)
        facts: dict[str, Any] = {
            "id": new_approval_id(),
            "tenant": self.tenant,
            "state": ApprovalState.PENDING,
            "requester": "key:key_agent",
            "subject": "agent",
            "key": KeyId("key_agent"),
            "profile": None,
            "action": "call",
            "tool": "delete_pet",
            "tool_digest": "aa",
            "policy_version": 2,
            "digest": b"digest",
            "request": request,
            "warnings": ("Deletes /pets/7.", "Cannot be undone, the document says."),
            "correlation_id": "cor_1",
            "created_at": now,
            "expires_at": now + timedelta(hours=24),
            **more,
        }
        approval = Approval(**facts)
        async with self.store.transaction(self.tenant) as db:
            fingerprint = approval.id.encode()
            await approvals.insert(self.tenant, db, SEALER, approval, fingerprint=fingerprint, credentials=b"")
        return approval

    async def now(self, approval: ApprovalId) -> Approval:
        """The approval as it is stored."""
        async with self.store.transaction(self.tenant) as db:
            found = await approvals.get(self.tenant, db, SEALER, approval)
        assert found is not None
        return found

    def person(self) -> httpx.AsyncClient:
        """A browser's HTTP: cookies, no redirects, and the Origin of its own pages."""
        return http_client(base_url=self.url, headers={"origin": self.url}, timeout=30)

    async def signed_in(self, person: httpx.AsyncClient, key: str | None = None) -> httpx.Response:
        """Sign in; the answer leads to the list."""
        return await person.post("/approvals/sign-in", data={"key": key or self.key, "next": "/approvals"})


@pytest.fixture(scope="package")
async def store(common_stand: Stand) -> AsyncGenerator[Store]:
    """The store in which tests open approvals."""
    async with Store(common_stand.database.app_url) as store:
        yield store


@pytest.fixture
async def bench(stand: Stand, store: Store) -> ConsoleBench:
    """A tenant of this test alone."""
    await stand.gateway.create_tenant("acme")
    tenant = (await stand.gateway.admin.get("/tenants/acme")).json()["id"]
    key = await stand.gateway.create_key("acme", "approve", subject="Ada")
    return ConsoleBench(stand, store, "acme", TenantId(tenant), key)
