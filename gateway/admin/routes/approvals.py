"""Endpoints of approvals: list, show, approve and deny."""

from functools import partial

from gateway.admin.crud import AllOptions, endpoint
from gateway.admin.endpoint import DECIDE, READ_APPROVALS, AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.records import RecordEndpoints
from gateway.admin.requests.approvals import ApprovalDecide
from gateway.catalog.calls import approvals
from gateway.catalog.calls.approvals import ApprovalVerdict
from gateway.domain.calls.approvals import ApprovalFilter
from gateway.kinds.approvals import APPROVAL
from gateway.web.models import NoQuery

_APPROVAL = RecordEndpoints(
    record=APPROVAL,
    page=approvals.page_approvals,
    get=approvals.get_approval,
    filter_of=ApprovalFilter,
    scopes=READ_APPROVALS,
)


async def approve_call(admin: AdminDependencies, call: AdminRequest[ApprovalDecide, NoQuery]) -> AdminResponse:
    """Approve a pending call of another subject; the call runs when its caller repeats it, or in its task."""
    return await _decide(admin, call, is_approved=True)


async def deny_call(admin: AdminDependencies, call: AdminRequest[ApprovalDecide, NoQuery]) -> AdminResponse:
    """Deny a pending call of another subject; equal calls are refused for an hour."""
    return await _decide(admin, call, is_approved=False)


async def _decide(
    admin: AdminDependencies, call: AdminRequest[ApprovalDecide, NoQuery], *, is_approved: bool
) -> AdminResponse:
    verdict = ApprovalVerdict(is_approved=is_approved, comment=call.body.comment or "")
    decide = partial(approvals.decide_approval, call.tenant, admin.catalog, call.path["id"], verdict)
    return await _APPROVAL.noun.respond(admin, call, await decide(by=call.by, expected=call.expected))


_ITEM, _SHOWN = _APPROVAL.noun.item, _APPROVAL.noun.shown
_DECIDED: AllOptions = {"scopes": DECIDE, "has_tag": True, "problems": {409}}

ENDPOINTS = (
    *_APPROVAL.routes(),
    endpoint(
        "POST", f"{_ITEM}/approve", approve_call, ApprovalDecide, query=NoQuery, responses={200: _SHOWN}, **_DECIDED
    ),
    endpoint("POST", f"{_ITEM}/deny", deny_call, ApprovalDecide, query=NoQuery, responses={200: _SHOWN}, **_DECIDED),
)
