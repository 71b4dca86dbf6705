"""Models of references to secrets in external stores, which several requests and responses contain."""

from typing import TYPE_CHECKING

from gateway.domain.tenancy.secret_references import SecretReference
from gateway.web.kinds.annotations import merged, sent_model, shown_model
from gateway.web.models import BodyModel, CopiedModel

if TYPE_CHECKING:  # a derived class is no type for a checker

    class SecretReferenceSent(BodyModel):
        """A reference in a request."""

    class SecretReferenceShown(CopiedModel):
        """A reference in a response."""

else:
    SecretReferenceSent = sent_model(SecretReference)
    SecretReferenceShown = shown_model(SecretReference)


def read_reference(sent: SecretReferenceSent | None) -> SecretReference | None:
    """Return the reference of a body."""
    found: SecretReference | None = merged(None, sent, SecretReference)
    return found
