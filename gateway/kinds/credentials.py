"""The kind of the stored credentials that handlers, sources and watches name."""

from gateway.domain.credentials import CredentialKind, CredentialLocation, StoredCredential
from gateway.kinds.kind import Kind, Limit, ListFilter

CREDENTIAL = Kind(
    of=StoredCredential,
    stem="Credential",
    name="credential",
    plural="credentials",
    id_prefix="crd",
    about="a stored secret that handlers name, and the only origins that receive it",
    is_protected=True,
    limit=Limit(most=1000, reason="one for each system and role of a tenant, and pages of accounts show all"),
    example={"name": "vendor", "place": "bearer", "value": "s3cr3t", "origins": ["https://api.example.com"]},
    texts=lambda one: (one.name, one.field, *one.origins),
    filters={
        "place": ListFilter(
            type=CredentialLocation,
            about="Only credentials in this location of a request.",
            value=lambda one: one.place,
        ),
        "kind": ListFilter(type=CredentialKind, about="Only credentials of this kind.", value=lambda one: one.kind),
    },
)
