"""New ids of objects, for tests that build objects without an engine."""

from gateway.domain.identifiers import (
    AuditSinkId,
    CredentialId,
    LiveSourceId,
    PrimitiveId,
    ProfileId,
    TenantId,
    WebhookEndpointId,
    WebhookId,
    mint,
)


def new_client_id() -> str:
    return mint("cli")


def new_tenant_id() -> TenantId:
    return TenantId(mint("ten"))


def new_primitive_id(prefix: str) -> PrimitiveId:
    """Return a new id; the prefix names the family: `tol`, `res`, `tpl` or `pro`."""
    return PrimitiveId(mint(prefix))


def new_profile_id() -> ProfileId:
    return ProfileId(mint("prf"))


def new_credential_id() -> CredentialId:
    return CredentialId(mint("crd"))


def new_webhook_id() -> WebhookId:
    return WebhookId(mint("whk"))


def new_live_source_id() -> LiveSourceId:
    return LiveSourceId(mint("liv"))


def new_audit_sink_id() -> AuditSinkId:
    return AuditSinkId(mint("snk"))


def new_webhook_endpoint_id() -> WebhookEndpointId:
    return WebhookEndpointId(mint("whe"))
