"""The record of a decision about a call."""

from gateway.domain.calls.approvals import Approval, ApprovalState
from gateway.kinds.kind import ListFilter
from gateway.kinds.record import Record, by_state, by_text

APPROVAL = Record(
    of=Approval,
    name="approval",
    id_prefix="apr",
    known_by=("tool", "subject"),
    plural="approvals",
    about="the tenant's approvals, newest first",
    one="an approval with its request and its warnings",
    keyed="position",
    sorts=(),
    texts=lambda one: (one.tool, one.subject, one.requester, one.request.url, one.comment),
    filters={
        "state": by_state(ApprovalState, "Only approvals in this state.", lambda one: one.state),
        "tool": ListFilter(
            type=str,
            about="Only calls of this tool or prompt, or reads of this URI.",
            value=lambda one: one.tool,
        ),
        "subject": by_text("Only calls that this subject requested.", lambda one: one.subject),
    },
)
