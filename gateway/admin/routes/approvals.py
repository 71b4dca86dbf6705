"""Endpoints of approvals: list, show, approve and deny."""

from functools import partial

from gateway.admin.crud import AllOptions, Noun, each, endpoint
from gateway.admin.endpoint import DECIDE, READ_APPROVALS, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.pagination import read_page
from gateway.admin.requests.approvals import ApprovalDecide, ApprovalQuery
from gateway.admin.responses.approvals import ApprovalPage, ApprovalShown
from gateway.catalog.calls import approvals
from gateway.catalog.calls.approvals import ApprovalVerdict
from gateway.domain.calls.approvals import Approval, ApprovalFilter
from gateway.domain.order import join_position, write_moment
from gateway.web.models import NoBody, NoQuery

_NOUN = Noun(
    singular="approval", path="/tenants/{t}/approvals", key="id", shown=ApprovalShown, show=each(ApprovalShown.of)
)


async def list_approvals(admin: AdminDependencies, call: AdminRequest[NoBody, ApprovalQuery]) -> AdminResponse:
    """List the tenant's approvals, newest first."""
    query = call.query
    wanted = ApprovalFilter(state=query.state, tool=query.tool, subject=query.subject)
    read = partial(approvals.page_approvals, call.tenant, admin.catalog, wanted)
    found, cursor = await read_page(admin.cursors, call.tenant, "approvals", query, read=read, key=_position_of)
    return AdminResponse(content=ApprovalPage(items=[ApprovalShown.of(one) for one in found], next_cursor=cursor))


async def get_approval(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show an approval with its request and its warnings."""
    return await _NOUN.respond(admin, call, await approvals.get_approval(call.tenant, admin.catalog, call.path["id"]))


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
    return await _NOUN.respond(admin, call, await decide(by=call.by, expected=call.expected))


def _position_of(approval: Approval) -> str:
    return join_position(write_moment(approval.created_at), approval.id)


_DECIDED: AllOptions = {"scopes": DECIDE, "has_tag": True, "problems": {409}}

ENDPOINTS = (
    endpoint("GET", _NOUN.path, list_approvals, NoBody, ApprovalQuery, {200: ApprovalPage}, scopes=READ_APPROVALS),
    endpoint(
        "GET", _NOUN.item, get_approval, NoBody, NoQuery, {200: ApprovalShown}, scopes=READ_APPROVALS, has_tag=True
    ),
    endpoint("POST", f"{_NOUN.item}/approve", approve_call, ApprovalDecide, NoQuery, {200: ApprovalShown}, **_DECIDED),
    endpoint("POST", f"{_NOUN.item}/deny", deny_call, ApprovalDecide, NoQuery, {200: ApprovalShown}, **_DECIDED),
)
