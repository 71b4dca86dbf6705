"""Response models of accounts that users have connected."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id
from gateway.admin.responses.grants import Subject
from gateway.domain.tenancy.accounts import AccountState
from gateway.web.models import CopiedModel, Page


class AccountShown(CopiedModel):
    """An account that a user has connected, without its tokens."""

    id: Id
    subject: Subject
    owner: Annotated[str, Field(description="The id of the person or key that owns the account.")]
    credential: Annotated[
        str,
        Field(
            validation_alias="credential_name",
            description="The name of the credential for which the account was connected.",
        ),
    ]
    scopes: Annotated[Sequence[str], Field(description="The scopes that the upstream granted.")]
    state: Annotated[
        AccountState, Field(description="`connected`, or `refused`: the user has to connect the account again.")
    ]
    created_at: CreatedAt
    refreshed_at: Annotated[datetime, Field(description="The last time at which tokens of the account were issued.")]


class AccountPage(Page[AccountShown]):
    """One page of the accounts of a tenant's users."""
