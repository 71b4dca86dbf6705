"""Response model of the test of a credential."""

from typing import Annotated

from pydantic import Field

from gateway.web.models import ResponseModel


class CredentialTested(ResponseModel):
    """The result of a successful test: the credential's secret could be read."""

    reference: Annotated[
        str | None, Field(description="The location in the external store; null for a secret that is stored here.")
    ]
