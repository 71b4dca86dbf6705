"""The kinds of principals: clients of a tenant's authorization server."""

from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.kinds.kind import Kind, Limit, ListFilter

CLIENT = Kind(
    of=OAuthClient,
    stem="Client",
    name="client",
    plural="clients",
    id_prefix="cli",
    about="an application that signs people in at the tenant's authorization server",
    limit=Limit(most=200, reason="one for each application that administrators register"),
    keyed="id",
    address="id",
    example={"name": "Reports", "redirect_uris": ["https://reports.example/callback"], "confidential": True},
    texts=lambda one: (one.name, one.id, *one.redirect_uris),
    filters={
        "kind": ListFilter(type=ClientKind, about="Only clients of this kind.", value=lambda one: one.status.kind)
    },
    generates="The client's secret; it is returned only once. Null for a client without one.",
    has_secret=lambda one: one.confidential,
    rotation="The previous one is refused at once.",
    is_protected=True,
)
