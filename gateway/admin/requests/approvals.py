"""Request models of approvals."""

from typing import Annotated

from pydantic import Field

from gateway.domain.members.formats import PRINTABLE
from gateway.web.models import GIVEN, Absent, BodyModel


class ApprovalDecide(BodyModel):
    """A decision about a pending call."""

    comment: Annotated[
        str | Absent,
        GIVEN,
        Field(
            max_length=1000, pattern=PRINTABLE, description="The reason; the requester sees the reason for a denial."
        ),
    ] = None
