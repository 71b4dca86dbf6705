"""Request models of approvals."""

from typing import Annotated

from pydantic import Field

from gateway.admin.requests.primitives import Text, Uri
from gateway.domain.calls.approvals import ApprovalState
from gateway.domain.members.formats import PRINTABLE
from gateway.web.models import GIVEN, Absent, BodyModel, PageQuery


class ApprovalQuery(PageQuery):
    """Filters of approvals; the newest come first."""

    state: Annotated[ApprovalState | Absent, Field(description="Only approvals in this state.")] = None
    tool: Annotated[Uri | Absent, Field(description="Only calls of this tool or prompt, or reads of this URI.")] = None
    subject: Annotated[Text | Absent, Field(description="Only calls that this subject requested.")] = None


class ApprovalDecide(BodyModel):
    """A decision about a pending call."""

    comment: Annotated[
        str | Absent,
        GIVEN,
        Field(
            max_length=1000, pattern=PRINTABLE, description="The reason; the requester sees the reason for a denial."
        ),
    ] = None
